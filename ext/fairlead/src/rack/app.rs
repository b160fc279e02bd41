//! The Rack application as the engine's [`App`]: requests, events and tasks become calls of the application.

use super::request::length;
use super::{Response, Template, ThreadTemplate};
use crate::collections;
use crate::gvl::{lock_wait, without_gvl, EngineCode, InApp};
use crate::memory::spares_collections;
use crate::native::requests::Running;
use crate::objects::{call, new_array};
use crate::protect::{check_interrupts, check_interrupts_after_collection, Jump};
use crate::strings::ids;
use fairlead_engine::pubsub::Publication;
use fairlead_engine::{App, Client, Engine, Event, Exchange, Garbage};
use magnus::Ruby;
use rb_sys::{Qnil, VALUE};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

/// The Ruby objects of one engine. Their owner marks them.
#[derive(Debug)]
pub(crate) struct RackApp {
    pub(crate) app: VALUE,
    /// `call(exception, env, status)` logs the exception. It returns a response with that status, or none if the status
    /// is nil.
    pub(crate) error_reporter: VALUE,
    /// Sends that response even if there is an error page.
    pub(crate) error_details: bool,
    /// Runs each request in a Fiber of its own.
    pub(crate) fiber_per_request: bool,
    /// `call` runs the blocks of the hook of that name; nil if there are none.
    pub(crate) out_of_band: VALUE,
    /// Adds Puma's entries to envs.
    pub(crate) puma_env: bool,
    /// `call` starts one more thread.
    pub(crate) start_thread: VALUE,
    pub(crate) template: Template,
    /// The connected clients: an Array, each at the index that the engine gave it.
    pub(crate) clients: VALUE,
}

/// A RackApp on one of its threads.
pub(crate) struct OnThread<'a> {
    /// Proves that this thread has the GVL: the engine calls the methods of [`App`] with the lock of the language only.
    pub(crate) ruby: &'a Ruby,
    pub(crate) app: &'a RackApp,
    pub(crate) engine: &'a Engine,
    pub(crate) template: ThreadTemplate<'a>,
    /// Set when Ruby wants to leave this thread: `Thread#kill`, or an exception from another thread.
    pub(crate) leave: Cell<Option<Jump>>,
    /// The exception of that jump; nil for another jump.
    pub(crate) exception: Cell<VALUE>,
    /// True if the thread has run a request since it last ran `out_of_band` blocks.
    pub(crate) has_served: Cell<bool>,
    /// The request that it runs.
    pub(crate) running: Running,
    /// Number of collections at the end of its last job.
    pub(crate) collections: Cell<u64>,
}

impl OnThread<'_> {
    /// At the end of a job: follows up the collections since the last one.
    fn after_collections(&self) {
        let count = collections::count(self.ruby);
        if self.collections.replace(count) == count {
            return;
        }
        collections::show(self.ruby, self.engine);
        if self.leave.get().is_none() {
            if let Err(jump) = check_interrupts_after_collection(self.ruby) {
                self.leave_by(jump);
            }
        }
    }
}

impl App for OnThread<'_> {
    fn call(&self, exchange: &mut Exchange<'_>) {
        lock_wait::begin();
        self.running.begin(exchange.request());
        self.running.watch(exchange.deadline());
        let _in_app = InApp::enter(self.engine);
        let panic = Response::on(self.ruby, exchange, |response| {
            if self.app.fiber_per_request {
                self.respond_in_fiber(response)
            } else {
                self.respond(response)
            }
        });
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        self.has_served.set(true);
        self.after_collections();
    }

    fn lock_wait(&self) -> Option<Duration> {
        lock_wait::so_far()
    }

    fn wants_leisure(&self) -> bool {
        self.app.out_of_band != Qnil as VALUE && self.has_served.get()
    }

    fn leisure(&self) {
        self.has_served.set(false);
        let _in_app = InApp::enter(self.engine);
        self.logged(Qnil as VALUE, || {
            call(self.ruby, self.app.out_of_band, ids().call, &[]);
        });
        self.after_collections();
    }

    fn collect_garbage(&self, garbage: Garbage) {
        if spares_collections() {
            return;
        }
        let _in_app = InApp::enter(self.engine);
        self.logged(Qnil as VALUE, || {
            collections::collect(self.ruby, garbage);
        });
        collections::show(self.ruby, self.engine);
    }

    fn event(&self, client: &Arc<Client>, event: Event) {
        self.run_event(client, event);
        self.after_collections();
    }

    fn gone(&self, client: &Arc<Client>, forgotten: Vec<Box<[u8]>>) {
        self.forget(client, &forgotten);
    }

    fn published(&self, id: u64, publication: &Publication) {
        self.run_published(id, publication);
        self.after_collections();
    }

    fn task(&self) {
        self.run_task();
        self.after_collections();
    }

    fn idle(&self) {
        crate::memory::release_thread_stack();
    }

    fn block(&self, wait: &mut dyn FnMut()) {
        let mut wait = EngineCode(wait);
        collections::show(self.ruby, self.engine);
        without_gvl(self.ruby, self.engine, || wait.run());
        if let Err(jump) = check_interrupts(self.ruby) {
            self.leave_by(jump);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.leave.get().is_some()
    }

    fn start_thread(&self) -> bool {
        // The block adds an element to it with the new thread. Exceptions from other threads for this thread come
        // afterwards.
        let mut started = Qnil as VALUE;
        self.logged(Qnil as VALUE, || {
            started = new_array(self.ruby);
            call(self.ruby, self.app.start_thread, ids().call, &[started]);
        });
        length(self.ruby, started) > 0
    }
}
