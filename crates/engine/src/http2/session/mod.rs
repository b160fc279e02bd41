//! A session: one connection of HTTP/2, and what `h2` knows of it. The poller reads, and takes in new streams. Any thread
//! may send: it drives `h2`, or leaves that to the thread that does so already ([`Session::push`]).
//!
//! ```text
//!   Preface ──▶ Open ──▶ Closing (GOAWAY is sent; what still comes is discarded) ──▶ Over
//!      └─────────┴── end of input, error ───────────────────────────────────────────────▲
//! ```

mod driving;
mod ending;
mod streams;

use super::delay::Delayed;
use super::pipe::{Pipe, PipeState};
use super::signal::Signal;
use super::stream::StreamSocket;
use crate::clock::{AtomicMillis, Millis};
use crate::config::Config;
use crate::connection::place::Place;
use crate::connection::turns::TurnLine;
use crate::limits::budget::{Budget, Eased};
use crate::spool::{Charge, Pace, Spool};
use crate::stream::peers::Peers;
use crate::sync::Mutex;
use crate::transport::listener::Endpoint;
use crate::transport::poller::Key;
use crate::transport::Link;
use crate::worker::Worker;
use bytes::Bytes;
use fairlead_wire::http2::{Flood, Priority};
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::Wake;

/// Bytes that a client may send of one body, and of all bodies of a connection, before they are taken in. They are the
/// most that a connection makes this server keep of them, beside what was taken in.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Most responses that are sent together.
const MOST_DELAYED: u32 = 16;

/// Unsent bytes are counted in steps of this. Fewer bytes are usually sent at once and need no counting.
const COUNTED_BYTES: usize = 16 * 1024;

/// Most bytes of a response that `h2` keeps.
const STREAM_BUFFER: usize = 64 * 1024;

/// Bytes that `h2` may keep beside small DATA frames: those of a turn, which [`Session::gather`] takes out of it, and of
/// what is read ahead while nothing can be sent.
const DATA_FRAME_BUDGET: usize = 4 << 20;

/// Most requests that are reset before they are taken in: those of a burst, which [`Flood::Resets`] bounds.
const PENDING_RESETS: usize = 200;

/// See the head of this file.
pub(crate) struct Session {
    me: Weak<Session>,
    key: Key,
    worker: Arc<Worker>,
    transport: Link,
    pub(crate) endpoint: Arc<Endpoint>,
    /// Who is at the other end, for all requests.
    pub(crate) peers: Peers,
    /// The requests of this session that wait for a thread.
    pub(crate) line: Arc<TurnLine>,
    /// Its part of the totals.
    budget: Arc<Budget>,
    pipe: Arc<PipeState>,
    core: Mutex<Core>,
    wakeup: Arc<Wakeup>,
    /// Whether somebody wants `h2` to be driven; see [`Session::push`].
    wanted: Signal,
    /// The streams that somebody waits for, by number.
    watched: Mutex<HashMap<u32, Arc<StreamSocket>>>,
    /// The streams that may receive something, by number.
    receiving: Mutex<HashMap<u32, Weak<StreamSocket>>>,
    streams: AtomicUsize,
    /// How many of the streams the app has.
    hijacked: AtomicUsize,
    /// When it has begun, or its last stream was over.
    idle_since: AtomicMillis,
    is_over: AtomicBool,
    /// Whether streams have to be looked at without an event of the socket, see [`Session::look_later`].
    looks_later: AtomicBool,
    /// What the sessions of an engine have in common.
    shared: Shared,
    /// What waits to be sent with the next response, at least; above 0 it is among those that [`Delayed`] has.
    delayed: AtomicU32,
}

/// What the sessions of an engine have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    spool: Arc<Spool>,
    /// Tells the poller that streams have to be looked at.
    pub(in crate::http2) is_any_due: Arc<AtomicBool>,
    pub(crate) delayed: Arc<Delayed>,
}

impl Shared {
    pub(in crate::http2) fn new(spool: &Arc<Spool>) -> Shared {
        Shared {
            spool: Arc::clone(spool),
            is_any_due: Arc::default(),
            delayed: Arc::default(),
        }
    }
}

/// Set by `h2` when it has something to do, or to send.
#[derive(Default)]
struct Wakeup {
    is_set: AtomicBool,
}

impl Wakeup {
    fn set(&self) {
        self.is_set.store(true, SeqCst);
    }

    fn take(&self) -> bool {
        self.is_set.load(SeqCst) && self.is_set.swap(false, SeqCst)
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.set();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
    }
}

struct Core {
    state: State,
    /// What the poller watches the socket for.
    interest: (bool, bool),
    /// Whether the client was told that the session ends.
    is_leaving: bool,
    /// Requests that the poller has not taken yet.
    arrivals: Vec<Arrival>,
    end: Option<End>,
    place: Option<Place>,
    /// For the bytes of responses that the client does not take.
    unsent: Option<Charge>,
    /// How fast the client takes them, while they count.
    pace: Pace,
}

enum State {
    Preface(Box<Handshake<Pipe, Bytes>>),
    Open(Box<Connection<Pipe, Bytes>>),
    Closing(Millis),
    Over,
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides have nothing more to say, or the client is gone.
    Usual,
    /// The client has sent too much of something.
    Flood(Flood),
    /// The client has violated the protocol.
    Violation(Reason),
    /// It was idle for too long.
    Idle,
    /// The client took too long for a frame, or takes nothing.
    Slow,
    /// It had the largest share of what all share, and others needed some.
    GaveWay,
}

/// A request that has arrived, as `h2` has it.
pub(crate) struct Arrival {
    pub(crate) request: Request<RecvStream>,
    pub(crate) respond: SendResponse<Bytes>,
}

/// What else is known of a request than its head.
pub(crate) struct Begun {
    pub(crate) has_body: bool,
    /// Among those of the same session.
    pub(crate) priority: Priority,
}

impl Session {
    /// A session over the transport of a connection: its place, and what was received already. `ahead` begins with the
    /// preface, or the client is about to send it.
    pub(crate) fn new(
        (place, transport, ahead): (Place, Link, Vec<u8>),
        (endpoint, peers): (Arc<Endpoint>, Peers),
        line: Arc<TurnLine>,
        (worker, shared): (Arc<Worker>, Shared),
        now: Millis,
    ) -> Arc<Session> {
        let pipe = PipeState::new(Arc::clone(&transport), ahead, now);
        let handshake = builder(&worker.config).handshake(Pipe(Arc::clone(&pipe)));
        let key = super::sessions::session_key(place.key());
        let core = Core {
            state: State::Preface(Box::new(handshake)),
            interest: (false, false),
            is_leaving: false,
            arrivals: Vec::new(),
            end: None,
            place: Some(place),
            unsent: None,
            pace: Pace::default(),
        };
        let budget = Arc::clone(line.budget());
        let session = Arc::new_cyclic(|me| Session {
            me: me.clone(),
            key,
            worker,
            transport,
            endpoint,
            peers,
            line,
            budget,
            pipe,
            core: Mutex::new(core),
            wakeup: Arc::default(),
            wanted: Signal::default(),
            watched: Mutex::default(),
            receiving: Mutex::default(),
            streams: AtomicUsize::new(0),
            hijacked: AtomicUsize::new(0),
            idle_since: AtomicMillis::new(now),
            is_over: AtomicBool::new(false),
            looks_later: AtomicBool::new(false),
            shared,
            delayed: AtomicU32::new(0),
        });
        let told: Weak<Session> = Arc::downgrade(&session);
        session.budget.tell(told);
        session
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.transport
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Whether nothing can be sent or received any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }
}

impl Eased for Session {
    fn eased(&self) {
        self.look_later();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Session")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn builder(config: &Config) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(config.http2_streams)
        .max_header_list_size(u32::try_from(config.head_max_bytes).unwrap_or(u32::MAX))
        .data_frame_budget(DATA_FRAME_BUDGET)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_send_buffer_size(STREAM_BUFFER);
    if config.http2_websockets {
        builder.enable_connect_protocol();
    }
    builder
}
