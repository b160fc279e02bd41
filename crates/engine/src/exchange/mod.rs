//! One request and its response, as an [`App`](crate::App) sees them: the head and body of the request, and a writer
//! that frames the response (RFC 9112 §6, §7): `head.rs` and `body.rs`. `ending.rs` has the consequences for the
//! connection.
//!
//! Nothing here blocks, and nothing is lost if the app stops half-way: the engine ends every [`Exchange`], and closes
//! the connection if the response is incomplete.

mod body;
mod body_sender;
mod compression;
mod deadline;
mod early_hints;
mod ending;
mod file;
mod framing;
mod head;
mod hijack;
mod loan;
mod plain;
pub(crate) mod relay;
mod sendfile;
mod services;
mod state;
mod timing;
mod upgrade;
mod wait;

pub use body::LONG_BYTES;
pub(crate) use body_sender::BodySender;
pub use compression::{Coder, Until};
pub use deadline::Deadline;
pub(crate) use deadline::Deadlines;
pub(crate) use ending::{Ended, Outcome};
pub use sendfile::Search;
pub(crate) use services::{Services, RETRY_AFTER};
pub(crate) use upgrade::upgrade_offer;
pub use wait::Wait;

use crate::clock::{DateCache, Nanos};
use crate::http::body::Body;
use crate::http::http1::BodyFraming;
use crate::http::own_chunks::OwnChunks;
use crate::http::request::Request;
use crate::http::response::ResponseHead;
use crate::stream::Stream;
use crate::tls::Session;
use crate::transport::listener::Origin;
use head::Head;
use state::{OutputState, Owner, Persistence, Reach, ResponsePhase};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The client is gone: further bytes of the app do not reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// State that a thread keeps from response to response.
#[derive(Default)]
pub(crate) struct Workspace {
    date: DateCache,
    head: ResponseHead,
    /// The deadline of the request that the thread runs; `None` if the thread has never had one.
    deadline: Option<Arc<Deadline>>,
}

/// A request and its response.
pub struct Exchange<'a> {
    stream: &'a mut Stream,
    services: &'a Arc<Services>,
    phase: ResponsePhase,
    head: Head<'a>,
    persistence: Persistence,
    /// Length of the output before this response: it is truncated to this if the response is taken back.
    start: usize,
    body_bytes: u64,
    /// State of the app's waits for the client so far.
    waits: Option<wait::Waits>,
    /// The length of these waits.
    sending: Duration,
    output: OutputState,
    /// Made when the output is first lent.
    loan: Option<loan::Lending>,
    reach: Reach,
    faulty: Option<&'static str>,
    owner: Owner,
    coder: Option<Box<Coder>>,
    /// Finds the data in a body that the app frames itself.
    own_chunks: Option<Box<OwnChunks>>,
    deadline: &'a mut Option<Arc<Deadline>>,
    /// True if the client has got a 504 in place of the response.
    is_expired: bool,
    /// Returns the lock wait so far, if the client is told the times of the request.
    lock_wait: Option<timing::LockWait<'a>>,
}

/// The source of the time at which a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTime {
    /// The fields of the request, if it has some.
    AsSent,
    /// The server. Fields of the request do not count.
    OfServer,
}

impl StartTime {
    /// Fields in which proxies send the time: readers take the first one, or the earliest time.
    pub const FIELDS: [&'static [u8]; 3] = [b"x-request-start", b"x-queue-start", b"x-middleware-start"];
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        stream: &'a mut Stream,
        services: &'a Arc<Services>,
        workspace: &'a mut Workspace,
    ) -> Exchange<'a> {
        let Workspace { date, head, deadline } = workspace;
        let persistence = Persistence::of(stream.request.head.keep_alive);
        let start = stream.output.buffer().len();
        Exchange {
            stream,
            services,
            phase: ResponsePhase::NotStarted,
            head: Head::new(head, date),
            persistence,
            start,
            body_bytes: 0,
            waits: None,
            sending: Duration::ZERO,
            output: OutputState::Held,
            loan: None,
            reach: Reach::There,
            faulty: None,
            owner: Owner::Server,
            coder: None,
            own_chunks: None,
            deadline,
            is_expired: false,
            lock_wait: None,
        }
    }

    /// The request. Its body is taken with [`Exchange::take_body`].
    pub fn request(&self) -> &Request {
        &self.stream.request
    }

    /// The complete body, until it is taken.
    pub fn body(&self) -> &Body {
        &self.stream.request.body
    }

    /// The complete body, which the caller may keep.
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.stream.request.body)
    }

    /// The listener's address.
    pub fn origin(&self) -> &Origin {
        self.stream.origin()
    }

    /// Returns true if the scheme of the request is `https`.
    pub fn is_secure(&self) -> bool {
        self.stream.is_secure(self.services.config())
    }

    /// The source of the time at which the request came, for the app.
    pub fn start_time(&self) -> StartTime {
        if !self.services.config().request_start {
            return StartTime::AsSent;
        }
        let is_sent = || {
            StartTime::FIELDS
                .iter()
                .any(|name| self.request().field(name).is_some())
        };
        if self.stream.peers.is_trusted() && is_sent() {
            StartTime::AsSent
        } else {
            StartTime::OfServer
        }
    }

    /// The host that the client has requested, possibly with a port, if a trusted proxy reports it. It is a valid one.
    pub fn forwarded_host(&self) -> Option<&[u8]> {
        self.stream.peers.host()
    }

    /// The port that the client has used, if a trusted proxy reports it separately.
    pub fn forwarded_port(&self) -> Option<u16> {
        self.stream.peers.port()
    }

    /// Another descriptor of the socket, for an app that inspects it; `None` if there is none that it can use.
    pub fn socket(&self) -> Option<OwnedFd> {
        let transport = self.stream.transport();
        transport
            .as_plain()
            .filter(|_| !transport.is_relayed())?
            .try_clone()
            .ok()
    }

    /// The TLS session of the client; `None` without TLS.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.stream.session()
    }

    /// The client's TLS session with a trusted proxy, as the proxy reports it; [`Exchange::session`] is our session
    /// with the proxy.
    pub fn claimed_session(&self) -> Option<&Arc<Session>> {
        self.stream.claimed_session()
    }

    /// The client's address; `None` for a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer()
    }

    /// Gives the running request `timeout` from now to begin its response; `None`: all the time that it needs. Then a native
    /// thread responds with 504, and further bytes of the app do not reach the client. Returns the time of the deadline,
    /// on the monotonic clock; `None` if there is none, because the response has begun.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        if !matches!(self.phase, ResponsePhase::NotStarted | ResponsePhase::EarlyHints) || self.is_expired {
            return None;
        }
        let Some(timeout) = timeout else {
            self.may_respond();
            return None;
        };
        let deadlines = &self.services.deadlines;
        let at = deadlines.begin(self.deadline, self.stream, Nanos::now(), timeout)?;
        Some(Duration::from_nanos(at.to_number()))
    }

    /// The deadline of the request that this thread runs, if it has ever had one.
    pub fn deadline(&self) -> Option<&Arc<Deadline>> {
        self.deadline.as_ref()
    }

    /// The deadline, except in a process that the app has forked: there another thread may seem to hold its lock.
    fn own_deadline(&self) -> Option<&Arc<Deadline>> {
        self.deadline.as_ref().filter(|_| self.services.worker.is_at_home())
    }

    /// Called when the response begins. Returns false if the deadline has expired.
    fn may_respond(&mut self) -> bool {
        if let Some(deadline) = self.own_deadline() {
            self.is_expired |= !deadline.settle();
        }
        if self.is_expired {
            self.lost();
        }
        !self.is_expired
    }

    /// Returns true if a response was begun.
    pub fn has_started(&self) -> bool {
        !matches!(self.phase, ResponsePhase::NotStarted | ResponsePhase::EarlyHints)
    }

    /// Returns true if the client has left, as far as is known. A client that has closed its half of the connection is
    /// asked, once; a later call has the answer.
    pub fn is_client_gone(&mut self) -> bool {
        let may_ask = self.phase == ResponsePhase::NotStarted && self.output == OutputState::Held;
        self.is_gone()
            || match may_ask {
                true => self.stream.has_left_or_ask(),
                false => self.stream.has_left(),
            }
    }

    /// Returns true if the client will get a body; if not, the app need not make one.
    pub fn wants_body(&self) -> bool {
        !matches!(
            self.phase,
            ResponsePhase::Body(BodyFraming::None) | ResponsePhase::Ended
        ) && !self.is_gone()
    }

    fn is_gone(&self) -> bool {
        self.reach != Reach::There
    }

    fn is_in_wait(&self) -> bool {
        self.output == OutputState::InWait
    }

    fn lost(&mut self) -> Gone {
        self.reach = self.reach.max(Reach::Gone);
        self.persistence.close();
        Gone
    }

    /// Takes back a response if no part of it was sent yet, so that another one can be made. Returns false if it is too
    /// late.
    pub fn take_back(&mut self) -> bool {
        let is_ours = matches!(self.owner, Owner::Server) && self.output == OutputState::Held;
        if !is_ours || self.body_bytes > 0 || !self.stream.output.is_unsent() {
            return false;
        }
        self.stream.output.buffer().truncate(self.start);
        self.phase = ResponsePhase::NotStarted;
        self.head.forget();
        self.coder = None;
        self.own_chunks = None;
        true
    }

    /// Gives up a response that cannot be completed: the connection will be closed, so that the client notices.
    pub fn abort(&mut self) {
        self.phase = ResponsePhase::Ended;
        self.lost();
    }

    /// Notes a fault in the response; it is logged once, with the request's target.
    pub fn blame(&mut self, fault: &'static str) {
        self.faulty = Some(fault);
    }
}
