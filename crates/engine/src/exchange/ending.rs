//! The end of a response, and its consequences for the connection.

use super::deadline::GATEWAY_TIMEOUT;
use super::state::{Owner, Persistence, Reach, ResponsePhase};
use super::Exchange;
use crate::http::http1::{BodyFraming, LAST_CHUNK};
use crate::http::own_chunks::{OwnChunks, UNFINISHED};
use crate::realtime::Client;
use crate::stream::output::Output;
use std::sync::Arc;
use std::time::Duration;

impl Exchange<'_> {
    /// Ends the response and sends it, so that the client has it before the app cleans up.
    pub fn finish(&mut self) {
        self.end_body();
        self.flush();
    }

    fn end_body(&mut self) {
        self.end_loan();
        if self.is_in_wait() {
            // The [`Wait`] that owns the output cannot end the body.
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
            ResponsePhase::Body(BodyFraming::Length(left)) if left > 0 && !self.is_gone() => {
                self.faulty = Some("the body is shorter than the announced content-length; the connection is closed");
                self.persistence.close();
            }
            ResponsePhase::Head | ResponsePhase::Upgrade(_) | ResponsePhase::Body(BodyFraming::Chunk(_)) => {
                self.reach = self.reach.max(Reach::Gone)
            }
            _ => {}
        }
        self.phase = ResponsePhase::Ended;
    }

    /// Ends a body that the app has framed itself. Its trailers are kept in HTTP/1.1, where they follow the chunks.
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
        let unsent = self
            .own_deadline()
            .and_then(|deadline| self.services.deadlines.end(deadline));
        self.is_expired |= unsent.is_some();
        let unsent = unsent.filter(|unsent| !unsent.is_empty());
        let is_half_sent = unsent.is_some();
        if let Some(unsent) = unsent {
            // The connection sends the rest, as of any other response. Bytes of the late response do not follow it.
            self.stream.output = Output::default();
            self.stream.output.add(&unsent);
        }
        let ended = Ended {
            status: match self.is_expired {
                true => GATEWAY_TIMEOUT,
                false => self.head.response.status,
            },
            body_bytes: self.body_bytes,
            faulty: self.faulty,
            sending: self.sending,
        };
        let close = self.persistence.closes();
        let outcome = match (self.owner, self.reach) {
            (Owner::Client(client), _) => Outcome::Client { client, close },
            (Owner::App, _) => Outcome::Hijacked,
            (Owner::Server, _) if is_half_sent => Outcome::Responded { close: true },
            (Owner::Server, _) if self.is_expired => Outcome::Expired,
            (Owner::Server, Reach::There) => Outcome::Responded { close },
            (Owner::Server, Reach::Gone) if self.persistence != Persistence::EndsBody => Outcome::Gone,
            (Owner::Server, Reach::Gone | Reach::Aborted) => Outcome::Aborted,
        };
        (ended, outcome)
    }
}

/// Facts about a response for the log.
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) faulty: Option<&'static str>,
    /// Time for which threads have waited until the client took more.
    pub(crate) sending: Duration,
}

/// The next step for the connection.
pub(crate) enum Outcome {
    /// The response is written: its rest is sent, and then comes the next request, or the end.
    Responded { close: bool },
    /// It becomes a client. `close`: the connection ends with the client.
    Client { client: Arc<Client>, close: bool },
    /// Its socket belongs to the app.
    Hijacked,
    /// The client has got a 504 in place of the response, and the connection ends.
    Expired,
    /// It is reset: to free memory, or because the end of the connection would be taken for the end of the body.
    Aborted,
    /// It is closed: the client is gone, or could not find the end of the response.
    Gone,
}
