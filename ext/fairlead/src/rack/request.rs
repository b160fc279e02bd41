//! One request, from the env to what the application wants to have run after the response.

use super::{early_hints, hijack, Env, OnThread, Response, Stop};
use crate::protect::protect;
use crate::strings::{ids, strings};
use magnus::Ruby;
use rb_sys::{rb_funcallv, rb_hash_aset, Qnil, RARRAY_LEN, VALUE};
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

impl OnThread<'_> {
    /// Calls the application and answers. A panic is returned once all is tidied up.
    pub(super) fn respond(&self, response: &Response<'_, '_>) -> Option<Panic> {
        let nil = Qnil as VALUE;
        let mut env = Env {
            hash: nil,
            after_reply: nil,
            response_finished: nil,
            file: nil,
        };
        let called = caught(|| {
            protect(self.ruby, || {
                env = response.with(|exchange| self.template.fill(self.ruby, exchange));
                self.call_app(env.hash, response)
                    .unwrap_or_else(|stop| stop.raise(self.ruby));
            })
        });
        response.end_loans();
        let (error, panic) = match called {
            Ok(Ok(())) => (nil, None),
            Ok(Err(jump)) => (self.failed(jump, env.hash, response), None),
            Err(panic) => (nil, Some(panic)),
        };
        // The client has its response before the application tidies up; what has panicked is answered by the engine.
        let tidied = caught(|| self.finish(env, error, response, panic.is_none()));
        panic.or(tidied.err())
    }

    /// Inside `protect`.
    fn call_app(&self, env: VALUE, response: &Response<'_, '_>) -> Result<(), Stop> {
        response.env.set(env);
        hijack::offer(response);
        if response.with(|exchange| exchange.offers_early_hints()) {
            let hints = early_hints::make(response);
            // SAFETY: live objects, the GVL is held.
            unsafe { rb_hash_aset(env, strings().rack_early_hints, hints) };
        }
        self.offer_upgrade(env, response);
        // SAFETY: live objects, the GVL is held, exceptions are stopped.
        let triple = unsafe { rb_funcallv(self.app.app, ids().call, 1, &env) };
        if self.engine.is_at_home() {
            return response.write(triple);
        }
        response.with(|exchange| exchange.abort());
        Ok(())
    }

    /// After the response: closes the body, runs what the application wants to have run, and closes the input.
    fn finish(&self, env: Env, error: VALUE, response: &Response<'_, '_>, is_whole: bool) {
        let nil = Qnil as VALUE;
        let is_listed = || length(self.ruby, env.after_reply) > 0 || length(self.ruby, env.response_finished) > 0;
        if response.body.get() == nil && env.file == nil && !is_listed() {
            return;
        }
        if is_whole {
            response.with(|exchange| exchange.finish());
        }
        self.logged(env.hash, || super::response::close(response));
        let call = |list: VALUE, index: isize, arguments: &[VALUE]| {
            self.logged(env.hash, || {
                // SAFETY: live objects on the stack, the GVL is held, exceptions are stopped.
                unsafe {
                    let callable = rb_sys::rb_ary_entry(list, index as _);
                    rb_funcallv(callable, ids().call, arguments.len() as _, arguments.as_ptr());
                }
            });
        };
        for index in 0..length(self.ruby, env.after_reply) {
            call(env.after_reply, index, &[]);
        }
        let arguments = [env.hash, response.status.get(), response.headers.get(), error];
        for index in (0..length(self.ruby, env.response_finished)).rev() {
            call(env.response_finished, index, &arguments);
        }
        if is_listed() {
            self.template.renew_lists();
        }
        if env.file != nil {
            // Otherwise its descriptor would be open until the collector comes by.
            self.logged(env.hash, || {
                // SAFETY: a live IO, the GVL is held, exceptions are stopped.
                unsafe { rb_sys::rb_io_close(env.file) };
            });
        }
    }
}

/// What a panic has left.
type Panic = Box<dyn Any + Send>;

/// Stops a panic, so that what has to be undone is.
fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(code))
}

/// The length of a list of ours; 0 when it could not be made.
fn length(_: &Ruby, list: VALUE) -> isize {
    // SAFETY: nil or an Array on the stack.
    unsafe {
        if list == Qnil as VALUE {
            0
        } else {
            RARRAY_LEN(list) as isize
        }
    }
}
