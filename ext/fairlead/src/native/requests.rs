//! The request that each thread of this process runs, for tools that show where the time goes.
//!
//! A thread keeps its env in a cell on its own stack, where the collector sees it; a request costs only one write to
//! this cell. The list has the addresses of these cells. The GVL is held for each read and change of the list, so no
//! thread can leave meanwhile.
//!
//! The callables in the env also use the list: they find out how long the request of their thread has waited.

use crate::gvl::lock_wait;
use crate::objects::new_array;
use crate::rack::ResponseRef;
use fairlead_engine::{forks, Deadline, Request, Waits};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{function, prelude::*, Error, RModule, Ruby, Value};
use rb_sys::{rb_ary_push, Qnil, VALUE};
use std::cell::{Cell, OnceCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The request of a thread. Stays at its address on the stack of the thread.
pub(crate) struct Running {
    thread: VALUE,
    /// The env of the request; nil between two.
    env: Cell<VALUE>,
    /// Leads to the response while the request runs; nil between two requests.
    response: Cell<VALUE>,
    /// Time that the request has waited for this thread.
    waits: Cell<Waits>,
    /// The deadline of the requests of this thread; `None` if none has had one.
    deadline: OnceCell<Arc<Deadline>>,
    /// Moment at which this thread began to run it, on the monotonic clock.
    began_at: Cell<Duration>,
}

/// The address of a [`Running`], and the number of forks when it was noted: a child no longer has the stacks of its
/// parent's threads.
struct Noted {
    running: usize,
    forks: u32,
}

static THREADS: Mutex<Vec<Noted>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<Noted>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the thread in the list while it lives.
pub(crate) struct Listed<'a>(&'a Running);

impl Running {
    pub(crate) fn new(_: &Ruby) -> Running {
        Running {
            // SAFETY: the GVL is held.
            thread: unsafe { rb_sys::rb_thread_current() },
            env: Cell::new(Qnil as VALUE),
            response: Cell::new(Qnil as VALUE),
            waits: Cell::default(),
            deadline: OnceCell::new(),
            began_at: Cell::default(),
        }
    }

    /// Enters this thread into the list.
    pub(crate) fn list(&self) -> Listed<'_> {
        threads().push(Noted {
            running: std::ptr::from_ref(self) as usize,
            forks: forks(),
        });
        Listed(self)
    }

    /// Notes the times of the request that begins.
    pub(crate) fn begin(&self, request: &Request) {
        self.waits.set(request.waits());
        self.began_at.set(request.began_at());
    }

    /// Notes the deadline of the requests of this thread.
    pub(crate) fn watch(&self, deadline: Option<&Arc<Deadline>>) {
        if let Some(deadline) = deadline {
            self.deadline.get_or_init(|| Arc::clone(deadline));
        }
    }

    /// Notes the env of the request, and the root of its response.
    pub(crate) fn set(&self, env: VALUE, response: VALUE) {
        self.env.set(env);
        self.response.set(response);
    }

    /// The request has ended.
    pub(crate) fn clear(&self) {
        self.set(Qnil as VALUE, Qnil as VALUE);
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self.0) as usize;
        threads().retain(|noted| noted.running != address);
    }
}

pub(super) fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("current_requests", function!(current_requests, 0))?;
    native.define_singleton_method("queue_time", function!(queue_time, 0))?;
    native.define_singleton_method("waiting_room_time", function!(waiting_room_time, 0))?;
    native.define_singleton_method("began_at", function!(began_at, 0))?;
    native.define_singleton_method("lock_wait", function!(lock_wait, 0))?;
    native.define_singleton_method("client_gone?", function!(is_client_gone, 0))?;
    native.define_singleton_method("set_request_timeout", function!(set_timeout, 1))?;
    native.define_singleton_method("late_requests", function!(late_requests, 0))
}

/// A method of `Fairlead::Native` as a frozen callable. May raise.
pub(crate) fn callable(ruby: &Ruby, name: &str) -> VALUE {
    let native = crate::classes::native(ruby).as_raw();
    // SAFETY: the GVL is held; a live module and a Symbol. The caller stops or expects an exception.
    unsafe { rb_sys::rb_obj_freeze(rb_sys::rb_obj_method(native, ruby.to_symbol(name).as_raw())) }
}

/// Time that the request of this thread has waited for the thread, without the time in the waiting room; nil if it runs
/// none.
fn queue_time() -> Option<f64> {
    on_this_thread(|running| running.waits.get().queue.as_secs_f64())
}

/// Time that the same request spent in the waiting room.
fn waiting_room_time() -> Option<f64> {
    on_this_thread(|running| running.waits.get().waiting_room.as_secs_f64())
}

/// Moment at which the same request began, in seconds on the monotonic clock.
fn began_at() -> Option<f64> {
    on_this_thread(|running| running.began_at.get().as_secs_f64())
}

/// Time that this thread has waited for the GVL since the same request began; nil also before Ruby 3.2.
fn lock_wait() -> Option<f64> {
    on_this_thread(|_| lock_wait::so_far())?.map(|time| time.as_secs_f64())
}

/// True if the client of the same request has left; nil if the thread runs none.
fn is_client_gone(ruby: &Ruby) -> Option<bool> {
    // The list is unlocked before the response is used.
    let response = on_this_thread(|running| running.response.get()).filter(|root| *root != Qnil as VALUE)?;
    let response = ResponseRef::of(ruby, response);
    response
        .response(|response| response.with(|exchange| exchange.is_client_gone()))
        .ok()
}

/// Gives the same request `seconds` from now to begin its response; nil: all the time that it needs. Returns the time of the
/// deadline on the monotonic clock; nil if there is none, or if the response has begun.
fn set_timeout(ruby: &Ruby, seconds: Option<f64>) -> Result<Option<f64>, Error> {
    let timeout = match seconds.map(Duration::try_from_secs_f64).transpose() {
        Ok(timeout) => timeout,
        Err(error) => return Err(Error::new(ruby.exception_arg_error(), error.to_string())),
    };
    let Some(response) = on_this_thread(|running| running.response.get()).filter(|root| *root != Qnil as VALUE) else {
        return Ok(None);
    };
    let set = ResponseRef::of(ruby, response)
        .response(|response| response.with(|exchange| (exchange.set_timeout(timeout), exchange.deadline().cloned())));
    let Ok((at, deadline)) = set else { return Ok(None) };
    on_this_thread(|running| running.watch(deadline.as_ref()));
    Ok(at.map(|at| at.as_secs_f64()))
}

/// Pairs of a thread and the env of its request, for each request that runs longer than its timeout; each of them once.
fn late_requests(ruby: &Ruby) -> Result<Value, Error> {
    pairs(ruby, |running| {
        let deadline = running.deadline.get();
        running.env.get() != Qnil as VALUE && deadline.is_some_and(|deadline| deadline.take_expired())
    })
}

/// Calls `question` with the request of this thread, if it runs one. `question` must call no Ruby: the list is locked.
fn on_this_thread<T>(question: impl FnOnce(&Running) -> T) -> Option<T> {
    // SAFETY: called from a method of Ruby: the GVL is held.
    let thread = unsafe { rb_sys::rb_thread_current() };
    let threads = threads();
    let mut here = threads.iter().filter(|noted| noted.forks == forks());
    let running = here.find_map(|noted| {
        // SAFETY: as in `running`: an address of this process, which stays valid while this thread has the GVL.
        let running = unsafe { &*(noted.running as *const Running) };
        (running.thread == thread && running.env.get() != Qnil as VALUE).then_some(running)
    });
    running.map(question)
}

/// Pairs of a thread and the env of its request.
fn current_requests(ruby: &Ruby) -> Result<Value, Error> {
    pairs(ruby, |_| true)
}

/// The same, for the requests that `is_wanted` selects. It must call no Ruby: the list is locked.
fn pairs(ruby: &Ruby, is_wanted: impl Fn(&Running) -> bool) -> Result<Value, Error> {
    magnus::rb_sys::protect(|| {
        let list = new_array(ruby);
        for index in 0.. {
            let Some(running) = running(index, &is_wanted) else {
                break;
            };
            if let Some((thread, env)) = running {
                let pair = new_array(ruby);
                // SAFETY: live objects; the GVL is held, and the closure owns nothing that has a destructor.
                unsafe {
                    rb_ary_push(pair, thread);
                    rb_ary_push(pair, env);
                    rb_ary_push(list, pair);
                }
            }
        }
        list
    })
    // SAFETY: a new Array, on the stack.
    .map(|list| unsafe { Value::from_raw(list) })
}

/// The thread at this index of the list and its env, if it runs a request that `is_wanted` selects; `None` behind the last
/// one. The list is not locked when this has returned, because a new object may need memory and raise.
fn running(index: usize, is_wanted: &impl Fn(&Running) -> bool) -> Option<Option<(VALUE, VALUE)>> {
    let threads = threads();
    let noted = threads.get(index)?;
    if noted.forks != forks() {
        return Some(None);
    }
    // SAFETY: the address of a Running on the stack of a thread of this process. The thread leaves the list before the
    // stack frame ends; it needs the GVL for that, which this thread has.
    let running = unsafe { &*(noted.running as *const Running) };
    let env = running.env.get();
    Some((env != Qnil as VALUE && is_wanted(running)).then_some((running.thread, env)))
}
