//! Contention for the GVL: the number of threads of the process that wait for it, and the number of switches between
//! threads. Ruby 3.2 and newer report events of each thread, whether it serves or the application has started it. Ruby
//! 3.1 reports none, so only the ends of time slices count there.
//!
//! A thread waits from its READY event to its RESUMED event. A thread that gets the GVL without a READY, because it has
//! waited since before the hook was installed, has never been counted. Threads of other Ractors are counted although
//! each Ractor has its own lock: Ruby does not report the Ractor of an event.

#[cfg(ruby_gte_3_2)]
use rb_sys::rb_internal_thread_event_data_t;
#[cfg(ruby_gte_3_2)]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Number of threads that wait for the GVL.
static WAITING: AtomicI64 = AtomicI64::new(0);

/// Number of times that a thread has got the GVL after another thread had it.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// The last thread that got the GVL, as in [`has`]. Written with the GVL.
#[cfg(ruby_gte_3_2)]
static HOLDER: AtomicUsize = AtomicUsize::new(0);

/// True while a native thread relies on the current holder of the GVL, see [`while_held`].
static IS_LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// Call this once, before the hook is installed.
#[cfg(ruby_gte_3_2)]
pub(super) fn init(ruby: &magnus::Ruby) {
    mark::init(ruby);
}

/// The thread of the event wants the GVL. The event may come on another thread, which wakes it.
///
/// # Safety
/// Only the hook may call this, with the arguments that Ruby gave it.
#[cfg(ruby_gte_3_2)]
pub(super) unsafe fn wants(data: *const rb_internal_thread_event_data_t) {
    // SAFETY: by the caller's promise.
    if unsafe { mark::set(data, true) } {
        WAITING.fetch_add(1, Relaxed);
    }
}

/// The calling thread, to which the event belongs, has got the GVL that it wanted. `me`: a number that no other living
/// thread has.
///
/// # Safety
/// As above.
#[cfg(ruby_gte_3_2)]
pub(super) unsafe fn has(me: usize, data: *const rb_internal_thread_event_data_t) {
    if HOLDER.load(Relaxed) != me {
        HOLDER.store(me, Relaxed);
        switched();
    }
    // SAFETY: as above.
    if unsafe { mark::set(data, false) } {
        // Without marks, this thread may not have been counted.
        let _ = WAITING.fetch_update(Relaxed, Relaxed, |waiting| (waiting > 0).then(|| waiting - 1));
    }
}

/// Marks of the threads that are counted.
#[cfg(ruby_gte_3_3)]
mod mark {
    use crate::gvl::thread_value::ThreadValue;
    use rb_sys::rb_internal_thread_event_data_t;

    static MARK: ThreadValue = ThreadValue::new();

    pub(super) fn init(ruby: &magnus::Ruby) {
        MARK.make(ruby);
    }

    /// Sets the mark. Returns true if the mark was different before, or if that is unknown.
    ///
    /// # Safety
    /// Only the hook may call this, with the arguments that Ruby gave it.
    pub(super) unsafe fn set(data: *const rb_internal_thread_event_data_t, waits: bool) -> bool {
        // SAFETY: by the caller's promise.
        unsafe {
            let before = MARK.get(data);
            MARK.set(data, waits.into());
            before != Some(waits.into())
        }
    }
}

/// On Ruby 3.2 an event always comes on its own thread.
#[cfg(all(ruby_gte_3_2, not(ruby_gte_3_3)))]
mod mark {
    use rb_sys::rb_internal_thread_event_data_t;
    use std::cell::Cell;

    thread_local! {
        static WAITS: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn init(_: &magnus::Ruby) {}

    /// # Safety
    /// None: it is unsafe only to match the versions for other Rubies.
    pub(super) unsafe fn set(_: *const rb_internal_thread_event_data_t, waits: bool) -> bool {
        WAITS.replace(waits) != waits
    }
}

/// The calling thread has got the GVL from another thread.
pub(super) fn switched() {
    SWITCHES.fetch_add(1, SeqCst);
    while IS_LOOKED_AT.load(SeqCst) {
        std::thread::yield_now();
    }
}

/// Returns true if a thread waits for the GVL.
pub(super) fn is_wanted() -> bool {
    WAITING.load(Relaxed) > 0
}

/// Number of times that the GVL has gone from one thread to another.
pub(super) fn switches() -> u64 {
    SWITCHES.load(SeqCst)
}

/// Calls `code` if the GVL has not gone to another thread since [`switches`] was `seen`. A thread that gets the GVL
/// meanwhile waits until `code` has returned. So no thread that Ruby reports can begin to run or end meanwhile; but the
/// holder may go on, change its Fiber or give up the GVL. Only one native thread at a time runs `code`; a second one
/// does nothing.
pub(super) fn while_held(seen: u64, code: impl FnOnce()) {
    if IS_LOOKED_AT.swap(true, SeqCst) {
        return;
    }
    if switches() == seen {
        code();
    }
    IS_LOOKED_AT.store(false, SeqCst);
}

/// This is the child of a fork: only the calling thread exists, and it has the GVL.
pub(super) fn forget_others() {
    WAITING.store(0, Relaxed);
    IS_LOOKED_AT.store(false, SeqCst);
}
