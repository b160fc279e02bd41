//! Who wants the GVL: how many threads of the process wait for it, and how often it has gone from one to another. Counts
//! what Ruby 3.2 and newer tell of each thread, whether it serves or the application has started it. Ruby 3.1 tells
//! nothing; there only the ends of time slices count.

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

/// A thread wants the GVL. Another thread may say so, which wakes it.
#[cfg(ruby_gte_3_2)]
pub(super) fn wants() {
    WAITING.fetch_add(1, Relaxed);
}

/// The calling thread has got the GVL that it wanted. `me`: a number that no other living thread has.
#[cfg(ruby_gte_3_2)]
pub(super) fn has(me: usize) {
    if HOLDER.load(Relaxed) != me {
        HOLDER.store(me, Relaxed);
        switched();
    }
    WAITING.fetch_sub(1, Relaxed);
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
/// until `code` has returned, so the thread that has it cannot end and be freed. For one native thread at a time;
/// another one does nothing.
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
