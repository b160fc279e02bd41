//! Writes to a client: frames are queued and given to the kernel, as far as it takes them. What a client may leave
//! unsent is bounded.

use super::client::{Client, Events, Outbox, Protocol, State};
use super::encoding;
use super::inbox::Event;
use super::outbox::{Flushed, Frame};
use crate::clock::Millis;
use crate::config::Overflow;
use crate::pubsub::{Delivery, Publication, Subscriber};
use fairlead_wire::websocket::{Deflater, Opcode};
use parking_lot::MutexGuard;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

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
    /// False if the client is not open, or does not take what it was sent before.
    pub fn write(&self, data: &[u8], text: bool) -> bool {
        let mut outbox = self.outbox.lock();
        if !self.is_open() {
            return false;
        }
        let frame = match self.protocol {
            Protocol::WebSocket => self.message(&mut outbox, data, text),
            Protocol::EventStream { chunked } => encoding::event(data, chunked),
            Protocol::Stream { chunked } => encoding::piece(data, chunked),
        };
        self.send(outbox, Frame::Own(frame))
    }

    /// Sends one event; see [`fairlead_wire::event_stream::event`]. A WebSocket gets the data as text.
    pub fn write_event(&self, data: &[u8], name: Option<&[u8]>, id: Option<&[u8]>, retry: Option<u64>) -> bool {
        let Protocol::EventStream { chunked } = self.protocol else {
            return self.write(data, true);
        };
        let outbox = self.outbox.lock();
        self.is_open()
            && self.send(
                outbox,
                Frame::Own(encoding::named_event(data, name, id, retry, chunked)),
            )
    }

    /// Sends the next piece of a stream, if the client has taken enough of the earlier ones.
    pub fn offer(&self, data: &[u8]) -> Offered {
        let mut outbox = self.outbox.lock();
        let (Protocol::Stream { chunked }, Some(realtime), true) =
            (self.protocol, self.realtime.upgrade(), self.is_open())
        else {
            return Offered::Gone;
        };
        if outbox.frames.bytes() > realtime.worker.config.response_memory_bytes {
            return Offered::Full;
        }
        let piece = match outbox.own_chunks.as_mut().map(|chunks| chunks.decode(data)) {
            None => encoding::piece(data, chunked),
            Some(Ok(data)) => encoding::piece(&data, chunked),
            Some(Err(fault)) => {
                self.abort(outbox, fault);
                return Offered::Gone;
            }
        };
        outbox.begin();
        outbox.frames.push(Frame::Own(piece));
        if !outbox.writes {
            self.flush_locked(outbox);
        }
        Offered::Taken
    }

    /// Blocks for a moment, until the socket takes something or is closed. To be called without the lock of the
    /// language.
    pub fn wait_for_room(&self) {
        let outbox = self.outbox.lock();
        let Some(transport) = outbox.transport.clone().filter(|_| self.may_watch()) else {
            return;
        };
        let step = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let (descriptor, event) = transport.signal(PollFlags::OUT);
        drop(outbox);
        let _ = poll(&mut [PollFd::new(&descriptor, event)], Some(&step));
        self.flush_locked(self.outbox.lock());
    }

    fn message(&self, outbox: &mut Outbox, data: &[u8], text: bool) -> Vec<u8> {
        let opcode = encoding::opcode(data, text);
        match self.deflate {
            Some(deflate) if self.is_worth_deflating(data) => {
                if deflate.server_no_context {
                    encoding::deflated(opcode, data, deflate.server_bits)
                } else {
                    let deflater = outbox
                        .deflater
                        .get_or_insert_with(|| Box::new(Deflater::new(deflate.server_bits)));
                    encoding::deflated_with(deflater, opcode, data)
                }
            }
            _ => encoding::plain(opcode, data),
        }
    }

    fn is_worth_deflating(&self, data: &[u8]) -> bool {
        let least = self
            .realtime
            .upgrade()
            .map_or(0, |realtime| realtime.worker.config.deflate_min_bytes);
        data.len() >= least
    }

    /// Queues a frame and, unless others wait for the socket already, gives it to the kernel.
    pub(super) fn send<'a>(&'a self, mut outbox: MutexGuard<'a, Outbox>, frame: Frame) -> bool {
        match self.queue(&mut outbox, frame) {
            Ok(()) => {}
            Err(frame) => {
                // The queue may only be full because it was not offered to the kernel yet.
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
        if !outbox.writes {
            self.flush_locked(outbox);
        }
        true
    }

    /// Queues a frame, unless too much waits already.
    fn queue(&self, outbox: &mut Outbox, frame: Frame) -> Result<(), Frame> {
        if !outbox.frames.is_empty() && outbox.frames.bytes() > self.most_bytes() {
            return Err(frame);
        }
        outbox.begin();
        outbox.frames.push(frame);
        outbox.owes_drained = true;
        Ok(())
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.realtime
            .upgrade()
            .map_or(usize::MAX, |realtime| realtime.worker.config.client_pending_bytes)
    }

    /// The client does not take what it is sent.
    fn overflow(&self, outbox: MutexGuard<'_, Outbox>) -> bool {
        let Some(realtime) = self.realtime.upgrade() else {
            return false;
        };
        match realtime.worker.config.client_overflow {
            Overflow::Drop => {
                realtime.worker.counters().dropped.fetch_add(1, Relaxed);
            }
            Overflow::Close => {
                realtime.worker.counters().overflowed.fetch_add(1, Relaxed);
                self.fail_slow(outbox, &realtime);
            }
        }
        false
    }

    /// Gives the kernel what it takes, and handles the result.
    pub(super) fn flush_locked(&self, mut outbox: MutexGuard<'_, Outbox>) {
        let Outbox {
            transport: Some(transport),
            frames,
            moved,
            meter,
            ..
        } = &mut *outbox
        else {
            return;
        };
        let mut taken = 0;
        let flushed = frames.flush(&**transport, &mut taken);
        if taken > 0 {
            *moved = Millis::now();
            if let (Ok(Flushed::Part), Some(realtime)) = (flushed, self.realtime.upgrade()) {
                meter.moved(taken as u64, *moved, realtime.worker.config.write_rate());
            }
        }
        match flushed {
            Ok(Flushed::Part) => self.watch_writes(&mut outbox, true),
            Ok(Flushed::Everything) => {
                self.watch_writes(&mut outbox, false);
                let drained = std::mem::take(&mut outbox.owes_drained) && self.wants(Events::DRAINED);
                let is_over = self.has_sent_all(&mut outbox);
                drop(outbox);
                if drained {
                    self.tell(Event::Drained);
                }
                if is_over {
                    self.end();
                }
            }
            Err(_) => {
                drop(outbox);
                self.end();
            }
        }
    }

    /// The socket is writable again.
    pub(crate) fn writable(&self) {
        self.flush_locked(self.outbox.lock());
    }

    fn watch_writes(&self, outbox: &mut Outbox, writes: bool) {
        if std::mem::replace(&mut outbox.writes, writes) != writes {
            self.watch(outbox);
        }
    }

    /// Tells the poller what to watch the socket for.
    pub(super) fn watch(&self, outbox: &mut Outbox) {
        let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) else {
            return;
        };
        if !self.may_watch() {
            return;
        }
        let _ = transport.watch_client(outbox.reads, outbox.writes, self.key, &realtime.worker.poller);
        if outbox.writes {
            let deadline = outbox.meter.deadline(realtime.worker.config.write_rate());
            realtime.expect(deadline);
        }
    }

    /// Whether events may be asked for, to be called with the outbox locked: whoever ends the client unwatches it with that
    /// lock afterwards, and nobody would do so again.
    fn may_watch(&self) -> bool {
        self.state() != State::Closed
    }

    fn published(&self, publication: &Arc<Publication>, delivery: Delivery, outbox: &mut Outbox) -> Frame {
        let message = &publication.message;
        match self.protocol {
            Protocol::EventStream { chunked } => Frame::Shared(encoding::shared_event(publication, chunked)),
            Protocol::Stream { chunked } => Frame::Own(encoding::piece(message, chunked)),
            Protocol::WebSocket => {
                let text = delivery != Delivery::Binary;
                match self.deflate {
                    Some(deflate) if self.is_worth_deflating(message) => {
                        if encoding::can_share(deflate) {
                            Frame::Shared(encoding::shared_message(publication, text, true))
                        } else {
                            Frame::Own(self.message(outbox, message, text))
                        }
                    }
                    _ => Frame::Shared(encoding::shared_message(publication, text, false)),
                }
            }
        }
    }

    /// Adds an event for the app. If the app does not keep up, the client overflows as if it did not read.
    fn publish_event(&self, publication: &Arc<Publication>, id: u64) {
        let inbox = self.inbox.lock();
        if !inbox.has_room(self.most_bytes()) {
            drop(inbox);
            self.overflow(self.outbox.lock());
            return;
        }
        drop(inbox);
        self.tell(Event::Published(id, Arc::clone(publication)));
    }

    pub(super) fn pong(&self, data: &[u8]) {
        let outbox = self.outbox.lock();
        if self.is_open() && outbox.frames.bytes() <= self.most_bytes() {
            self.send_quietly(outbox, encoding::plain(Opcode::Pong, data));
        }
    }

    /// Sends the head of the response, before anything that was queued already.
    pub(super) fn send_first(&self, mut outbox: MutexGuard<'_, Outbox>, head: Frame) {
        outbox.frames.push_first(head);
        self.flush_locked(outbox);
    }

    /// Sends a frame of the server itself.
    pub(super) fn send_quietly(&self, mut outbox: MutexGuard<'_, Outbox>, frame: Vec<u8>) {
        outbox.begin();
        outbox.frames.push(Frame::Own(frame));
        if !outbox.writes {
            self.flush_locked(outbox);
        }
    }
}

impl Subscriber for Client {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool {
        if let Delivery::Event(id) = delivery {
            if self.is_open() {
                self.publish_event(publication, id);
            }
            return false;
        }
        let mut outbox = self.outbox.lock();
        if !self.is_open() {
            return false;
        }
        let frame = self.published(publication, delivery, &mut outbox);
        if let Err(frame) = self.queue(&mut outbox, frame) {
            self.send(outbox, frame);
            return false;
        }
        !outbox.writes
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
}
