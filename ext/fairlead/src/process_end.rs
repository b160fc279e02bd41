//! Notices that Ruby has begun to end this process. A block of at_exit would notice it too, but a program might count
//! those.

use rb_sys::{rb_set_end_proc, Qnil, VALUE};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// The id of the process that has begun to end: a forked process copies this value, but has not begun to end.
static ENDED: AtomicU32 = AtomicU32::new(0);

static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Watches for the end from now on, in this process and in its forks.
pub(crate) fn watch() {
    unsafe extern "C" fn begin(_: VALUE) {
        ENDED.store(std::process::id(), SeqCst);
    }

    // Ruby calls the function once. A process that was forked after that must register it again.
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
