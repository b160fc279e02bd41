//! Writes to a client: frames are queued and given to the kernel, as far as it takes them. The unsent bytes of a client
//! are bounded.

use super::client::{Client, Protocol};
use super::encoder::Encoded;
use super::encoding;
use super::frames::Frame;
use super::outbox::Outbox;
use crate::clock::Millis;
use crate::config::Overflow;
use crate::pubsub::{Delivery, Owner, Publication, Subscriber};
use crate::spool::{GivesWay, Slowness};
use crate::sync::MutexGuard;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// The time that a writer waits before it checks again if a client has begun.
const NOT_BEGUN: Duration = Duration::from_millis(10);

/// Most bytes of past messages that may wait besides new ones.
const MOST_PAST: usize = 16 * 1024 * 1024;

/// The result of offering a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It was queued or sent.
    Taken,
    /// There is no room now: see [`Client::wait_for_room`].
    Full,
    /// The stream has ended.
    Gone,
}

impl Client {
    /// Sends a message: a text or binary frame, or an event without a name. Text that is not UTF-8 is sent as binary.
    /// Returns false if the client is not open, or does not take the earlier messages.
    pub fn write(&self, data: &[u8], text: bool) -> bool {
        if !self.is_here() {
            return false;
        }
        // Compresses before the outbox is locked: other threads, and the dispatcher, must not wait for a large message.
        let Encoded { frame, context } = self.encoder.message(data, text);
        let is_sent = self.send_if_open(frame);
        if !is_sent {
            context.forget();
        }
        is_sent
    }

    fn send_if_open(&self, frame: Frame) -> bool {
        let outbox = self.outbox.lock();
        let is_sent = self.is_open() && self.send(outbox, frame);
        if let Some(realtime) = self.realtime.upgrade().filter(|_| is_sent) {
            realtime.worker.counters().messages_sent.fetch_add(1, Relaxed);
        }
        is_sent
    }

    /// Sends one event; see [`fairlead_wire::event_stream::event`]. A WebSocket gets the data as text.
    pub fn write_event(&self, data: &[u8], name: Option<&[u8]>, id: Option<&[u8]>, retry: Option<u64>) -> bool {
        let Protocol::EventStream { chunked } = self.protocol() else {
            return self.write(data, true);
        };
        self.is_here() && self.send_if_open(Frame::Own(encoding::named_event(data, name, id, retry, chunked)))
    }

    /// Sends the next piece of a stream, if the client has taken enough of the earlier ones.
    pub fn offer(&self, data: &[u8]) -> Offered {
        let mut outbox = self.outbox.lock();
        let (Protocol::Stream { chunked }, Some(realtime), true) =
            (self.protocol(), self.realtime.upgrade(), self.is_open())
        else {
            return Offered::Gone;
        };
        if outbox.frames.bytes() > realtime.worker.config.response_memory_bytes {
            return Offered::Full;
        }
        let piece = match outbox.remainder.piece(data, chunked) {
            Ok(piece) => piece,
            Err(fault) => {
                self.abort(outbox, fault);
                return Offered::Gone;
            }
        };
        outbox.begin();
        outbox.frames.push(Frame::Own(piece));
        self.flush_or_count(outbox);
        Offered::Taken
    }

    /// Blocks briefly, until the socket takes something or is closed. To be called without the lock of the language.
    pub fn wait_for_room(&self) {
        let outbox = self.outbox.lock();
        let Some(transport) = outbox.transport.clone().filter(|_| self.may_watch()) else {
            return;
        };
        if outbox.carrier.is_none() {
            drop(outbox);
            return std::thread::sleep(NOT_BEGUN);
        }
        let step = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let (descriptor, event) = transport.signal(PollFlags::OUT);
        drop(outbox);
        let _ = poll(&mut [PollFd::new(&descriptor, event)], Some(&step));
        self.flush_locked(self.outbox.lock());
    }

    /// Queues a frame and, unless earlier frames wait for the socket, gives it to the kernel.
    pub(super) fn send<'a>(&'a self, mut outbox: MutexGuard<'a, Outbox>, frame: Frame) -> bool {
        match self.queue(&mut outbox, frame) {
            Ok(()) => {}
            Err(frame) => {
                // The queue may be full only because it was not offered to the kernel yet.
                self.flush_locked(outbox);
                outbox = self.outbox.lock();
                if !self.is_open() {
                    return false;
                }
                if self.queue(&mut outbox, frame).is_err() {
                    return self.overflow(outbox);
                }
            }
        }
        self.flush_or_count(outbox);
        true
    }

    /// Queues a published message. Returns true if it was queued, and true if it has to be flushed.
    pub(super) fn deliver_encoded<'a>(
        &'a self,
        mut outbox: MutexGuard<'a, Outbox>,
        encoded: Encoded<'_>,
    ) -> (bool, bool) {
        let Encoded { frame, context } = encoded;
        if let Err(frame) = self.queue(&mut outbox, frame) {
            let is_queued = self.send(outbox, frame);
            if !is_queued {
                context.forget();
            }
            return (is_queued, false);
        }
        let is_waited_for = outbox.writes;
        if is_waited_for {
            self.flush_or_count(outbox);
        }
        (true, !is_waited_for)
    }

    /// Queues messages of the history, which bounds them, before all later messages.
    pub(super) fn send_past(&self, mut outbox: MutexGuard<'_, Outbox>, past: Vec<Frame>) {
        outbox.begin();
        let before = outbox.frames.bytes();
        for frame in past {
            outbox.frames.push(frame);
            outbox.owes_drained = true;
        }
        outbox.past_bytes += outbox.frames.bytes() - before;
        self.flush_or_count(outbox);
    }

    /// Slowness of the peer; `None` if it takes everything at once, or a thread writes to it now.
    pub(super) fn slowness(&self, now: Millis) -> Option<Slowness> {
        self.outbox.try_lock()?.frames.slowness(now)
    }

    /// Gives up the waiting frames and the client, unless nothing waits, a thread writes to it now, or it would be done
    /// within `limit`.
    pub(crate) fn give_way(&self, limit: Option<Duration>, now: Millis) -> GivesWay {
        let Some(mut outbox) = self.outbox.try_lock() else {
            return GivesWay::No;
        };
        let gives_way = |outbox: &Outbox| match (outbox.frames.slowness(now), limit) {
            (None, _) => GivesWay::No,
            (Some(_), None) => GivesWay::Yes,
            (Some(slowness), Some(limit)) => slowness.gives_way(limit),
        };
        let mut verdict = gives_way(&outbox);
        if verdict == GivesWay::Yes && limit.is_some() {
            self.offer_more(&mut outbox, now);
            verdict = gives_way(&outbox);
        }
        if verdict != GivesWay::Yes {
            return verdict;
        }
        let ends = self.abort(outbox, "others need its share of response_memory_total_bytes");
        if let Some(realtime) = self.realtime.upgrade().filter(|_| ends) {
            realtime.worker.counters().overflowed.fetch_add(1, Relaxed);
        }
        GivesWay::Yes
    }

    /// Offers the socket more bytes. The poller reports a socket as writable only when a third of its buffer is free,
    /// which may take a slow reader long. The next event handles the consequences.
    fn offer_more(&self, outbox: &mut Outbox, now: Millis) {
        let (Some(transport), Some(realtime)) = (outbox.transport.clone(), self.realtime.upgrade()) else {
            return;
        };
        let mut taken = 0;
        let _ = outbox.frames.flush(&*transport, &mut taken);
        if taken > 0 {
            outbox.moved = now;
            outbox
                .meter
                .moved(taken as u64, now, realtime.worker.config.write_rate());
        }
    }

    /// Returns true if too many bytes wait.
    pub(super) fn is_behind(&self, outbox: &Outbox) -> bool {
        outbox.frames.bytes() > self.most_bytes() + outbox.past_bytes.min(MOST_PAST)
    }

    /// Queues a frame, unless too much waits already.
    fn queue(&self, outbox: &mut Outbox, frame: Frame) -> Result<(), Frame> {
        if !outbox.frames.is_empty() && self.is_behind(outbox) {
            return Err(frame);
        }
        outbox.begin();
        outbox.frames.push(frame);
        outbox.owes_drained = true;
        Ok(())
    }

    /// Handles a client that does not take the frames sent to it.
    pub(super) fn overflow(&self, outbox: MutexGuard<'_, Outbox>) -> bool {
        let Some(realtime) = self.realtime.upgrade() else {
            return false;
        };
        match realtime.worker.config.client_overflow {
            Overflow::Drop => {
                realtime.worker.counters().dropped.fetch_add(1, Relaxed);
            }
            Overflow::Close => {
                realtime.worker.counters().overflowed.fetch_add(1, Relaxed);
                self.fail_slow(outbox);
            }
        }
        false
    }

    /// Sends more, because the socket is writable again.
    pub(crate) fn writable(&self) {
        self.flush_locked(self.outbox.lock());
    }
}

impl Subscriber for Client {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool {
        if let Delivery::Event(id) = delivery {
            if self.is_open() && !self.outbox.lock().has_seen(publication) {
                self.publish_event(publication, id);
            }
            return false;
        }
        let mut outbox = self.outbox.lock();
        if !self.is_open() || outbox.has_seen(publication) {
            return false;
        }
        let encoded = self.encoder.published(publication, delivery);
        self.deliver_encoded(outbox, encoded).1
    }

    fn flush(&self) {
        let outbox = self.outbox.lock();
        if !outbox.writes {
            self.flush_locked(outbox);
        }
    }

    fn is_open(&self) -> bool {
        self.is_open()
    }

    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }

    fn owner_name(&self) -> String {
        match self.peer {
            Some(peer) => peer.ip().to_string(),
            None => self.describe(),
        }
    }

    fn give_way(&self, option: &'static str) {
        self.give_subscriptions_up(option);
    }
}
