//! An HTTP/2 connection and its state in `h2`. The poller reads, and opens new streams. Any thread may send: it drives
//! `h2`, or leaves that to the thread that drives it already ([`Http2Connection::push`]).
//!
//! Its parts: `carrier.rs` (the connection below), `core.rs` (`h2` and the state of the connection), `streams.rs`.
//! Operations on them: `driving.rs`, `opening.rs` (requests become streams), `ending.rs`. `settings.rs` has the limits
//! that the client is told: streams, windows, the size of a head.

mod carrier;
mod core;
mod driving;
mod ending;
mod opening;
mod settings;
mod streams;

pub(crate) use self::core::End;

use self::core::Core;
use super::delay::Delayed;
use super::listed::Listed;
use super::pipe::{Pipe, PipeState};
use super::signal::Signal;
use crate::agenda::Agenda;
use crate::clock::{AtomicMillis, Millis};
use crate::connection::place::Place;
use crate::connection::stream_queue::StreamQueue;
use crate::limits::budget::Budget;
use crate::spool::Spool;
use crate::stream::peers::Peers;
use crate::sync::Mutex;
use crate::transport::listener::Endpoint;
use crate::transport::poller::Key;
use crate::transport::Link;
use crate::worker::Worker;
use bytes::Bytes;
use carrier::Carrier;
use fairlead_wire::http2::Priority;
use h2::server::SendResponse;
use h2::RecvStream;
use http::Request;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::Wake;
use streams::Streams;

/// Most responses that are sent together.
const MOST_DELAYED: u32 = 16;

/// See the head of this file.
pub(crate) struct Http2Connection {
    me: Weak<Http2Connection>,
    carrier: Carrier,
    pub(crate) endpoint: Arc<Endpoint>,
    /// The peer and its proxy, for all requests.
    pub(crate) peers: Peers,
    /// The requests of this connection that wait for a thread.
    pub(crate) queue: Arc<StreamQueue>,
    core: Mutex<Core>,
    wakeup: Arc<Wakeup>,
    /// Set while a thread wants `h2` to be driven; see [`Http2Connection::push`].
    wanted: Signal,
    streams: Streams,
    /// Responses that wait to be sent with the next one, at least; above 0 the connection is registered in [`Delayed`].
    delayed: AtomicU32,
    /// The HTTP/2 connections of the engine with such responses.
    all_delayed: Arc<Delayed>,
}

/// The connection that begins to use HTTP/2, and the parts of its engine that it needs.
pub(crate) struct Beginning {
    pub(crate) place: Place,
    pub(crate) transport: Link,
    /// Bytes that were received already. They begin with the preface, unless the client has yet to send it.
    pub(crate) ahead: Vec<u8>,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) peers: Peers,
    pub(crate) queue: Arc<StreamQueue>,
    pub(crate) worker: Arc<Worker>,
}

/// The state that all HTTP/2 connections of an engine share.
#[derive(Clone)]
pub(crate) struct Shared {
    spool: Arc<Spool>,
    /// The connections with streams that the poller has to look at.
    pub(in crate::http2) due: Arc<Listed>,
    /// Their deadlines.
    pub(in crate::http2) agenda: Arc<Mutex<Agenda<Key>>>,
    pub(crate) delayed: Arc<Delayed>,
}

impl Shared {
    pub(in crate::http2) fn new(spool: &Arc<Spool>) -> Shared {
        Shared {
            spool: Arc::clone(spool),
            due: Arc::default(),
            agenda: Arc::default(),
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

/// A request that has arrived, as `h2` has it.
pub(crate) struct Arrival {
    pub(crate) request: Request<RecvStream>,
    pub(crate) respond: SendResponse<Bytes>,
}

/// Facts about a request, besides its head.
pub(crate) struct Begun {
    pub(crate) has_body: bool,
    /// Priority among the requests of the same connection.
    pub(crate) priority: Priority,
}

impl Http2Connection {
    /// Creates an HTTP/2 connection, which takes over the slot of a connection.
    pub(crate) fn new(beginning: Beginning, shared: Shared, now: Millis) -> Arc<Http2Connection> {
        let Beginning {
            place,
            transport,
            ahead,
            endpoint,
            peers,
            queue,
            worker,
        } = beginning;
        let pipe = PipeState::new(Arc::clone(&transport), ahead, now);
        let handshake = settings::builder(&worker.config).handshake(Pipe(Arc::clone(&pipe)));
        let Shared {
            spool,
            due,
            agenda,
            delayed: all_delayed,
        } = shared;
        let carrier = Carrier {
            key: super::connections::http2_key(place.key()),
            worker,
            transport,
            pipe,
            budget: Arc::clone(queue.budget()),
            spool,
            is_over: AtomicBool::new(false),
            noted: AtomicMillis::new(Millis::NEVER),
            agenda,
        };
        let connection = Arc::new_cyclic(|me| Http2Connection {
            me: me.clone(),
            carrier,
            endpoint,
            peers,
            queue,
            core: Mutex::new(Core::new(handshake, place)),
            wakeup: Arc::default(),
            wanted: Signal::default(),
            streams: Streams::new(me.clone(), due, now),
            delayed: AtomicU32::new(0),
            all_delayed,
        });
        let told: Weak<Http2Connection> = Arc::downgrade(&connection);
        connection.carrier.budget.tell(told);
        connection
    }

    pub(crate) fn key(&self) -> Key {
        self.carrier.key
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.carrier.transport
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.carrier.budget
    }

    /// Returns true if nothing can be sent or received any more.
    pub(crate) fn is_over(&self) -> bool {
        self.carrier.is_over()
    }
}

impl std::fmt::Debug for Http2Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Http2Connection")
            .field("key", &self.carrier.key)
            .finish_non_exhaustive()
    }
}
