//! One connected client, shared by the app, publishers and the reactor, which all write to it.
//!
//! Nothing here blocks. A write gives the kernel as much as it takes at once; the poller sends the rest. The unsent
//! bytes of a client are bounded, and so are its messages that wait for the app.

use super::backpressure::Backpressure;
use super::cable::{Receipts, SignedStreams};
use super::carrier::Carrier;
use super::clients::index;
use super::encoder::Encoder;
use super::ending::EndState;
use super::inbox::{Event, Inbox};
use super::keep_alive::KeepAlive;
use super::migration::Departure;
use super::mobility::Mobility;
use super::outbox::Outbox;
use super::reader::Reader;
use super::remainder::Remainder;
use super::subscriptions::Subscriptions;
use super::unfinished::MessageDue;
use super::{Realtime, Scheduled};
use crate::clock::{AtomicMillis, Millis};
use crate::config::fair_by::Flow;
use crate::limits::budget::Budget;
use crate::limits::holders::Owner;
use crate::observe::excess::About;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use crate::transport::Link;
use crate::worker::Count;
use fairlead_wire::websocket::Deflate;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 6455.
    WebSocket,
    /// Server-sent events, in chunks or until the connection ends.
    EventStream {
        /// Each event is a chunk (RFC 9112 §7.1).
        chunked: bool,
    },
    /// The body of a response that continues after the app has returned.
    Stream {
        /// Each piece is a chunk.
        chunked: bool,
    },
}

/// The events that an app wants; all others cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u8);

impl Events {
    /// Messages of the peer.
    pub const MESSAGE: Events = Events(1);
    /// The kernel has taken everything.
    pub const DRAINED: Events = Events(2);
    /// The question for the app's state: it has an answer.
    pub const HANDOVER: Events = Events(4);

    /// The union of both.
    #[must_use]
    pub fn and(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

/// A client; see the head of this file.
pub struct Client {
    pub(super) me: Weak<Client>,
    pub(super) key: Key,
    pub(super) id: u64,
    pub(super) encoder: Encoder,
    pub(super) peer: Option<SocketAddr>,
    /// Of its connection: see [`Origin::fingerprint`](crate::Origin::fingerprint).
    pub(super) origin: u32,
    /// The flow that its events count for, with fair scheduling by flow.
    pub(crate) flow: Option<Flow>,
    pub(super) realtime: Weak<Realtime>,
    budget: OnceLock<Arc<Budget>>,
    /// The owner: unsent bytes, incomplete messages and subscriptions of all its clients count together.
    pub(super) owner: Owner,
    state: AtomicU8,
    wanted: AtomicU8,
    pub(super) mobility: Mobility,
    pub(super) backpressure: Backpressure,
    pub(super) departure: Departure,
    pub(super) keep_alive: KeepAlive,
    pub(super) message_due: MessageDue,
    /// The time for which the client is in the agenda. Written only while the agenda is locked.
    pub(super) noted: AtomicMillis,
    /// Locked after the reader, if both are.
    pub(super) outbox: Mutex<Outbox>,
    pub(super) reader: Mutex<Reader>,
    pub(super) inbox: Mutex<Inbox>,
    pub(super) subscriptions: Subscriptions,
    pub(super) receipts: Receipts,
    pub(super) signed_streams: OnceLock<Arc<SignedStreams>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("id", &self.id)
            .field("protocol", &self.protocol())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// The parts that a client is made from.
pub(super) struct Beginning {
    pub(super) key: Key,
    pub(super) protocol: Protocol,
    pub(super) deflate: Option<Deflate>,
    pub(super) deflate_min_bytes: usize,
    pub(super) peer: Option<SocketAddr>,
    pub(super) origin: u32,
    pub(super) owner: Owner,
    pub(super) flow: Option<Flow>,
    pub(super) transport: Link,
    pub(super) count: Count,
    pub(super) timeout: u32,
}

/// Ids of subscribers, unique in the process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

impl Client {
    pub(super) fn new(realtime: Weak<Realtime>, beginning: Beginning) -> Arc<Client> {
        let now = Millis::now();
        Arc::new_cyclic(|me| Client {
            me: me.clone(),
            key: beginning.key,
            id: next_id(),
            encoder: Encoder::new(beginning.protocol, beginning.deflate, beginning.deflate_min_bytes),
            peer: beginning.peer,
            origin: beginning.origin,
            flow: beginning.flow,
            realtime,
            budget: OnceLock::new(),
            owner: beginning.owner,
            state: AtomicU8::new(EndState::Open as u8),
            wanted: AtomicU8::new(u8::MAX),
            mobility: Mobility::default(),
            backpressure: Backpressure::default(),
            departure: Departure::default(),
            keep_alive: KeepAlive::new(beginning.timeout, now),
            message_due: MessageDue::new(now),
            noted: AtomicMillis::new(Millis::NEVER),
            reader: Mutex::new(Reader::new(
                Arc::clone(&beginning.transport),
                beginning.key,
                beginning.protocol,
                beginning.deflate,
            )),
            outbox: Mutex::new(Outbox::new(beginning.transport, beginning.count, now)),
            inbox: Mutex::default(),
            subscriptions: Subscriptions::default(),
            receipts: Receipts::default(),
            signed_streams: OnceLock::new(),
        })
    }

    /// The number of the client's slot in its engine; free for another client after [`Event::Close`] has run.
    pub fn place(&self) -> usize {
        index(self.key)
    }

    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        self.encoder.protocol()
    }

    /// Its own budget: for its rank, if it is no stream of HTTP/2, and for its incomplete message.
    pub(super) fn budget(&self, realtime: &Realtime) -> &Arc<Budget> {
        self.budget
            .get_or_init(|| realtime.budgets.budget_of(self.owner, self.key))
    }

    /// Returns true if it is the rest of a response, so that a complete end must differ from an early one.
    pub(crate) fn is_response(&self) -> bool {
        matches!(self.protocol(), Protocol::Stream { .. })
    }

    pub(super) fn is_web_socket(&self) -> bool {
        self.protocol() == Protocol::WebSocket
    }

    /// Returns true if its connection is borrowed: the next request may arrive there, even now. Also true after the
    /// connection was given back.
    pub(super) fn is_in_wait(&self) -> bool {
        self.is_response() && self.outbox.lock().carrier.as_ref().is_none_or(Carrier::is_shared)
    }

    /// Sets the rest of the response that the client continues.
    pub(crate) fn expect(&self, remainder: Remainder) {
        self.outbox.lock().remainder = remainder;
    }

    /// Returns true if bytes that are written now may still arrive.
    pub fn is_open(&self) -> bool {
        self.state() == EndState::Open
    }

    /// True unless the app has handed the client over: from then on it counts as closed for the app.
    pub fn is_here(&self) -> bool {
        self.is_open() && !self.departure.is_handed_over()
    }

    /// Frames that the kernel has not completely taken; -1 if the client is not open.
    pub fn pending(&self) -> isize {
        if self.is_open() {
            self.outbox.lock().frames.len() as isize
        } else {
            -1
        }
    }

    /// Sets the events that the app wants: all, until this is called.
    pub fn want(&self, events: Events) {
        self.wanted.store(events.0, Relaxed);
        if let Some(realtime) = self.realtime.upgrade() {
            self.mobility.choose(self.wants(Events::HANDOVER), &realtime.worker);
        }
    }

    /// The events that the app wants.
    pub(super) fn wanted(&self) -> Events {
        Events(self.wanted.load(Relaxed))
    }

    pub(super) fn wants(&self, events: Events) -> bool {
        self.wanted.load(Relaxed) & events.0 != 0
    }

    /// Seconds of silence after which the server sends a ping (or a comment); 0: never.
    pub fn timeout(&self) -> u32 {
        self.keep_alive.seconds()
    }

    /// Sets [`Client::timeout`].
    pub fn set_timeout(&self, seconds: u32) {
        self.keep_alive.set_seconds(seconds);
        if let (Some(realtime), Some(period)) = (self.realtime.upgrade(), self.keep_alive.period()) {
            realtime.expect(self, Millis::now() + period);
        }
    }

    /// Adds an event. If it is the only one, puts the client into the ready queue.
    pub(super) fn tell(&self, event: Event) {
        if self.inbox.lock().push(event) {
            if let (Some(realtime), Some(client)) = (self.realtime.upgrade(), self.me.upgrade()) {
                realtime.schedule(Scheduled::Client(client));
            }
        }
    }

    /// Announces that the server is about to end, or that its worker is and the client stays there. A streaming response may finish instead.
    pub(super) fn announce_shutdown(&self) {
        if !matches!(self.protocol(), Protocol::Stream { .. }) {
            self.tell(Event::Shutdown);
        }
    }

    /// Announces that the client has another handler: the app gets this event before any waiting event.
    pub fn replaced(&self) {
        self.tell(Event::Replaced);
    }

    pub(super) fn state(&self) -> EndState {
        match self.state.load(SeqCst) {
            0 => EndState::Open,
            1 => EndState::Closing,
            2 => EndState::Failed,
            _ => EndState::Closed,
        }
    }

    /// Changes the state to `state`. Returns false if the client was in this or a later state already.
    pub(super) fn advance(&self, state: EndState) -> bool {
        self.state.fetch_max(state as u8, SeqCst) < state as u8
    }

    /// Tells the poller which events of the socket to watch for.
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
            realtime.expect(self, deadline);
        }
    }

    /// Returns true if the socket may be watched; to be called with the outbox locked. The end of the client unwatches
    /// the socket with this lock held; a later watch would stay.
    pub(super) fn may_watch(&self) -> bool {
        self.state() != EndState::Closed
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.realtime
            .upgrade()
            .map_or(usize::MAX, |realtime| realtime.worker.config.client_pending_bytes)
    }

    pub(super) fn describe(&self) -> String {
        let kind = match self.protocol() {
            Protocol::WebSocket => "a WebSocket",
            Protocol::EventStream { .. } => "an event stream",
            Protocol::Stream { .. } => "a stream",
        };
        match self.peer {
            Some(peer) => format!("{kind} of {peer}"),
            None => format!("{kind} of a local client"),
        }
    }

    pub(super) fn tell_of_end(&self, why: std::fmt::Arguments<'_>) {
        if let Some(realtime) = self.realtime.upgrade() {
            let log = &realtime.worker.log;
            log.about_peer(
                About::Client,
                self.peer,
                format_args!("closed {}: {why}", self.describe()),
            );
        }
    }
}
