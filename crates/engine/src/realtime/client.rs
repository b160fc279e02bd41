//! One client that stays connected, shared by all who write to it: the app, those who publish, and the reactor.
//!
//! Nothing here waits. Whoever writes hands the kernel what it takes at once; the poller comes back for the rest. What a
//! client may leave unsent is bounded, and so is what of its own may wait for the app.

use super::encoding;
use super::ending::Ending;
use super::inbox::{Event, Inbox};
use super::outbox::{Flushed, Frame, Frames};
use super::reader::Reader;
use crate::clock::milliseconds;
use crate::config::Overflow;
use crate::engine::Engine;
use crate::holding::Key;
use crate::pubsub::{Delivery, Match, Publication, Subscriber};
use fairlead_wire::websocket::{Deflate, Deflater, Opcode};
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// What is spoken with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 6455.
    WebSocket,
    /// Server-sent events, in chunks or until the connection ends.
    EventStream {
        /// Whether each event is a chunk (RFC 9112 §7.1).
        chunked: bool,
    },
    /// The body of an answer that goes on after the app has returned.
    Stream {
        /// Whether each piece is a chunk.
        chunked: bool,
    },
}

/// What became of a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is on its way.
    Taken,
    /// Not now: see [`Client::wait_for_room`].
    Full,
    /// The stream has ended.
    Gone,
}

/// Which events an app wants to be told; all others cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u8);

impl Events {
    /// Messages of the peer.
    pub const MESSAGE: Events = Events(1);
    /// That everything was handed to the kernel.
    pub const DRAINED: Events = Events(2);

    /// These and those.
    #[must_use]
    pub fn and(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

/// Where a client is on its way; only ever forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum State {
    Open,
    /// Our close frame is under way, the peer's is awaited.
    Closing,
    /// The last word is under way; what the peer still says is thrown away.
    Failed,
    Closed,
}

pub(super) struct Outbox {
    /// Gone once the client is.
    pub(super) socket: Option<Arc<OwnedFd>>,
    pub(super) frames: Frames,
    /// Milliseconds at which the socket last took something, or was first offered what it has not taken.
    pub(super) moved: u64,
    /// What the poller waits for.
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether something was written since the app was last told that all is sent.
    owes_drained: bool,
    /// Made when first needed, where the context is kept.
    deflater: Option<Box<Deflater>>,
    pub(super) ending: Option<Ending>,
}

/// A client; see the head of this file.
pub struct Client {
    me: Weak<Client>,
    pub(super) key: Key,
    id: u64,
    protocol: Protocol,
    pub(super) deflate: Option<Deflate>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) engine: Weak<Engine>,
    state: AtomicU8,
    wanted: AtomicU8,
    /// Whether reading has stopped because the app does not keep up.
    pub(super) paused: AtomicBool,
    /// Seconds of silence after which a sign of life is sent; 0 for never.
    pub(super) timeout: AtomicU32,
    /// Milliseconds at which the peer was last heard, and at which it was last asked whether it is there.
    pub(super) heard: AtomicU64,
    pub(super) pinged: AtomicU64,
    pub(super) outbox: Mutex<Outbox>,
    pub(super) reader: Mutex<Reader>,
    pub(super) inbox: Mutex<Inbox>,
    /// Names, and the ids that their events carry.
    subscriptions: Mutex<Vec<(Box<[u8]>, u64)>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("id", &self.id)
            .field("protocol", &self.protocol)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// What a client begins with.
pub(super) struct Beginning {
    pub(super) key: Key,
    pub(super) protocol: Protocol,
    pub(super) deflate: Option<Deflate>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) timeout: u32,
}

/// Ids of whoever subscribes, in the whole process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

impl Client {
    pub(super) fn new(engine: Weak<Engine>, beginning: Beginning) -> Arc<Client> {
        let now = milliseconds();
        Arc::new_cyclic(|me| Client {
            me: me.clone(),
            key: beginning.key,
            id: next_id(),
            protocol: beginning.protocol,
            deflate: beginning.deflate,
            peer: beginning.peer,
            engine,
            state: AtomicU8::new(State::Open as u8),
            wanted: AtomicU8::new(u8::MAX),
            paused: AtomicBool::new(false),
            timeout: AtomicU32::new(beginning.timeout),
            heard: AtomicU64::new(now),
            pinged: AtomicU64::new(now),
            reader: Mutex::new(Reader::new(
                Arc::clone(&beginning.socket),
                beginning.protocol,
                beginning.deflate,
            )),
            outbox: Mutex::new(Outbox {
                socket: Some(beginning.socket),
                frames: Frames::default(),
                moved: now,
                reads: false,
                writes: false,
                owes_drained: false,
                deflater: None,
                ending: None,
            }),
            inbox: Mutex::default(),
            subscriptions: Mutex::default(),
        })
    }

    /// The number of the client's place in its engine: free for another one after [`Event::Close`] has run.
    pub fn place(&self) -> usize {
        self.key as u32 as usize
    }

    /// What is spoken with it.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether something that is written now may still arrive.
    pub fn is_open(&self) -> bool {
        self.state() == State::Open
    }

    /// Frames that the kernel has not taken as a whole; -1 when the client is not open.
    pub fn pending(&self) -> isize {
        if self.is_open() {
            self.outbox.lock().frames.len() as isize
        } else {
            -1
        }
    }

    /// Says which events the app wants. All, until this is called.
    pub fn want(&self, events: Events) {
        self.wanted.store(events.0, Relaxed);
    }

    pub(super) fn wants(&self, events: Events) -> bool {
        self.wanted.load(Relaxed) & events.0 != 0
    }

    /// Seconds of silence after which the server sends a sign of life; 0: never.
    pub fn timeout(&self) -> u32 {
        self.timeout.load(Relaxed)
    }

    /// Sets [`Client::timeout`].
    pub fn set_timeout(&self, seconds: u32) {
        self.timeout.store(seconds, Relaxed);
        if let (Some(engine), true) = (self.engine.upgrade(), seconds > 0) {
            let deadline = milliseconds() + u64::from(seconds) * 1000;
            engine.timer.expect(deadline, &engine.poller);
        }
    }

    /// Sends a message: a text or binary frame, or an event without a name. Text that is not UTF-8 goes as binary. False
    /// when the client is not open, or does not take what it was sent before.
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

    /// Gives a stream its next piece, if the client has taken enough of those before.
    pub fn offer(&self, data: &[u8]) -> Offered {
        let mut outbox = self.outbox.lock();
        let (Protocol::Stream { chunked }, Some(engine), true) = (self.protocol, self.engine.upgrade(), self.is_open())
        else {
            return Offered::Gone;
        };
        if outbox.frames.bytes() > engine.config.response_memory_bytes {
            return Offered::Full;
        }
        if outbox.frames.is_empty() {
            outbox.moved = milliseconds();
        }
        outbox.frames.push(Frame::Own(encoding::piece(data, chunked)));
        if !outbox.writes {
            self.flush_locked(outbox);
        }
        Offered::Taken
    }

    /// Blocks for a moment, until the socket takes something or is gone. Call it without holding any lock of a language.
    pub fn wait_for_room(&self) {
        let Some(socket) = self.outbox.lock().socket.clone() else {
            return;
        };
        let step = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let _ = poll(&mut [PollFd::new(&*socket, PollFlags::OUT)], Some(&step));
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
            .engine
            .upgrade()
            .map_or(0, |engine| engine.config.deflate_min_bytes);
        data.len() >= least
    }

    /// Queues a frame and, unless others wait for the socket already, hands it to the kernel.
    pub(super) fn send<'a>(&'a self, mut outbox: MutexGuard<'a, Outbox>, frame: Frame) -> bool {
        match self.queue(&mut outbox, frame) {
            Ok(()) => {}
            Err(frame) => {
                // What is queued may be so much only because nobody has offered it to the kernel yet.
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

    /// Queues a frame unless too much waits already.
    fn queue(&self, outbox: &mut Outbox, frame: Frame) -> Result<(), Frame> {
        if outbox.frames.is_empty() {
            outbox.moved = milliseconds();
        } else if outbox.frames.bytes() > self.most_bytes() {
            return Err(frame);
        }
        outbox.frames.push(frame);
        outbox.owes_drained = true;
        Ok(())
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.engine
            .upgrade()
            .map_or(usize::MAX, |engine| engine.config.client_pending_bytes)
    }

    /// The client does not take what it is sent.
    fn overflow(&self, outbox: MutexGuard<'_, Outbox>) -> bool {
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        match engine.config.client_overflow {
            Overflow::Drop => {
                engine.counters().dropped.fetch_add(1, Relaxed);
            }
            Overflow::Close => {
                engine.counters().overflowed.fetch_add(1, Relaxed);
                self.fail(outbox, 1013, "does not take what it is sent");
            }
        }
        false
    }

    /// Hands the kernel what it takes, and deals with what follows from that.
    pub(super) fn flush_locked(&self, mut outbox: MutexGuard<'_, Outbox>) {
        let Outbox {
            socket: Some(socket),
            frames,
            moved,
            ..
        } = &mut *outbox
        else {
            return;
        };
        let mut taken = 0;
        let flushed = frames.flush(socket, &mut taken);
        if taken > 0 {
            *moved = milliseconds();
        }
        match flushed {
            Ok(Flushed::Part) => self.watch_writes(&mut outbox, true),
            Ok(Flushed::Everything) => {
                self.watch_writes(&mut outbox, false);
                let drained = std::mem::take(&mut outbox.owes_drained) && self.wants(Events::DRAINED);
                let is_over = self.has_said_all(&mut outbox);
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

    /// The socket takes something again.
    pub(crate) fn writable(&self) {
        self.flush_locked(self.outbox.lock());
    }

    fn watch_writes(&self, outbox: &mut Outbox, writes: bool) {
        if std::mem::replace(&mut outbox.writes, writes) != writes {
            self.watch(outbox);
        }
    }

    /// Tells the poller what is wanted of the socket.
    pub(super) fn watch(&self, outbox: &mut Outbox) {
        let (Some(engine), Some(socket)) = (self.engine.upgrade(), &outbox.socket) else {
            return;
        };
        let _ = engine
            .poller
            .change_client(socket, self.key, outbox.reads, outbox.writes);
        if outbox.writes {
            let deadline = outbox.moved + engine.write_timeout();
            engine.timer.expect(deadline, &engine.poller);
        }
    }

    /// Adds an event and, if it is the only one, puts the client into the ready queue.
    pub(super) fn tell(&self, event: Event) {
        if self.inbox.lock().push(event) {
            if let (Some(engine), Some(client)) = (self.engine.upgrade(), self.me.upgrade()) {
                engine.schedule(client);
            }
        }
    }

    /// Says that the server is about to end. An answer that goes on is rather let finish.
    pub(super) fn dismiss(&self) {
        if !matches!(self.protocol, Protocol::Stream { .. }) {
            self.tell(Event::Shutdown);
        }
    }

    /// Says that the client has another handler: the app is told before any event that waits.
    pub fn replaced(&self) {
        self.tell(Event::Replaced);
    }

    /// Subscribes to a channel, or to those that match a pattern. Returns the number of this process's subscribers of that
    /// name and, if the client had subscribed to it before, the id of that time; `None` when the client is not open.
    pub fn subscribe(&self, name: &[u8], kind: Match, delivery: Delivery) -> Option<(usize, Option<u64>)> {
        let (engine, me) = (self.engine.upgrade()?, self.me.upgrade()?);
        let mut subscriptions = self.subscriptions.lock();
        if !self.is_open() {
            return None;
        }
        let id = match delivery {
            Delivery::Event(id) => id,
            _ => 0,
        };
        let before = match subscriptions.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => Some(std::mem::replace(known, id)),
            None => {
                subscriptions.push((name.into(), id));
                None
            }
        };
        Some((engine.hub.subscribe(me, name, kind, delivery), before))
    }

    /// Ends a subscription. Returns how many of that name are left in this process and the id of its events; `None` when
    /// there was none.
    pub fn unsubscribe(&self, name: &[u8]) -> Option<(usize, u64)> {
        let engine = self.engine.upgrade()?;
        let mut subscriptions = self.subscriptions.lock();
        let index = subscriptions.iter().position(|(known, _)| **known == *name)?;
        let (_, id) = subscriptions.swap_remove(index);
        engine.hub.unsubscribe(self.id, name).map(|left| (left, id))
    }

    /// Ends all subscriptions; returns the names that nobody in this process is subscribed to any more.
    pub(super) fn unsubscribe_all(&self, engine: &Engine) -> Vec<Box<[u8]>> {
        let subscriptions = std::mem::take(&mut *self.subscriptions.lock());
        subscriptions
            .into_iter()
            .filter(|(name, _)| engine.hub.unsubscribe(self.id, name) == Some(0))
            .map(|(name, _)| name)
            .collect()
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(SeqCst) {
            0 => State::Open,
            1 => State::Closing,
            2 => State::Failed,
            _ => State::Closed,
        }
    }

    /// Goes on to `state`; false if the client was as far already.
    pub(super) fn advance(&self, state: State) -> bool {
        self.state.fetch_max(state as u8, SeqCst) < state as u8
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

    /// An event for the app; what the app does not take in time counts as what the client does not take.
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

    /// Sends the head of the answer, before anything that was queued already.
    pub(super) fn send_first(&self, mut outbox: MutexGuard<'_, Outbox>, head: Frame) {
        outbox.frames.push_first(head);
        self.flush_locked(outbox);
    }

    /// Sends a frame that is none of the app's.
    pub(super) fn send_quietly(&self, mut outbox: MutexGuard<'_, Outbox>, frame: Vec<u8>) {
        if outbox.frames.is_empty() {
            outbox.moved = milliseconds();
        }
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
