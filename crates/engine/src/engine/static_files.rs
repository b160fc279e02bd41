//! Requests for files of the public folder: served before the ready queue, without the app.

use super::Engine;
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::exchange::{upgrade_offer, Exchange, Outcome, Workspace};
use crate::files::{Found, Public, UNREACHABLE};
use fairlead_wire::TargetForm;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;

/// How many requests for files of one connection are served before others get their turn.
const TURN: usize = 16;

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

impl Engine {
    /// Serves the request that is ready on `connection`, and those that follow it, as long as they name files of the
    /// public folder. `Ready` for a request that does not.
    pub(super) fn serve_files(&self, connection: &mut Connection) -> Next {
        let Some(public) = self.services.files.public() else {
            return Next::Ready;
        };
        for turn in 1.. {
            let close = match catch_unwind(AssertUnwindSafe(|| self.serve_file(public, connection))) {
                Ok(Some(close)) => close,
                Ok(None) => break,
                Err(_) => {
                    self.worker.log.error(format_args!(
                        "[BUG] the server panicked while it served a file; the connection is closed"
                    ));
                    return Next::Close;
                }
            };
            let (then, now) = (self.after_response(close), Millis::now());
            let next = if turn == TURN {
                connection.respond_later(then, now)
            } else {
                connection.responded(then, &self.worker.config, now)
            };
            if next != Next::Ready {
                return next;
            }
        }
        Next::Ready
    }

    /// Writes the response if the request is for a file; returns whether the connection ends with it.
    fn serve_file(&self, public: &Public, connection: &mut Connection) -> Option<bool> {
        let request = &connection.stream.request;
        let is_for_files = matches!(request.method(), b"GET" | b"HEAD")
            && !request.has_body()
            && request.target_form() != TargetForm::Asterisk
            && upgrade_offer(request).is_none();
        if !is_for_files {
            return None;
        }
        let path = match request.path() {
            b"" => b"/",
            path => path,
        };
        let found = public.find(path, &|| request.accepted_codings());
        if let Ok(Found::Nothing) = found {
            return None;
        }
        let (ended, outcome) = WORKSPACE.with_borrow_mut(|workspace| {
            let mut exchange = Exchange::new(&mut connection.stream, &self.services, workspace);
            match found {
                Ok(Found::Document(document, content)) => exchange.respond_with(&document, &content),
                Ok(Found::Folder) => exchange.redirect_to_folder(),
                Ok(Found::Nothing) => {}
                Err(_) => {
                    exchange.blame(UNREACHABLE);
                    exchange.respond_plainly_with(503, &[(b"retry-after", b"1")]);
                }
            }
            exchange.end()
        });
        self.counters().requests.fetch_add(1, Relaxed);
        self.counters().files.fetch_add(1, Relaxed);
        self.record(connection, &ended, None);
        Some(!matches!(outcome, Outcome::Responded { close: false }))
    }
}
