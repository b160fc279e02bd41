//! Who wants the GVL: how many threads of the process wait for it, and how often it has gone from one to another. Counts
//! what Ruby 3.2 and newer tell of each thread, whether it serves or the application has started it. Ruby 3.1 tells
//! nothing; there only the ends of time slices count.
//!
//! Each thread counts by itself: it waits from its READY to its RESUMED. A thread that gets the GVL without a READY, because
//! it has waited since before the hook was installed, has never been counted. The threads of other Ractors are, although
//! they have locks of their own: Ruby does not say which Ractor an event is of.

#[cfg(ruby_gte_3_2)]
use rb_sys::rb_internal_thread_event_data_t;
#[cfg(ruby_gte_3_2)]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Threads that want the GVL and do not have it.
static WAITING: AtomicI64 = AtomicI64::new(0);

/// How often a thread has got the GVL that was not the last to have it.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// The last thread that got it, as in [`has`]. Written with the GVL.
#[cfg(ruby_gte_3_2)]
static HOLDER: AtomicUsize = AtomicUsize::new(0);

/// Whether a native thread uses what it knows of the holder, see [`while_held`].
static IS_LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// To be called once, before the hook is installed.
#[cfg(ruby_gte_3_2)]
pub(super) fn init(ruby: &magnus::Ruby) {
    mark::init(ruby);
}

/// The thread of the event wants the GVL. Another thread may say so, which wakes it.
///
/// # Safety
/// To be called by the hook, with what Ruby has called it with.
#[cfg(ruby_gte_3_2)]
pub(super) unsafe fn wants(data: *const rb_internal_thread_event_data_t) {
    // SAFETY: by the caller's promise.
    if unsafe { mark::set(data, true) } {
        WAITING.fetch_add(1, Relaxed);
    }
}

/// The calling thread, which the event is of, has got the GVL that it wanted. `me`: a number that no other living thread
/// has.
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
        // Without marks it may not have been counted.
        let _ = WAITING.fetch_update(Relaxed, Relaxed, |waiting| (waiting > 0).then(|| waiting - 1));
    }
}

/// Whether a thread is counted.
#[cfg(ruby_gte_3_3)]
mod mark {
    use crate::gvl::thread_value::ThreadValue;
    use rb_sys::rb_internal_thread_event_data_t;

    static MARK: ThreadValue = ThreadValue::new();

    pub(super) fn init(ruby: &magnus::Ruby) {
        MARK.make(ruby);
    }

    /// Returns whether it was otherwise before; true if that is not known.
    ///
    /// # Safety
    /// To be called by the hook, with what Ruby has called it with.
    pub(super) unsafe fn set(data: *const rb_internal_thread_event_data_t, waits: bool) -> bool {
        // SAFETY: by the caller's promise.
        unsafe {
            let before = MARK.get(data);
            MARK.set(data, waits.into());
            before != Some(waits.into())
        }
    }
}

/// On Ruby 3.2 an event always comes on the thread that it is of.
#[cfg(all(ruby_gte_3_2, not(ruby_gte_3_3)))]
mod mark {
    use rb_sys::rb_internal_thread_event_data_t;
    use std::cell::Cell;

    thread_local! {
        static WAITS: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn init(_: &magnus::Ruby) {}

    /// # Safety
    /// None: it is unsafe as the one for other versions.
    pub(super) unsafe fn set(_: *const rb_internal_thread_event_data_t, waits: bool) -> bool {
        WAITS.replace(waits) != waits
    }
}

/// The GVL has gone to the calling thread.
pub(super) fn switched() {
    SWITCHES.fetch_add(1, SeqCst);
    while IS_LOOKED_AT.load(SeqCst) {
        std::thread::yield_now();
    }
}

/// Whether a thread waits for the GVL.
pub(super) fn is_wanted() -> bool {
    WAITING.load(Relaxed) > 0
}

/// How often the GVL has gone from one thread to another.
pub(super) fn switches() -> u64 {
    SWITCHES.load(SeqCst)
}

/// Calls `code` if the GVL has not gone to another thread since [`switches`] was `seen`. Whoever gets it meanwhile waits
/// until `code` has returned; so no thread that Ruby tells of can begin to run or end meanwhile, but the holder itself may
/// go on, change its Fiber or give the GVL up. For one native thread at a time; another one does nothing.
pub(super) fn while_held(seen: u64, code: impl FnOnce()) {
    if IS_LOOKED_AT.swap(true, SeqCst) {
        return;
    }
    if switches() == seen {
        code();
    }
    IS_LOOKED_AT.store(false, SeqCst);
}

/// This is the child of a fork: only the calling thread is left, and it has the GVL.
pub(super) fn forget_others() {
    WAITING.store(0, Relaxed);
    IS_LOOKED_AT.store(false, SeqCst);
}
