//! Exceptions of the application: each is logged once, and the client gets a response if none has begun.

use super::{is_closed_error, OnThread, Response};
use crate::classes::FORCED_SHUTDOWN;
use crate::objects::{call, is_a};
use crate::protect::{self, protect, Jump};
use crate::strings::ids;
use magnus::rb_sys::AsRawValue;
use magnus::Ruby;
use rb_sys::{rb_eException, rb_set_errinfo, Qnil, VALUE};

impl OnThread<'_> {
    /// Handles the jump that has ended a call of the application. Returns the exception, or nil if there was none.
    pub(super) fn failed(&self, jump: Jump, env: VALUE, response: &Response<'_, '_>) -> VALUE {
        // A process that the application has forked ends by raising.
        let error = if self.engine.is_at_home() {
            take_error(self.ruby)
        } else {
            None
        };
        if response.is_given_away.get() && self.engine.is_at_home() {
            // The callable that got the socket has raised or was killed, and no other code will close the socket.
            self.logged(env, || {
                // SAFETY: a live IO, the GVL is held, exceptions are stopped. It may be closed already.
                unsafe { rb_sys::rb_io_close(response.hijacked_io.get()) };
            });
        }
        let Some(error) = error else {
            // This thread must end.
            self.leave_by(jump);
            response.with(|exchange| exchange.abort());
            return Qnil as VALUE;
        };
        if is_closed_error(self.ruby, error) {
            response.with(|exchange| exchange.abort());
        } else if response.with(|exchange| !exchange.has_started() || exchange.take_back()) {
            self.report(error, env, response);
        } else {
            self.log(error, env, None);
            response.with(|exchange| exchange.abort());
        }
        error
    }

    /// Logs an exception of the application, and responds in its place.
    fn report(&self, error: VALUE, env: VALUE, response: &Response<'_, '_>) {
        let status = status_for(self.ruby, error);
        let triple = self.log(error, env, Some(status));
        if !self.app.error_details && response.with(|exchange| exchange.respond_with_error_page(status)) {
            return;
        }
        response.with(|exchange| {
            let written = triple.map(|triple| {
                Response::on(self.ruby, exchange, |report| {
                    let written = protect(self.ruby, || {
                        report.write(triple).unwrap_or_else(|stop| stop.raise(self.ruby));
                    });
                    let is_written = written.is_ok();
                    if let Err(jump) = written {
                        self.log_or_leave(jump, env);
                    }
                    self.logged(env, || super::response::close(report));
                    is_written
                })
            });
            if written == Some(true) {
                return;
            }
            if !exchange.has_started() || exchange.take_back() {
                exchange.respond_plainly(status);
            } else {
                exchange.abort();
            }
        });
    }

    /// Logs an exception of the application. Returns the response with `status` that describes it, unless none is
    /// wanted or logging has failed.
    fn log(&self, error: VALUE, env: VALUE, status: Option<u16>) -> Option<VALUE> {
        let mut triple = None;
        // SAFETY: the GVL is held; a number so small makes no object.
        let wanted = status.map_or(Qnil as VALUE, |status| unsafe {
            rb_sys::rb_uint2inum(usize::from(status))
        });
        let logged = protect(self.ruby, || {
            let made = call(self.ruby, self.app.error_reporter, ids().call, &[error, env, wanted]);
            triple = Some(made).filter(|_| status.is_some());
        });
        if let Err(jump) = logged {
            self.leave_unless_raised(jump);
        }
        triple
    }

    /// For a failed report of an exception: drops another exception, but not the end of the thread.
    fn leave_unless_raised(&self, jump: Jump) {
        if take_error(self.ruby).is_none() {
            self.leave_by(jump);
        }
    }

    /// Notes that this thread must end by `jump`, which has just been stopped. If that is an exception, it is kept here: code of the
    /// application that still runs may rescue another one, and then Ruby forgets this one.
    pub(crate) fn leave_by(&self, jump: Jump) {
        if jump.is_exception() {
            self.exception.set(take_error(self.ruby).unwrap_or(Qnil as VALUE));
        }
        self.leave.set(Some(jump));
    }

    /// The exception by which this thread must end, if any. Ruby knows it again.
    pub(crate) fn exception_to_leave_by(&self) -> Option<Jump> {
        let exception = Some(self.exception.get()).filter(|exception| *exception != Qnil as VALUE)?;
        let jump = self.leave.get().filter(|jump| jump.is_exception())?;
        // SAFETY: the GVL is held; the thread keeps the exception on its stack.
        unsafe { rb_set_errinfo(exception) };
        Some(jump)
    }

    /// Runs code of the application after the response: its exceptions can only be logged.
    pub(crate) fn logged(&self, env: VALUE, code: impl FnMut()) {
        if let Err(jump) = protect(self.ruby, code) {
            self.log_or_leave(jump, env);
        }
    }

    /// Logs the exception that has just been stopped, or notes that the thread must end.
    fn log_or_leave(&self, jump: Jump, env: VALUE) {
        match take_error(self.ruby) {
            Some(error) if is_closed_error(self.ruby, error) => {}
            Some(error) => _ = self.log(error, env, None),
            None => self.leave_by(jump),
        }
    }
}

/// The status of the response in place of the application's: 503 if the shutdown has aborted it, else 500.
fn status_for(ruby: &Ruby, error: VALUE) -> u16 {
    let forced = ruby.get_inner(&FORCED_SHUTDOWN).as_raw();
    if is_a(ruby, error, forced) {
        503
    } else {
        500
    }
}

/// Takes the exception that `protect` has stopped; `None` for anything else, such as the end of the thread. Ruby must
/// forget the end of the thread, too: code that runs in between would clear it, and Ruby crashes if it is resumed
/// without it.
fn take_error(ruby: &Ruby) -> Option<VALUE> {
    // SAFETY: the GVL is held; a constant of Ruby.
    unsafe {
        let error = protect::take_error(ruby, rb_eException);
        rb_set_errinfo(Qnil as VALUE);
        error
    }
}
