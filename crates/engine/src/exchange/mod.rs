//! One request and its response, as an [`App`](crate::App) sees them: the head and body of the request, and a writer
//! that frames the response (RFC 9112 §6, §7): `head.rs` and `body.rs`.
//!
//! Nothing here blocks, and nothing is lost if the app stops half-way: the engine ends every [`Exchange`], and closes
//! the connection if the response is incomplete.

mod body;
mod compression;
mod file;
mod head;
mod plain;
pub(crate) mod relay;
mod sendfile;
mod services;
mod upgrade;
mod wait;

pub use body::LONG_BYTES;
pub use compression::{Coder, Until};
pub(crate) use plain::HTML;
pub use sendfile::Search;
pub(crate) use services::Services;
pub(crate) use upgrade::upgrade_offer;
pub use wait::Wait;

use crate::clock::DateCache;
use crate::files::Named;
use crate::http::body::Body;
use crate::http::http1::{Announced, BodyFraming, OwnCoding, LAST_CHUNK};
use crate::http::own_chunks::{OwnChunks, UNFINISHED};
use crate::http::request::Request;
use crate::http::response::ResponseHead;
use crate::realtime::Client;
use crate::stream::Stream;
use crate::tls::Session;
use crate::transport::listener::Origin;
use crate::transport::Afterwards;
use fairlead_wire::Version;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use upgrade::Upgrade;

/// The client is gone: nothing that the app still writes reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponsePhase {
    NotStarted,
    EarlyHints,
    Head,
    /// The head of a response after which the connection becomes a client.
    Upgrade(Upgrade),
    Body(BodyFraming),
    Ended,
}

/// What a thread keeps from response to response.
#[derive(Default)]
pub(crate) struct Workspace {
    date: DateCache,
    head: ResponseHead,
}

/// A request and its response.
pub struct Exchange<'a> {
    stream: &'a mut Stream,
    services: &'a Arc<Services>,
    date: &'a mut DateCache,
    phase: ResponsePhase,
    /// The head of the response, until it is written.
    response: &'a mut ResponseHead,
    announced: Announced,
    close: bool,
    /// Whether only the end of the connection ends the body: a client must be able to tell it from an early one.
    ends_with_connection: bool,
    /// Length of the output before this response: it is truncated to this if the response is taken back.
    start: usize,
    body_bytes: u64,
    /// What the app has waited for the client so far.
    waits: Option<wait::Waits>,
    /// Whether the kernel may have some of this response.
    flushed: bool,
    gone: bool,
    /// Whether the client was aborted to relieve others: the connection is reset, so that not even what the kernel has
    /// is sent.
    is_aborted: bool,
    /// Whether a [`Wait`] has the output.
    lent: bool,
    faulty: Option<&'static str>,
    /// The client that the connection becomes.
    client: Option<Arc<Client>>,
    hijacked: bool,
    /// The file that the app has named to be sent.
    named: Option<Named>,
    coder: Option<Box<Coder>>,
    /// Finds the data in a body that the app frames itself.
    own_chunks: Option<Box<OwnChunks>>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        stream: &'a mut Stream,
        services: &'a Arc<Services>,
        workspace: &'a mut Workspace,
    ) -> Exchange<'a> {
        let close = !stream.request.head.keep_alive;
        let start = stream.output.buffer().len();
        workspace.head.start(0);
        Exchange {
            stream,
            services,
            date: &mut workspace.date,
            phase: ResponsePhase::NotStarted,
            response: &mut workspace.head,
            announced: Announced::default(),
            close,
            ends_with_connection: false,
            start,
            body_bytes: 0,
            waits: None,
            flushed: false,
            gone: false,
            is_aborted: false,
            lent: false,
            faulty: None,
            client: None,
            hijacked: false,
            named: None,
            coder: None,
            own_chunks: None,
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

    /// Whether the scheme of the request is `https`.
    pub fn is_secure(&self) -> bool {
        self.stream.is_secure(self.services.config())
    }

    /// The host that the client has asked for, and perhaps a port, if a trusted proxy tells it. It is a valid one.
    pub fn forwarded_host(&self) -> Option<&[u8]> {
        self.stream.peers.host()
    }

    /// The port that the client has asked, if a trusted proxy tells it by itself.
    pub fn forwarded_port(&self) -> Option<u16> {
        self.stream.peers.port()
    }

    /// Another descriptor of the socket, for an app that wants to look at it; `None` if there is none that it can use.
    pub fn socket(&self) -> Option<OwnedFd> {
        let transport = self.stream.transport();
        transport
            .as_plain()
            .filter(|_| !transport.is_relayed())?
            .try_clone()
            .ok()
    }

    /// What TLS has agreed on with the client; `None` without TLS.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.stream.session()
    }

    /// What a trusted proxy says of its own TLS with the client, where [`Exchange::session`] is our TLS with the proxy.
    pub fn claimed_session(&self) -> Option<&Arc<Session>> {
        self.stream.claimed_session()
    }

    /// The client's address; `None` for a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer()
    }

    /// Whether a response has been begun.
    pub fn has_started(&self) -> bool {
        !matches!(self.phase, ResponsePhase::NotStarted | ResponsePhase::EarlyHints)
    }

    /// Whether the app may send interim responses.
    pub fn offers_early_hints(&self) -> bool {
        self.services.config().early_hints
    }

    /// Whether the client will see a body; if not, the app need not make one.
    pub fn wants_body(&self) -> bool {
        !matches!(
            self.phase,
            ResponsePhase::Body(BodyFraming::None) | ResponsePhase::Ended
        ) && !self.gone
    }

    /// Whether the app may take the socket: not that of HTTP/2, which others share. But a tunnel becomes one of its own.
    pub fn can_hijack(&self) -> bool {
        self.request().version() != Version::Http2 || self.request().offers_upgrade()
    }

    /// Gives the socket to the app (Rack SPEC, "Hijacking"). Bytes that were read beyond the request can be read from
    /// it first. The engine forgets the connection once the app has returned.
    ///
    /// # Errors
    /// If there are no descriptors left, or not [`Exchange::can_hijack`].
    pub fn hijack(&mut self) -> std::io::Result<OwnedFd> {
        if !self.can_hijack() {
            let why = "a request of HTTP/2 has no socket of its own to hijack";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why));
        }
        let ahead = std::mem::take(&mut self.stream.input);
        let transport = self.stream.transport();
        let socket = match transport.as_plain() {
            Some(plain) if ahead.is_empty() => plain.try_clone()?,
            _ => relay::open(transport, ahead, &self.services.config().descriptors)?,
        };
        transport.give_back(Afterwards::GivenAway);
        transport.hijacked();
        self.hijacked = true;
        self.phase = ResponsePhase::Ended;
        Ok(socket)
    }

    /// Whether the socket was given to the app.
    pub fn is_hijacked(&self) -> bool {
        self.hijacked
    }

    /// Ends the head of a response whose body the app writes to the socket itself; the end of the connection ends it,
    /// and it has the length that the app has announced, if any.
    pub fn end_head_for_hijack(&mut self) {
        self.close = true;
        if self.announced.length.is_none() || self.has_own_framing() {
            self.announced.coding = Some(OwnCoding::NONE);
        }
        self.end_head(None);
    }

    fn lost(&mut self) -> Gone {
        self.gone = true;
        self.close = true;
        Gone
    }

    /// Takes back a response of which nothing was sent yet, so that another can be made. False if it is too late.
    pub fn take_back(&mut self) -> bool {
        let is_given_away = self.hijacked || self.client.is_some();
        if is_given_away || self.lent || self.flushed || self.body_bytes > 0 || !self.stream.output.is_unsent() {
            return false;
        }
        self.stream.output.buffer().truncate(self.start);
        self.phase = ResponsePhase::NotStarted;
        self.announced = Announced::default();
        self.named = None;
        self.coder = None;
        self.own_chunks = None;
        true
    }

    /// The response cannot be completed: the connection will be closed, so that the client notices.
    pub fn abort(&mut self) {
        self.phase = ResponsePhase::Ended;
        self.lost();
    }

    /// Notes what was wrong with the response; it is logged once, with the request's target.
    pub fn blame(&mut self, fault: &'static str) {
        self.faulty = Some(fault);
    }

    /// Ends the response and sends it, so that the client has it before the app cleans up.
    pub fn finish(&mut self) {
        self.end_body();
        self.flush();
    }

    fn end_body(&mut self) {
        if self.lent {
            // The [`Wait`] that has the output cannot end the body.
            self.abort();
        }
        if self.phase == ResponsePhase::NotStarted {
            self.faulty = Some("the application returned no response");
            self.respond_plainly(500);
        }
        if let Some(chunks) = self.own_chunks.take().filter(|_| self.wants_body()) {
            return self.end_own_chunks(&chunks);
        }
        match self.phase {
            ResponsePhase::Body(BodyFraming::Chunked) => self.stream.output.add(LAST_CHUNK),
            ResponsePhase::Body(BodyFraming::Length(left)) if left > 0 && !self.gone => {
                self.faulty = Some("the body is shorter than the announced content-length; the connection is closed");
                self.close = true;
            }
            ResponsePhase::Head | ResponsePhase::Upgrade(_) | ResponsePhase::Body(BodyFraming::Chunk(_)) => {
                self.gone = true
            }
            _ => {}
        }
        self.phase = ResponsePhase::Ended;
    }

    /// Ends a body that the app has framed itself. Its trailers are kept where the protocol has them at the end of the
    /// chunks: in HTTP/1.1.
    fn end_own_chunks(&mut self, chunks: &OwnChunks) {
        match self.phase {
            _ if !chunks.is_done() => {
                self.blame(UNFINISHED);
                self.abort();
            }
            ResponsePhase::Body(BodyFraming::Chunked) => self.stream.output.add(&chunks.last_chunk()),
            _ => {}
        }
        self.phase = ResponsePhase::Ended;
    }

    /// Ends the response; called by the engine when the app has returned.
    pub(crate) fn end(mut self) -> (Ended, Outcome) {
        self.end_body();
        let ended = Ended {
            status: self.response.status,
            body_bytes: self.body_bytes,
            faulty: self.faulty,
        };
        let outcome = match self.client {
            Some(client) => Outcome::Client {
                client,
                close: self.close,
            },
            None if self.hijacked => Outcome::Hijacked,
            None if self.is_aborted || (self.gone && self.ends_with_connection) => Outcome::Aborted,
            None if self.gone => Outcome::Gone,
            None => Outcome::Responded { close: self.close },
        };
        (ended, outcome)
    }
}

/// What is logged of a response.
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) faulty: Option<&'static str>,
}

/// What happens to the connection.
pub(crate) enum Outcome {
    /// The response is written: its rest is sent, then comes the next request, or the end.
    Responded { close: bool },
    /// It becomes a client. `close`: whether it ends with that.
    Client { client: Arc<Client>, close: bool },
    /// Its socket belongs to the app.
    Hijacked,
    /// It is reset: to relieve others, or because the end of the connection would pass for the end of the body.
    Aborted,
    /// It is closed: the client is gone, or could not tell where the response ends.
    Gone,
}
