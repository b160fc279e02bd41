//! The postponed job that ends a slice ([`slice`](super::slice)), as each version of Ruby has them.

#[cfg(not(ruby_gte_3_3))]
pub(super) use in_a_list::{announce, trigger};
#[cfg(ruby_gte_3_3)]
pub(super) use registered::{announce, trigger};

/// Postponed jobs as they are from Ruby 3.3 on, where any thread may trigger one.
///
/// Ruby interrupts the thread that it notes as the running one. A thread that starts is noted so before it has the GVL;
/// then the thread that computes does not hear of the job. But as long as others wait, Ruby's timer interrupts the real
/// holder every 10 ms, to see whether 100 ms are over, and tells hooks for that: they take what was claimed.
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

    /// What Ruby returns when it has no place for another job.
    const NO_PLACE: rb_postponed_job_handle_t = rb_postponed_job_handle_t::MAX;

    unsafe extern "C" fn timer(_: rb_event_flag_t, _: VALUE, _: VALUE, _: ID, _: VALUE) {
        if is_claimed() {
            // SAFETY: Ruby calls its hooks with the GVL held, here where it checks for interrupts, as it calls the job.
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
            // SAFETY: a handle that Ruby has given; by its documentation any thread may do this, a native one too. What it
            // interrupts, perhaps the wrong thread, is up to Ruby: no thread that it notes can end meanwhile, see
            // `while_held`.
            unsafe { rb_postponed_job_trigger(*handle) };
        }
    }
}

/// Postponed jobs as they were up to Ruby 3.2, in a list that is not made for several threads: while a native thread
/// adds a job, the thread that has the GVL may be taking another one, and then runs a function with the data of the
/// other job, or one that was in the list before. So that this does no harm, the list has had this job in each place,
/// and the data of this job is room full of zeros, in which Ruby's own jobs find nothing to do.
#[cfg(not(ruby_gte_3_3))]
mod in_a_list {
    use crate::gvl::slice::pass_on;
    use magnus::Ruby;
    use rb_sys::{rb_postponed_job_register, rb_postponed_job_register_one};
    use std::ffi::c_void;
    use std::sync::atomic::AtomicU64;
    use std::sync::Once;

    /// Places of the list that are ever used: other jobs are those of the collector and of profilers.
    const PLACES: usize = 32;

    /// More than any structure of Ruby that a job gets.
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
        // which anybody may write to. Ruby sets a flag of the context that it notes as the running one. Its thread cannot
        // end meanwhile (`while_held`; on Ruby 3.1 it would have to end within these few instructions, after a tick in
        // which the process has computed). If the thread leaves a Fiber just then, and the collector frees that, the flag
        // is set in freed memory: this cannot be excluded, as Ruby lets nobody hold on to a context.
        unsafe { rb_postponed_job_register_one(0, Some(pass_on), data()) };
    }

    fn data() -> *mut c_void {
        ZEROS.as_ptr().cast_mut().cast()
    }
}
