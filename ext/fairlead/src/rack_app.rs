//! The Rack application as the engine's [`App`]: one request becomes an env, a call, and a response; whatever goes wrong on
//! the way is logged once and answered, and the body is always closed.

use crate::gvl::{self, protect, without_gvl, InApp, Jump, HANDS_OVER};
use crate::hijack;
use crate::request::{Env, Template, ThreadTemplate};
use crate::response::{close, early_hints, is_closed_error, Offer, Response, Stop};
use crate::strings::{ids, strings};
use fairlead_engine::pubsub::Publication;
use fairlead_engine::{App, Client, Engine, Event, Exchange, Protocol};
use rb_sys::{rb_eException, rb_funcallv, rb_hash_aset, rb_id2sym, rb_set_errinfo, Qnil, RARRAY_LEN, VALUE};
use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// The Ruby objects of one engine. Its owner marks them.
#[derive(Debug)]
pub(crate) struct RackApp {
    pub(crate) app: VALUE,
    /// `call(exception, env)` logs and returns a response.
    pub(crate) error_reporter: VALUE,
    /// Whether clients are told what has happened, instead of shown the error page.
    pub(crate) error_details: bool,
    /// `call` starts one more thread.
    pub(crate) start_thread: VALUE,
    pub(crate) template: Template,
    /// The clients that stay connected, each at its place: an Array.
    pub(crate) clients: VALUE,
}

/// A RackApp on one of its threads.
pub(crate) struct OnThread<'a> {
    pub(crate) app: &'a RackApp,
    pub(crate) engine: &'a Engine,
    pub(crate) template: ThreadTemplate<'a>,
    /// How Ruby wants to leave this thread: `Thread#kill`, or an exception from another thread.
    pub(crate) leave: Cell<Option<Jump>>,
}

impl App for OnThread<'_> {
    fn call(&self, exchange: &mut Exchange<'_>) {
        let _in_app = InApp::enter(self.engine);
        let panic = Response::on(exchange, |response| self.answer(response));
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn event(&self, client: &Arc<Client>, event: Event) {
        self.run_event(client, event);
    }

    fn gone(&self, client: &Arc<Client>, forgotten: Vec<Box<[u8]>>) {
        self.forget(client, &forgotten);
    }

    fn published(&self, id: u64, publication: &Publication) {
        self.run_published(id, publication);
    }

    fn task(&self) {
        self.run_task();
    }

    fn block(&self, wait: &mut dyn FnMut()) {
        without_gvl(wait, self.engine);
        // SAFETY: the GVL is held again, exceptions are stopped.
        if let Err(jump) = protect(|| unsafe { rb_sys::rb_thread_check_ints() }) {
            self.leave.set(Some(jump));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.leave.get().is_some()
    }

    fn start_thread(&self) -> bool {
        let mut is_started = false;
        self.logged(Qnil as VALUE, || {
            // SAFETY: a marked object, the GVL is held, exceptions are stopped and logged.
            unsafe { rb_funcallv(self.app.start_thread, ids().call, 0, std::ptr::null()) };
            is_started = true;
        });
        is_started
    }

    fn hands_over(&self) -> bool {
        HANDS_OVER
    }
}

impl OnThread<'_> {
    /// Calls the application and answers. A panic is returned once all is tidied up.
    fn answer(&self, response: &Response<'_, '_>) -> Option<Panic> {
        let nil = Qnil as VALUE;
        let mut env = Env {
            hash: nil,
            after_reply: nil,
            response_finished: nil,
            file: nil,
        };
        let called = caught(|| {
            protect(|| {
                env = response.with(|exchange| self.template.fill(exchange));
                self.call_app(env.hash, response).unwrap_or_else(|stop| stop.raise());
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

    /// Tells the application what the client asks for, if it can become more than a request. Inside `protect`.
    fn offer_upgrade(&self, env: VALUE, response: &Response<'_, '_>) {
        let Some(protocol) = response.with(|exchange| exchange.upgrade_offer()) else {
            return;
        };
        let name = match protocol {
            Protocol::WebSocket => ids().websocket,
            _ => ids().sse,
        };
        // SAFETY: live objects, the GVL is held.
        unsafe { rb_hash_aset(env, strings().rack_upgrade_p, rb_id2sym(name)) };
        response.offer.set(Some(Offer {
            env,
            clients: self.app.clients,
        }));
    }

    /// Deals with what the application raised; returns the exception, or nil if it was none of the application's.
    fn failed(&self, jump: Jump, env: VALUE, response: &Response<'_, '_>) -> VALUE {
        // In a process that the application has forked it is how that one ends.
        let error = if self.engine.is_at_home() { take_error() } else { None };
        let Some(error) = error else {
            // Not an exception but the end of this thread.
            self.leave.set(Some(jump));
            response.with(|exchange| exchange.abort());
            return Qnil as VALUE;
        };
        if response.is_given_away.get() {
            // What was given the socket after the head has raised, and nobody else will close it.
            self.logged(env, || {
                // SAFETY: a live IO, the GVL is held, exceptions are stopped. It may be closed already.
                unsafe { rb_sys::rb_io_close(response.hijacked_io.get()) };
            });
        }
        if is_closed_error(error) {
            response.with(|exchange| exchange.abort());
        } else if response.with(|exchange| !exchange.has_started() || exchange.take_back()) {
            self.report(error, env, response);
        } else {
            self.log(error, env);
            response.with(|exchange| exchange.abort());
        }
        error
    }

    /// Answers in the place of an application that has raised, and logs what it was.
    fn report(&self, error: VALUE, env: VALUE, response: &Response<'_, '_>) {
        let triple = self.log(error, env);
        if !self.app.error_details && response.with(|exchange| exchange.respond_with_error_page(500)) {
            return;
        }
        response.with(|exchange| {
            let written = triple.map(|triple| {
                Response::on(exchange, |report| {
                    protect(|| report.write(triple).unwrap_or_else(|stop| stop.raise()))
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

    /// Logs what the application has raised; returns the response that tells of it, if there is one.
    fn log(&self, error: VALUE, env: VALUE) -> Option<VALUE> {
        let mut triple = None;
        let arguments = [error, env];
        // SAFETY: live objects, the GVL is held, exceptions are stopped.
        let logged = protect(|| unsafe {
            triple = Some(rb_funcallv(self.app.error_reporter, ids().call, 2, arguments.as_ptr()));
        });
        if let Err(jump) = logged {
            self.leave_unless_raised(jump);
        }
        triple
    }

    /// Reporting an exception has failed: another one changes nothing, but the end of the thread is not to be missed.
    fn leave_unless_raised(&self, jump: Jump) {
        if take_error().is_none() {
            self.leave.set(Some(jump));
        }
    }

    /// After the response: closes the body, runs what the application wants to have run, and closes the input.
    fn finish(&self, env: Env, error: VALUE, response: &Response<'_, '_>, is_whole: bool) {
        let nil = Qnil as VALUE;
        let is_listed = || length(env.after_reply) > 0 || length(env.response_finished) > 0;
        if response.body.get() == nil && env.file == nil && !is_listed() {
            return;
        }
        if is_whole {
            response.with(|exchange| exchange.finish());
        }
        self.logged(env.hash, || close(response));
        let call = |list: VALUE, index: isize, arguments: &[VALUE]| {
            self.logged(env.hash, || {
                // SAFETY: live objects on the stack, the GVL is held, exceptions are stopped.
                unsafe {
                    let callable = rb_sys::rb_ary_entry(list, index as _);
                    rb_funcallv(callable, ids().call, arguments.len() as _, arguments.as_ptr());
                }
            });
        };
        for index in 0..length(env.after_reply) {
            call(env.after_reply, index, &[]);
        }
        let arguments = [env.hash, response.status.get(), response.headers.get(), error];
        for index in (0..length(env.response_finished)).rev() {
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

    /// Runs application code whose exceptions can only be logged.
    pub(crate) fn logged(&self, env: VALUE, code: impl FnMut()) {
        let Err(jump) = protect(code) else { return };
        let Some(error) = take_error() else {
            return self.leave.set(Some(jump));
        };
        self.log(error, env);
    }
}

/// What a panic has left.
type Panic = Box<dyn Any + Send>;

/// Stops a panic, so that what has to be undone is.
fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(code))
}

/// The length of a list of ours; 0 when it could not be made.
fn length(list: VALUE) -> isize {
    // SAFETY: nil or an Array on the stack.
    unsafe {
        if list == Qnil as VALUE {
            0
        } else {
            RARRAY_LEN(list) as isize
        }
    }
}

/// The exception that `protect` stopped; `None` when it was something else, such as the end of the thread. Ruby forgets
/// both: code that runs now would clear what is left of the end of a thread, and Ruby crashes when that is resumed without.
fn take_error() -> Option<VALUE> {
    // SAFETY: the GVL is held; a constant of Ruby.
    unsafe {
        let error = gvl::take_error(rb_eException);
        rb_set_errinfo(Qnil as VALUE);
        error
    }
}
