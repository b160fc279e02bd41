//! Requests that the engine responds to itself, before the ready queue and without the app.
//!
//! * `public_files.rs`: files of the public folder.
//! * `challenges.rs`: requests of certificate authorities.
//! * `redirect.rs`: requests that have to be repeated with TLS.
//! * `refusal.rs`: requests that are refused.
//! * `responder.rs`: writes the responses, counts and logs them.

mod challenges;
mod public_files;
mod redirect;
mod refusal;
mod responder;

pub(super) use public_files::path_of;

use super::ends::after_response;
use crate::acme::Challenges;
use crate::clock::Millis;
use crate::connection::{Connection, Next, Then};
use crate::exchange::Services;
use crate::files::Found;
use crate::http::refusal::Refusal;
use crate::transport::listener::Endpoint;
use redirect::Redirect;
use responder::Responder;
use rustix::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// Most such requests of one connection that are served in one turn.
const TURN: usize = 16;

/// See the head of this file.
pub(super) struct WithoutApp {
    responder: Responder,
    challenges: Option<Challenges>,
    redirect: Option<Redirect>,
}

/// Result for a request that is not for the app.
enum Served {
    /// The response is written. `close`: the connection ends with it.
    Responded { close: bool },
    /// The request is for a file that another thread has to look up.
    LookUp,
}

impl WithoutApp {
    /// `endpoints`: the endpoints of the listeners.
    pub(super) fn new(services: &Arc<Services>, endpoints: &[Arc<Endpoint>]) -> WithoutApp {
        let config = &services.worker.config;
        WithoutApp {
            responder: Responder {
                services: Arc::clone(services),
            },
            challenges: config.acme_challenges.clone().map(Challenges::new),
            redirect: Redirect::new(config, endpoints),
        }
    }

    /// Serves the request that is ready on `connection`, and the requests behind it, as long as they are not for the
    /// app. Returns `Ready` for a request to the app.
    pub(super) fn serve(&self, connection: &mut Connection) -> Next {
        let (responder, public) = (&self.responder, self.responder.services.files.public());
        if self.redirect.is_none() && self.challenges.is_none() && public.is_none() {
            return Next::Ready;
        }
        let (challenges, redirect) = (self.challenges.as_ref(), self.redirect.as_ref());
        let serve = |connection: &mut Connection| {
            let answered = challenges.and_then(|known| challenges::answer(responder, known, connection));
            let answered = answered.or_else(|| redirect.and_then(|redirect| redirect.answer(responder, connection)));
            let answered = answered.map(|close| Served::Responded { close });
            answered.or_else(|| public.and_then(|public| public_files::serve(responder, public, connection)))
        };
        for turn in 1.. {
            let close = match catch_unwind(AssertUnwindSafe(|| serve(connection))) {
                Ok(Some(Served::Responded { close })) => close,
                Ok(Some(Served::LookUp)) => return Next::LookUp,
                Ok(None) => break,
                Err(_) => {
                    self.responder.services.worker.log.error(format_args!(
                        "[BUG] the server panicked during a request without the application; the connection is closed"
                    ));
                    return Next::Close;
                }
            };
            let next = self.go_on_after(connection, close, turn == TURN);
            if next != Next::Ready {
                return next;
            }
        }
        Next::Ready
    }

    /// Sends the written response; `later`: in the connection's next turn. Returns the next step.
    pub(super) fn go_on_after(&self, connection: &mut Connection, close: bool, later: bool) -> Next {
        let worker = &self.responder.services.worker;
        let then = match connection.has_unread_body() {
            true => Then::Linger,
            false => after_response(worker, close),
        };
        let now = Millis::now();
        match later {
            true => connection.respond_later(then, now),
            false => connection.responded(then, &worker.config, now),
        }
    }

    /// Writes the response to a request after its lookup, if it is for a file. Returns true if the connection ends with
    /// it.
    pub(super) fn respond_with_found(&self, connection: &mut Connection, found: io::Result<Found>) -> Option<bool> {
        public_files::respond(&self.responder, connection, found)
    }

    /// Responds to a complete request that is not run. Its connection may persist.
    pub(super) fn decline(&self, connection: &mut Connection, refusal: Refusal) -> Next {
        match refusal::decline(&self.responder, connection, refusal) {
            Some(close) => self.go_on_after(connection, close, false),
            None => Next::Close,
        }
    }

    /// Responds to a request that is refused before it is complete, or cannot be understood.
    pub(super) fn refuse(&self, connection: &mut Connection, refusal: Refusal) -> Next {
        refusal::refuse(&self.responder.services, connection, refusal)
    }
}
