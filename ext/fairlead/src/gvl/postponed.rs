//! The postponed job that ends a slice ([`slice`](super::slice)), for each version of Ruby.

#[cfg(not(ruby_gte_3_3))]
pub(super) use in_a_list::{announce, trigger};
#[cfg(ruby_gte_3_3)]
pub(super) use registered::{announce, trigger};

/// Postponed jobs from Ruby 3.3 on, where any thread may trigger one.
///
/// Ruby interrupts the thread that it has noted as the running one. Ruby notes a starting thread before that thread has
/// the GVL; then the computing thread does not get the job. But while other threads wait, Ruby's timer interrupts the
/// real holder every 10 ms to check if 100 ms have passed, and calls the hooks for that event: they take the claim.
#[cfg(ruby_gte_3_3)]
mod registered {
    use crate::gvl::slice::{is_claimed, pass_on};
    use magnus::Ruby;
    use rb_sys::{
        rb_add_event_hook, rb_event_flag_t, rb_postponed_job_handle_t, rb_postponed_job_preregister,
        rb_postponed_job_trigger, Qnil, ID, RUBY_INTERNAL_EVENT_SWITCH, VALUE,
    };
    use std::sync::OnceLock;

    static HANDLE: OnceLock<rb_postponed_job_handle_t> = OnceLock::new();

    /// Ruby's return value if it has no room for another job.
    const NO_PLACE: rb_postponed_job_handle_t = rb_postponed_job_handle_t::MAX;

    unsafe extern "C" fn timer(_: rb_event_flag_t, _: VALUE, _: VALUE, _: ID, _: VALUE) {
        if is_claimed() {
            // SAFETY: Ruby calls its hooks with the GVL held, here where it checks for interrupts, just as it calls the
            // job.
            unsafe { pass_on(std::ptr::null_mut()) };
        }
    }

    pub(in super::super) fn announce(_: &Ruby) {
        HANDLE.get_or_init(|| {
            // SAFETY: the GVL is held. The functions live as long as the process, as the extension is never unloaded.
            unsafe {
                rb_add_event_hook(Some(timer), RUBY_INTERNAL_EVENT_SWITCH, Qnil as VALUE);
                rb_postponed_job_preregister(0, Some(pass_on), std::ptr::null_mut())
            }
        });
    }

    pub(in super::super) fn trigger() {
        if let Some(handle) = HANDLE.get().filter(|handle| **handle != NO_PLACE) {
            // SAFETY: a handle that Ruby has given; by its documentation any thread may do this, even a native one.
            // Ruby chooses the thread to interrupt, perhaps the wrong one: no thread that it notes can end meanwhile,
            // see `while_held`.
            unsafe { rb_postponed_job_trigger(*handle) };
        }
    }
}

/// Postponed jobs up to Ruby 3.2, in a list that is not safe for several threads: while a native thread adds a job, the
/// thread with the GVL may be taking another one. It may then run a function with the data of the other job, or with
/// data of an earlier job. To make this harmless, every position of the list has held this job once, and the data of
/// this job is a block of zeros, in which Ruby's own jobs find nothing to do.
#[cfg(not(ruby_gte_3_3))]
mod in_a_list {
    use crate::gvl::slice::pass_on;
    use magnus::Ruby;
    use rb_sys::{rb_postponed_job_register, rb_postponed_job_register_one};
    use std::ffi::c_void;
    use std::sync::atomic::AtomicU64;
    use std::sync::Once;

    /// Positions of the list that are ever used: the other jobs belong to the collector and to profilers.
    const PLACES: usize = 32;

    /// Larger than any structure of Ruby that a job gets.
    static ZEROS: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

    static ANNOUNCED: Once = Once::new();

    pub(in super::super) fn announce(_: &Ruby) {
        ANNOUNCED.call_once(|| {
            for _ in 0..PLACES {
                // SAFETY: the GVL is held, as for `trigger`. The jobs do nothing, because nothing is claimed.
                unsafe { rb_postponed_job_register(0, Some(pass_on), data()) };
            }
        });
    }

    pub(in super::super) fn trigger() {
        // SAFETY: the function lives as long as the process, as the extension is never unloaded, and so does its data,
        // which any thread may write to. Ruby sets a flag of the context that it has noted as the running one. The
        // thread of this context cannot end meanwhile (`while_held`; on Ruby 3.1 it would have to end within these few
        // instructions, after a tick in which the process has computed). If the thread leaves a Fiber just then, and
        // the collector frees that Fiber, the flag is set in freed memory: this cannot be excluded, because Ruby offers
        // no way to keep a context alive.
        unsafe { rb_postponed_job_register_one(0, Some(pass_on), data()) };
    }

    fn data() -> *mut c_void {
        ZEROS.as_ptr().cast_mut().cast()
    }
}
