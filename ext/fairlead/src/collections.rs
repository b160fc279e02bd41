//! Garbage collections of this process. Begins them, and shows them to the supervisor: after each of them, the next thread that has the GVL
//! in the engine's code writes their number and time to the scoreboard.

use crate::objects::{new_hash, set};
use crate::strings::ids;
use fairlead_engine::{Engine, Garbage};
use magnus::Ruby;
use rb_sys::{
    rb_funcallv_kw, rb_gc_count, rb_gc_start, rb_gc_stat, rb_id2sym, rb_mGC, Qfalse, RB_PASS_KEYWORDS, VALUE,
};
use std::sync::atomic::Ordering::Relaxed;

/// Number of collections so far.
pub(crate) fn count(_ruby: &Ruby) -> u64 {
    // SAFETY: this thread has the GVL; it reads a number.
    unsafe { rb_gc_count() as u64 }
}

/// Stores both if there was another collection. Otherwise it costs two loads.
pub(crate) fn show(ruby: &Ruby, engine: &Engine) {
    let counters = engine.counters();
    let count = count(ruby);
    if counters.gc_runs.load(Relaxed) == count || !engine.is_at_home() {
        return;
    }
    counters.gc_runs.store(count, Relaxed);
    // SAFETY: this thread has the GVL. Every Ruby that we support has this key, so it does not raise.
    let milliseconds = unsafe { rb_gc_stat(rb_id2sym(ids().time)) } as u64;
    counters.gc_milliseconds.store(milliseconds, Relaxed);
}

/// Collects garbage. Inside `protect`: finalizers may raise.
pub(crate) fn collect(ruby: &Ruby, garbage: Garbage) {
    if garbage == Garbage::All {
        // SAFETY: this thread has the GVL.
        unsafe { rb_gc_start() };
        return;
    }
    let options = new_hash(ruby);
    // SAFETY: as above; live objects, and one argument, a Hash with keywords.
    unsafe {
        set(ruby, options, rb_id2sym(ids().full_mark), Qfalse as VALUE);
        rb_funcallv_kw(rb_mGC, ids().start, 1, &options, RB_PASS_KEYWORDS as _);
    }
}
