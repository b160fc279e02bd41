//! What the application raises: it is logged once, and the client gets a response if none has begun.

use super::{is_closed_error, OnThread, Response};
use crate::objects::call;
use crate::protect::{self, protect, Jump};
use crate::strings::ids;
use magnus::Ruby;
use rb_sys::{rb_eException, rb_set_errinfo, Qnil, VALUE};

impl OnThread<'_> {
    /// Deals with what has ended a call of the application. Returns the exception, or nil if it was none.
    pub(super) fn failed(&self, jump: Jump, env: VALUE, response: &Response<'_, '_>) -> VALUE {
        // A process that the application has forked ends by raising.
        let error = if self.engine.is_at_home() {
            take_error(self.ruby)
        } else {
            None
        };
        let Some(error) = error else {
            // This thread is to end.
            self.leave.set(Some(jump));
            response.with(|exchange| exchange.abort());
            return Qnil as VALUE;
        };
        if response.is_given_away.get() {
            // What was called with the socket has raised, and nobody else will close the socket.
            self.logged(env, || {
                // SAFETY: a live IO, the GVL is held, exceptions are stopped. It may be closed already.
                unsafe { rb_sys::rb_io_close(response.hijacked_io.get()) };
            });
        }
        if is_closed_error(self.ruby, error) {
            response.with(|exchange| exchange.abort());
        } else if response.with(|exchange| !exchange.has_started() || exchange.take_back()) {
            self.report(error, env, response);
        } else {
            self.log(error, env);
            response.with(|exchange| exchange.abort());
        }
        error
    }

    /// Logs an exception of the application, and responds in its place.
    fn report(&self, error: VALUE, env: VALUE, response: &Response<'_, '_>) {
        let triple = self.log(error, env);
        if !self.app.error_details && response.with(|exchange| exchange.respond_with_error_page(500)) {
            return;
        }
        response.with(|exchange| {
            let written = triple.map(|triple| {
                Response::on(self.ruby, exchange, |report| {
                    protect(self.ruby, || {
                        report.write(triple).unwrap_or_else(|stop| stop.raise(self.ruby));
                    })
                })
            });
            match written {
                Some(Ok(())) => return,
                Some(Err(jump)) => self.leave_unless_raised(jump),
                None => {}
            }
            if !exchange.has_started() || exchange.take_back() {
                exchange.respond_plainly(500);
            } else {
                exchange.abort();
            }
        });
    }

    /// Logs an exception of the application. Returns the response that describes it, unless logging has failed.
    fn log(&self, error: VALUE, env: VALUE) -> Option<VALUE> {
        let mut triple = None;
        let logged = protect(self.ruby, || {
            triple = Some(call(self.ruby, self.app.error_reporter, ids().call, &[error, env]));
        });
        if let Err(jump) = logged {
            self.leave_unless_raised(jump);
        }
        triple
    }

    /// When reporting an exception has failed: another exception is dropped, but the end of the thread is not.
    fn leave_unless_raised(&self, jump: Jump) {
        if take_error(self.ruby).is_none() {
            self.leave.set(Some(jump));
        }
    }

    /// Runs code of the application whose exceptions can only be logged.
    pub(crate) fn logged(&self, env: VALUE, code: impl FnMut()) {
        let Err(jump) = protect(self.ruby, code) else { return };
        let Some(error) = take_error(self.ruby) else {
            return self.leave.set(Some(jump));
        };
        self.log(error, env);
    }
}

/// Takes the exception that `protect` has stopped; `None` if it was something else, such as the end of the thread. Ruby
/// has to forget that, too: code that runs in between would clear it, and Ruby crashes if it is then resumed without.
fn take_error(ruby: &Ruby) -> Option<VALUE> {
    // SAFETY: the GVL is held; a constant of Ruby.
    unsafe {
        let error = protect::take_error(ruby, rb_eException);
        rb_set_errinfo(Qnil as VALUE);
        error
    }
}
