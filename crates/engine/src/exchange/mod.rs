//! One request and its response, as an [`App`](crate::App) sees them: the head and body that came, and a writer that frames
//! what goes back (RFC 9112 §6, §7): `head.rs` and `body.rs`.
//!
//! Nothing here blocks and nothing is lost when the app stops half-way: [`Exchange`] is ended by the engine, which closes
//! the connection if the response is not whole.

mod body;
mod compression;
mod file;
mod head;
mod relay;
mod sendfile;
mod upgrade;
mod wait;

pub use body::LONG_BYTES;
pub use compression::{Coder, Until};
pub(crate) use upgrade::upgrade_offer;
pub use wait::Wait;

use crate::clock::DateCache;
use crate::config::Config;
use crate::connection::output::Spill;
use crate::connection::Connection;
use crate::files::Files;
use crate::files::Named;
use crate::http::body::Body;
use crate::http::http1::{Announced, BodyFraming, LAST_CHUNK};
use crate::http::response::ResponseHead;
use crate::realtime::{Client, Realtime};
use crate::spool::{Relief, Spool};
use crate::transport::listener::Origin;
use crate::worker::Worker;
use fairlead_wire::{reason, Head, Span};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use upgrade::Upgrade;

/// Why a response field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// Name or value hold what may not stand in a field (RFC 9110 §5.1, §5.5).
    Splitting,
    /// A content-length that is none, or another one than before.
    Length,
}

impl FieldError {
    /// The error in words, for [`Exchange::blame`].
    pub fn fault(self) -> &'static str {
        match self {
            FieldError::Splitting => "a response field that could split the answer was left out",
            FieldError::Length => "a content-length that is none, or contradicts another one, was left out",
        }
    }
}

/// The client is gone: whatever the app still writes is for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponsePhase {
    NotStarted,
    EarlyHints,
    Head,
    /// The head of a response after which the connection is a client.
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

/// What all exchanges of an engine need of it.
pub(crate) struct Services {
    pub(crate) worker: Arc<Worker>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Files,
    pub(crate) realtime: Arc<Realtime>,
    pub(crate) relief: Weak<dyn Relief>,
}

impl Services {
    fn config(&self) -> &Config {
        &self.worker.config
    }

    /// Where a response goes that its connection's buffer does not hold.
    fn spill(&self) -> Spill<'_> {
        Spill::new(&self.worker.config, &self.spool)
    }

    /// Logs that a client had to give way to others.
    pub(crate) fn log_cut(&self) {
        self.worker.log.error(format_args!(
            "cut off the slowest reader: unsent answers have reached response_memory_total_bytes, and requests wait"
        ));
    }
}

/// Content types of the server's own responses.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// A request to be answered.
pub struct Exchange<'a> {
    pub(crate) connection: &'a mut Connection,
    services: &'a Arc<Services>,
    date: &'a mut DateCache,
    phase: ResponsePhase,
    /// The head of the response, until it is written.
    response: &'a mut ResponseHead,
    announced: Announced,
    close: bool,
    /// Length of the output before this response: where to cut if it has to be taken back.
    start: usize,
    body_bytes: u64,
    /// What the app has waited for the client so far.
    waits: Option<wait::Waits>,
    /// Whether the kernel may have some of this response.
    flushed: bool,
    gone: bool,
    /// Whether the output is with a [`Wait`].
    lent: bool,
    faulty: Option<&'static str>,
    /// What the connection becomes.
    pub(crate) client: Option<Arc<Client>>,
    hijacked: bool,
    /// The file that the app wants to have sent.
    pub(crate) named: Option<Named>,
    coder: Option<Box<Coder>>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        connection: &'a mut Connection,
        services: &'a Arc<Services>,
        workspace: &'a mut Workspace,
    ) -> Exchange<'a> {
        let close = !connection.head.keep_alive;
        let start = connection.output.buffer().len();
        workspace.head.start(0);
        Exchange {
            connection,
            services,
            date: &mut workspace.date,
            phase: ResponsePhase::NotStarted,
            response: &mut workspace.head,
            announced: Announced::default(),
            close,
            start,
            body_bytes: 0,
            waits: None,
            flushed: false,
            gone: false,
            lent: false,
            faulty: None,
            client: None,
            hijacked: false,
            named: None,
            coder: None,
        }
    }

    /// The parsed head; its spans refer to [`Exchange::bytes`].
    pub fn head(&self) -> &Head {
        &self.connection.head
    }

    /// The bytes that the head was parsed from.
    pub fn bytes(&self) -> &[u8] {
        &self.connection.input
    }

    /// The bytes of one span of the head.
    pub fn text(&self, span: Span) -> &[u8] {
        span.of(&self.connection.input)
    }

    /// The whole body, which the caller may keep.
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.connection.body)
    }

    /// Where the request came to.
    pub fn origin(&self) -> &Origin {
        self.connection.origin()
    }

    /// Where it came from; `None` for a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.connection.peer()
    }

    /// Whether a response has been begun.
    pub fn has_started(&self) -> bool {
        !matches!(self.phase, ResponsePhase::NotStarted | ResponsePhase::EarlyHints)
    }

    /// Whether the app may send interim responses.
    pub fn offers_early_hints(&self) -> bool {
        self.services.config().early_hints
    }

    /// Whether the response has a body that can be seen by the client; if not, the app need not make one.
    pub fn wants_body(&self) -> bool {
        !matches!(
            self.phase,
            ResponsePhase::Body(BodyFraming::None) | ResponsePhase::Ended
        ) && !self.gone
    }

    /// Whether the method is HEAD: the head of the response is all that is wanted.
    pub fn is_head_request(&self) -> bool {
        self.text(self.head().method) == b"HEAD"
    }

    /// Gives the socket away (Rack SPEC, "Hijacking"): from now on it is the app's business. What was read of it beyond the
    /// request comes first. The engine forgets the connection once the app has returned.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn hijack(&mut self) -> std::io::Result<OwnedFd> {
        let ahead = self.connection.take_read_ahead();
        let transport = self.connection.transport();
        let socket = match transport.as_plain() {
            Some(plain) if ahead.is_empty() => plain.try_clone()?,
            _ => relay::open(transport, ahead, &self.services.config().descriptors)?,
        };
        self.hijacked = true;
        self.phase = ResponsePhase::Ended;
        Ok(socket)
    }

    /// Whether the socket is the app's.
    pub fn is_hijacked(&self) -> bool {
        self.hijacked
    }

    /// Ends the head of a response whose body the app writes to the socket itself: it lasts until the connection ends.
    pub fn end_head_for_hijack(&mut self) {
        self.close = true;
        self.announced.chunked.get_or_insert(false);
        self.end_head(None);
    }

    fn lost(&mut self) -> Gone {
        self.gone = true;
        self.close = true;
        Gone
    }

    /// Takes back a response of which nothing is on the wire yet, so that another can be given. False if it is too late.
    pub fn take_back(&mut self) -> bool {
        let is_given_away = self.hijacked || self.client.is_some();
        if is_given_away || self.lent || self.flushed || self.body_bytes > 0 || !self.connection.output.is_unsent() {
            return false;
        }
        self.connection.output.buffer().truncate(self.start);
        self.phase = ResponsePhase::NotStarted;
        self.announced = Announced::default();
        self.named = None;
        self.coder = None;
        true
    }

    /// Says that the response cannot be completed: the connection will be closed, so that the client can tell.
    pub fn abort(&mut self) {
        self.phase = ResponsePhase::Ended;
        self.lost();
    }

    /// Notes what was wrong with the response; it is logged once, with the request's target.
    pub fn blame(&mut self, fault: &'static str) {
        self.faulty = Some(fault);
    }

    /// Ends the response and hands it to the kernel, so that the client has it before the app tidies up.
    pub fn finish(&mut self) {
        self.end_body();
        self.flush();
    }

    /// A whole response without a body of the app's: status, and the error page for it or a short text.
    pub fn respond_plainly(&mut self, status: u16) {
        self.respond_plainly_with(status, &[]);
    }

    /// The same with fields.
    pub(crate) fn respond_plainly_with(&mut self, status: u16, fields: &[(&[u8], &[u8])]) {
        self.start(status);
        for (name, value) in fields {
            let _ = self.field(name, value);
        }
        if self.write_error_page() {
            return;
        }
        let text = reason(status);
        let _ = self.field(b"content-type", b"text/plain; charset=utf-8");
        self.end_head(Some(text.len() as u64 + 1));
        self.write_few(text.as_bytes());
        self.write_few(b"\n");
    }

    /// A whole response with the error page for `status`. False, with nothing begun, if there is none.
    pub fn respond_with_error_page(&mut self, status: u16) -> bool {
        let has_page = self.services.files.page(status).is_some();
        if has_page {
            self.respond_plainly(status);
        }
        has_page
    }

    /// Whether [`Exchange::write_error_page`] would write one.
    pub fn wants_error_page(&self) -> bool {
        let has_body = self.announced.length.is_some_and(|length| length > 0) || self.has_own_framing();
        self.response.status >= 400
            && self.services.files.page(self.response.status).is_some()
            && self.phase == ResponsePhase::Head
            && !has_body
            && !self.response.fields.has(b"content-type")
            && !self.response.fields.has(b"content-encoding")
    }

    /// Ends the head and writes the error page for the status, if there is one and the response says nothing of a body of its
    /// own: neither Content-Type nor a length.
    pub fn write_error_page(&mut self) -> bool {
        let services = self.services;
        let Some(page) = services
            .files
            .page(self.response.status)
            .filter(|_| self.wants_error_page())
        else {
            return false;
        };
        self.announced.length = None;
        let _ = self.field(b"content-type", HTML.as_bytes());
        self.end_head(Some(page.len() as u64));
        self.write_few(page);
        true
    }

    fn end_body(&mut self) {
        if self.lent {
            // Whoever has the output does not know that the response is over.
            self.abort();
        }
        if self.phase == ResponsePhase::NotStarted {
            self.faulty = Some("the app gave no answer");
            self.respond_plainly(500);
        }
        match self.phase {
            ResponsePhase::Body(BodyFraming::Chunked) => self.connection.output.add(LAST_CHUNK),
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

    /// Ends the response; called by the engine when the app has returned.
    pub(crate) fn end(mut self) -> (Ended, Outcome) {
        self.end_body();
        let ended = Ended {
            status: self.response.status,
            body_bytes: self.body_bytes,
            faulty: self.faulty,
        };
        let outcome = match self.client {
            Some(client) => Outcome::Client(client),
            None if self.hijacked => Outcome::Hijacked,
            None if self.gone => Outcome::Gone,
            None => Outcome::Answered { close: self.close },
        };
        (ended, outcome)
    }
}

/// What is to be said of a response that has ended.
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) faulty: Option<&'static str>,
}

/// What becomes of the connection.
pub(crate) enum Outcome {
    /// The response is written: its rest is sent, then comes the next request, or the end.
    Answered { close: bool },
    /// It is a client from now on.
    Client(Arc<Client>),
    /// Its socket is the app's.
    Hijacked,
    /// It is closed: the client is gone, or cannot be told where the response ends.
    Gone,
}
