//! The streams that are open after the call of their body has returned (`stream.rs`), and the threads that have written to them.
//!
//! They are no keys of an `ObjectSpace::WeakMap`: a finalizer that overflows the stack is lost, then the entry stays, and Ruby 3.1 yields
//! freed objects.

use crate::strings::ids;
use fairlead_engine::Client;
use magnus::rb_sys::{AsRawValue, FromRawId, FromRawValue};
use magnus::value::Id;
use magnus::{function, prelude::*, Error, RArray, RClass, Thread, TryConvert, Value};
use rb_sys::rb_attr_get;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// The client of a stream, and the last thread that has written. The stream owns it. It does not keep the thread alive, because the thread
/// may keep the stream alive.
#[derive(Default)]
pub(super) struct Kept {
    /// Takes the rest of the body once the call has ended.
    client: RefCell<Option<Arc<Client>>>,
    /// The process to which the client belongs.
    process: Cell<u32>,
    /// The number of the thread that has written last; 0 if none has.
    writer: Cell<u64>,
    /// Number of checks that found the writer dead.
    looks: Cell<u32>,
}

/// The streams that may be open. A forked process inherits the list.
struct List(RefCell<Vec<Weak<Kept>>>);

// SAFETY: used under the GVL only. No Ruby runs while it is borrowed.
unsafe impl Sync for List {}

static LIST: List = List(RefCell::new(Vec::new()));

/// Defines `Fairlead::Native::Stream.kept?` and `.left?`.
pub(super) fn init(class: RClass) -> Result<(), Error> {
    class.define_singleton_method("kept?", function!(is_any_open, 0))?;
    class.define_singleton_method("left?", function!(is_any_left, 1))
}

impl Kept {
    /// The call has returned: the client takes the rest.
    pub(super) fn begin(self: &Rc<Self>, client: Arc<Client>) {
        self.process.set(std::process::id());
        *self.client.borrow_mut() = Some(client);
        let mut list = LIST.0.borrow_mut();
        if list.len() == list.capacity() {
            list.retain(|kept| kept.upgrade().is_some_and(|kept| kept.is_open()));
            // Room for as many again: the next search comes only after as many streams as are open.
            let open = list.len();
            list.reserve(open);
        }
        list.push(Rc::downgrade(self));
    }

    /// `None` before the call has returned.
    pub(super) fn client(&self) -> Option<Arc<Client>> {
        self.client.borrow().clone()
    }

    pub(super) fn is_written_by(&self, thread: Thread) {
        self.writer.set(number(thread));
    }

    /// The collector ends a stream that the application has lost: its writer may have died in the middle, so the response is aborted. A
    /// forked process has only a copy, and aborts nothing.
    pub(super) fn abandon(&self) {
        if self.process.get() == std::process::id() {
            if let Some(client) = &*self.client.borrow() {
                client.abandon();
            }
        }
    }

    fn is_open(&self) -> bool {
        self.process.get() == std::process::id() && self.client.borrow().as_ref().is_some_and(|client| client.is_open())
    }

    /// Returns true if the last writing thread is not among the living ones and a search is due. The pauses between searches grow, because
    /// the stream may have other owners. The collector may overlook the stream as long as an old reference is left on the stack of a thread.
    fn is_left(&self, living: &HashSet<u64>) -> bool {
        let writer = self.writer.get();
        if !self.is_open() || writer == 0 || living.contains(&writer) {
            return false;
        }
        self.looks.set(self.looks.get().saturating_add(1));
        self.looks.get().is_power_of_two()
    }
}

/// The number of a thread, which no other thread of the process gets; 0 for a frozen thread. The thread has it in an instance variable
/// that Ruby code cannot name.
fn number(thread: Thread) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let name = ids().thread_number;
    // SAFETY: a live thread, under the GVL. This reads a variable, and does not raise if there is none.
    let known = unsafe { Value::from_raw(rb_attr_get(thread.as_raw(), name)) };
    u64::try_convert(known).unwrap_or_else(|_| {
        let number = LAST.fetch_add(1, Relaxed) + 1;
        // SAFETY: an id of Ruby.
        let name = unsafe { Id::from_raw(name) };
        thread.ivar_set(name, number).map_or(0, |()| number)
    })
}

/// Returns true if a stream is open that the collector has not found.
fn is_any_open() -> bool {
    let list = LIST.0.borrow();
    list.iter()
        .any(|kept| kept.upgrade().is_some_and(|kept| kept.is_open()))
}

/// Returns true if the writer of a stream is dead. `threads`: the living ones.
fn is_any_left(threads: RArray) -> bool {
    let living = threads.into_iter().filter_map(Thread::from_value).map(number).collect();
    let list = LIST.0.borrow();
    let left = list
        .iter()
        .filter(|kept| kept.upgrade().is_some_and(|kept| kept.is_left(&living)));
    left.count() > 0
}
