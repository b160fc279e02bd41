//! Requests that the engine answers itself: for files of the public folder, and those of `challenges.rs` and
//! `redirect.rs`. They are served before the ready queue, without the app.
//!
//! This is the thread that polls: it takes only what the kernel has in memory, and leaves the rest to `look_ups.rs`.

use super::{record, Engine};
use crate::clock::Millis;
use crate::config::HttpsRedirect;
use crate::connection::{Connection, Next, Then};
use crate::exchange::{upgrade_offer, Exchange, Outcome, Workspace};
use crate::files::{Found, Public, Reach, NO_ANSWER, UNREACHABLE};
use crate::http::request::Request;
use fairlead_wire::TargetForm;
use rustix::io::{self, Errno};
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;

/// How many such requests of one connection are served before others get their turn.
const TURN: usize = 16;

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// How a request is served without the app.
enum Served {
    /// The response is written. `close`: the connection ends with it.
    Responded { close: bool },
    /// It is for a file that another thread has to look for.
    LookUp,
}

impl Engine {
    /// Serves the request that is ready on `connection`, and those that follow it, as long as they are none for the app.
    /// `Ready` for a request that is.
    pub(super) fn serve_without_app(&self, connection: &mut Connection) -> Next {
        let (challenges, public) = (self.challenges.as_ref(), self.services.files.public());
        let redirects = self.worker.config.redirect_to_https != HttpsRedirect::Never;
        if !redirects && challenges.is_none() && public.is_none() {
            return Next::Ready;
        }
        let serve = |connection: &mut Connection| {
            let answered = challenges.and_then(|challenges| self.answer_challenge(challenges, connection));
            let answered = answered.or_else(|| redirects.then(|| self.redirect_to_https(connection)).flatten());
            let answered = answered.map(|close| Served::Responded { close });
            answered.or_else(|| public.and_then(|public| self.serve_file(public, connection)))
        };
        for turn in 1.. {
            let close = match catch_unwind(AssertUnwindSafe(|| serve(connection))) {
                Ok(Some(Served::Responded { close })) => close,
                Ok(Some(Served::LookUp)) => return Next::LookUp,
                Ok(None) => break,
                Err(_) => {
                    self.worker.log.error(format_args!(
                        "[BUG] the server panicked while it served a request without the application; the connection is closed"
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

    /// Sends the response that is written; `later`: in the connection's next turn. Returns what comes then.
    pub(super) fn go_on_after(&self, connection: &mut Connection, close: bool, later: bool) -> Next {
        let then = match connection.has_unread_body() {
            true => Then::Linger,
            false => self.after_response(close),
        };
        let now = Millis::now();
        match later {
            true => connection.respond_later(then, now),
            false => connection.responded(then, &self.worker.config, now),
        }
    }

    fn serve_file(&self, public: &Public, connection: &mut Connection) -> Option<Served> {
        let request = &connection.stream.request;
        let is_for_files = matches!(request.method(), b"GET" | b"HEAD")
            && !request.has_body()
            && request.target_form() != TargetForm::Asterisk
            && upgrade_offer(request).is_none();
        if !is_for_files {
            return None;
        }
        let found = match self.worker.fault("look in memory") {
            true => Err(Errno::AGAIN),
            false => public.find(path_of(request), &|| request.accepted_codings(), Reach::Memory),
        };
        match found {
            Err(Errno::AGAIN) => Some(Served::LookUp),
            found => self
                .respond_with_found(connection, found)
                .map(|close| Served::Responded { close }),
        }
    }

    /// Writes the response if the request is for a file; returns whether the connection ends with it.
    pub(super) fn respond_with_found(&self, connection: &mut Connection, found: io::Result<Found>) -> Option<bool> {
        if let Ok(Found::Nothing) = found {
            return None;
        }
        self.counters().files.fetch_add(1, Relaxed);
        Some(self.respond_without_app(connection, |exchange| match found {
            Ok(Found::Document(document, content)) => exchange.respond_with(&document, &content),
            Ok(Found::Folder) => exchange.redirect_to_folder(),
            Ok(Found::Nothing) => {}
            Err(error) => {
                exchange.blame(if error == Errno::TIMEDOUT {
                    NO_ANSWER
                } else {
                    UNREACHABLE
                });
                exchange.respond_plainly_with(503, &[(b"retry-after", b"1")]);
            }
        }))
    }

    /// Counts the request that is ready, writes the response to it and logs it; returns whether the connection ends with
    /// it.
    pub(super) fn respond_without_app(&self, connection: &mut Connection, respond: impl FnOnce(&mut Exchange)) -> bool {
        let (ended, outcome) = WORKSPACE.with_borrow_mut(|workspace| {
            let mut exchange = Exchange::new(&mut connection.stream, &self.services, workspace);
            respond(&mut exchange);
            exchange.end()
        });
        self.counters().requests.fetch_add(1, Relaxed);
        record::response(&self.worker, connection, &ended, None);
        !matches!(outcome, Outcome::Responded { close: false })
    }
}

/// The path of a request, for [`Public::find`].
pub(super) fn path_of(request: &Request) -> &[u8] {
    match request.path() {
        b"" => b"/",
        path => path,
    }
}
