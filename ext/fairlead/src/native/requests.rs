//! Which request each thread of this process runs, for whoever wants to know where the time goes.
//!
//! A thread keeps its env in a cell on its own stack, where the collector sees it; setting it is all that a request
//! costs. The list has the addresses of these cells. Whoever reads or changes it has the GVL, so no thread can leave
//! meanwhile.

use crate::objects::new_array;
use fairlead_engine::forks;
use magnus::rb_sys::FromRawValue;
use magnus::{function, prelude::*, Error, RModule, Ruby, Value};
use rb_sys::{rb_ary_push, Qnil, VALUE};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a thread runs. Stays where it is, on the stack of the thread.
pub(crate) struct Running {
    thread: VALUE,
    /// The env of the request; nil between two.
    env: Cell<VALUE>,
}

/// The address of a [`Running`], and how often this process had been forked when it was noted: a child has the stacks
/// of its parent's threads no more.
struct Noted {
    running: usize,
    forks: u32,
}

static THREADS: Mutex<Vec<Noted>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<Noted>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, the thread is in the list.
pub(crate) struct Listed<'a>(&'a Running);

impl Running {
    pub(crate) fn new(_: &Ruby) -> Running {
        Running {
            // SAFETY: the GVL is held.
            thread: unsafe { rb_sys::rb_thread_current() },
            env: Cell::new(Qnil as VALUE),
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

    /// Notes the request that begins; nil at its end.
    pub(crate) fn set(&self, env: VALUE) {
        self.env.set(env);
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self.0) as usize;
        threads().retain(|noted| noted.running != address);
    }
}

pub(super) fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("current_requests", function!(current_requests, 0))
}

/// Pairs of a thread and the env of the request that it runs.
fn current_requests(ruby: &Ruby) -> Result<Value, Error> {
    magnus::rb_sys::protect(|| {
        let list = new_array(ruby);
        for index in 0.. {
            let Some(running) = running(index) else { break };
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

/// The thread with that place in the list and its env, if it runs a request; `None` behind the last place. The list is
/// not locked when this has returned, because a new object may need memory and raise.
fn running(index: usize) -> Option<Option<(VALUE, VALUE)>> {
    let threads = threads();
    let noted = threads.get(index)?;
    if noted.forks != forks() {
        return Some(None);
    }
    // SAFETY: the address of a Running on the stack of a thread of this process, which leaves the list before the stack
    // frame ends; it needs the GVL for that, which this thread has.
    let running = unsafe { &*(noted.running as *const Running) };
    let env = running.env.get();
    Some((env != Qnil as VALUE).then_some((running.thread, env)))
}
