//! Notices that Ruby has begun to end this process, as a block of at_exit would, which a program might count.

use rb_sys::{rb_set_end_proc, Qnil, VALUE};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// The process that has begun to end: a forked one has not, although it has a copy of this.
static ENDED: AtomicU32 = AtomicU32::new(0);

static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Notices the end from now on, in this process and in those that it forks.
pub(crate) fn watch() {
    unsafe extern "C" fn begin(_: VALUE) {
        ENDED.store(std::process::id(), SeqCst);
    }

    // Ruby calls it once. A process that was forked after that has to ask for it again.
    let is_over = ENDED.load(SeqCst) != 0;
    if !IS_WATCHED.swap(true, SeqCst) || is_over {
        // SAFETY: the GVL is held by the caller, a method of Ruby; the function has this signature, and does not call Ruby.
        unsafe { rb_set_end_proc(Some(begin), Qnil as VALUE) };
    }
}

/// True if the end has begun.
pub(crate) fn has_begun() -> bool {
    ENDED.load(SeqCst) == std::process::id()
}
