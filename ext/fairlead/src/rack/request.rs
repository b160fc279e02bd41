//! One request: makes the env, calls the application, writes its response, and runs the callables for the time after
//! it.

use super::fiber::in_fiber;
use super::{early_hints, puma, Env, OnThread, Response, Stop};
use crate::objects::{call, set};
use crate::protect::protect;
use crate::strings::{ids, strings};
use fairlead_engine::Protocol;
use magnus::Ruby;
use rb_sys::{Qnil, RARRAY_LEN, VALUE};
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

impl OnThread<'_> {
    /// Calls the application and writes its response. Returns a panic of our own code after tidying up.
    pub(super) fn respond(&self, response: &Response<'_, '_>) -> Option<Panic> {
        let nil = Qnil as VALUE;
        let mut env = Env::NONE;
        let called = caught(|| {
            protect(self.ruby, || {
                let hijack = response.root();
                let offer = response.with(|exchange| exchange.upgrade_offer());
                env = self.make_env(hijack, offer.is_some(), response);
                self.running.set(env.hash, hijack);
                self.call_app(env.hash, offer, response)
                    .unwrap_or_else(|stop| stop.raise(self.ruby));
            })
        });
        response.end_loans();
        let (error, panic) = match called {
            Ok(Ok(())) => (nil, None),
            Ok(Err(jump)) => (self.failed(jump, env.hash, response), None),
            Err(panic) => (nil, Some(panic)),
        };
        // The client gets its response before the application cleans up. After a panic the engine responds.
        let tidied = caught(|| self.finish(env, error, response, panic.is_none()));
        self.running.clear();
        panic.or(tidied.err())
    }

    /// The env of a request. If Ruby raises, the exception must not jump over the borrow of the exchange: it is stopped
    /// before the borrow ends, and raised again afterwards. Inside `protect`.
    fn make_env(&self, hijack: VALUE, may_last: bool, response: &Response<'_, '_>) -> Env {
        let mut env = Env::NONE;
        let made = response.with_ruby(|exchange| env = self.template.fill(self.ruby, exchange, hijack, may_last));
        made.unwrap_or_else(|jump| Stop::Jump(jump).raise(self.ruby));
        env
    }

    /// Does the same as [`OnThread::respond`], in a Fiber of its own.
    pub(super) fn respond_in_fiber(&self, response: &Response<'_, '_>) -> Option<Panic> {
        let mut panic = None;
        let jump = in_fiber(self.ruby, || {
            panic = self.respond(response);
            self.exception_to_leave_by()
        });
        if let Some(jump) = jump {
            self.leave_by(jump);
        }
        panic
    }

    /// Completes the env, and writes the response of the application. Inside `protect`.
    fn call_app(&self, env: VALUE, offer: Option<Protocol>, response: &Response<'_, '_>) -> Result<(), Stop> {
        response.env.set(env);
        if response.with(|exchange| exchange.offers_early_hints()) {
            let hints = early_hints::make(response);
            set(self.ruby, env, strings().rack_early_hints, hints);
        }
        if let Some(protocol) = offer {
            self.offer_upgrade(env, protocol, response);
        }
        if self.app.puma_env {
            puma::offer(response);
        }
        let triple = call(self.ruby, self.app.app, ids().call, &[env]);
        // A process that the application has forked must not respond.
        if self.engine.is_at_home() {
            return response.write(triple);
        }
        response.with(|exchange| exchange.abort());
        Ok(())
    }

    /// After the response: closes the body, runs the callables of the application, and closes the input.
    fn finish(&self, env: Env, error: VALUE, response: &Response<'_, '_>, is_whole: bool) {
        let nil = Qnil as VALUE;
        if response.shown_socket.get() != nil {
            self.logged(env.hash, || puma::close(response));
        }
        let is_listed = || length(self.ruby, env.after_reply) > 0 || length(self.ruby, env.response_finished) > 0;
        if response.body.get() == nil && env.file == nil && !is_listed() {
            return;
        }
        if is_whole {
            response.with(|exchange| exchange.finish());
        }
        self.logged(env.hash, || super::response::close(response));
        self.run_lists(env, error, response);
        self.logged(env.hash, || super::response::end(response));
        if env.file != nil {
            // Without this, its descriptor would stay open until the collector frees it.
            self.logged(env.hash, || {
                // SAFETY: a live IO, the GVL is held, exceptions are stopped.
                unsafe { rb_sys::rb_io_close(env.file) };
            });
        }
    }

    /// Calls the elements of `rack.after_reply`, in order, and of `rack.response_finished`, in reverse order (Rack
    /// SPEC).
    fn run_lists(&self, env: Env, error: VALUE, response: &Response<'_, '_>) {
        let run = |list: VALUE, index: isize, arguments: &[VALUE]| {
            self.logged(env.hash, || {
                // SAFETY: a live Array, the GVL is held.
                let callable = unsafe { rb_sys::rb_ary_entry(list, index as _) };
                call(self.ruby, callable, ids().call, arguments);
            });
        };
        for index in 0..length(self.ruby, env.after_reply) {
            run(env.after_reply, index, &[]);
        }
        let arguments = [env.hash, response.status.get(), response.headers.get(), error];
        for index in (0..length(self.ruby, env.response_finished)).rev() {
            run(env.response_finished, index, &arguments);
        }
    }
}

/// The payload of a panic.
type Panic = Box<dyn Any + Send>;

/// Stops a panic, so that the caller can clean up.
fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(code))
}

/// The length of a list of this request; 0 if the list could not be made.
pub(super) fn length(_: &Ruby, list: VALUE) -> isize {
    // SAFETY: nil or an Array on the stack.
    unsafe {
        if list == Qnil as VALUE {
            0
        } else {
            RARRAY_LEN(list) as isize
        }
    }
}
