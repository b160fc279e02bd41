//! The end of a time slice: the monitor of an engine makes the thread that has the GVL pass it on.
//!
//! The monitor, a native thread, triggers a postponed job of Ruby. The thread that has the GVL runs it where it checks
//! for interrupts, so where Ruby itself may switch threads: between two instructions, never in the middle of one, in the
//! collector or in C code that does not allow it. The job gives the GVL up, and takes its place behind those that wait.
//!
//! It must not raise: Ruby swallows what a postponed job raises. `rb_thread_schedule` would, because it checks for
//! interrupts when it has the GVL back, and a `Thread#raise`, `Thread#kill` or time-out that has come meanwhile would
//! be lost. `rb_nogvl` with `RB_NOGVL_INTR_FAIL` checks for none. What has come is raised by the check that has called
//! the job, as soon as the job is over.

use super::{contention, HANDS_OVER};
use fairlead_engine::{Lock, LockUse};
use magnus::Ruby;
use rb_sys::{rb_nogvl, RB_NOGVL_INTR_FAIL};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// How often the GVL had changed hands when it was claimed from the thread that had it; or [`NOTHING`].
static CLAIMED: AtomicU64 = AtomicU64::new(NOTHING);

const NOTHING: u64 = u64::MAX;

/// The GVL of this process, for its engines.
#[derive(Debug)]
pub(crate) struct Gvl(());

impl Gvl {
    /// Makes it known to Ruby, once for all engines, that jobs will come.
    pub(crate) fn new(ruby: &Ruby) -> Gvl {
        job::announce(ruby);
        Gvl(())
    }
}

impl Lock for Gvl {
    fn hands_over(&self) -> bool {
        HANDS_OVER
    }

    fn look(&self) -> LockUse {
        LockUse {
            switches: contention::switches(),
            is_wanted: HANDS_OVER.then(contention::is_wanted),
        }
    }

    fn claim(&self, seen: LockUse) {
        contention::while_held(seen.switches, || {
            CLAIMED.store(seen.switches, SeqCst);
            job::trigger();
        });
    }
}

/// This is the child of a fork: a job that was triggered before does nothing.
pub(super) fn forget() {
    CLAIMED.store(NOTHING, SeqCst);
}

/// The job. Does nothing if the thread for which it was meant has passed the GVL on already.
unsafe extern "C" fn pass_on(_: *mut c_void) {
    let claimed = CLAIMED.swap(NOTHING, SeqCst);
    if claimed != contention::switches() || HANDS_OVER && !contention::is_wanted() {
        return;
    }
    if !HANDS_OVER {
        super::in_app::hand_over();
    }
    // SAFETY: the address is good for as long as the thread lives.
    let errno = unsafe { *__errno_location() };
    // SAFETY: Ruby calls its jobs with the GVL held. The function does not unwind, takes no argument and calls no Ruby;
    // it returns soon, so nothing has to wake it. With INTR_FAIL nothing is raised here.
    unsafe {
        rb_nogvl(
            Some(wait_aside),
            std::ptr::null_mut(),
            None,
            std::ptr::null_mut(),
            RB_NOGVL_INTR_FAIL as c_int,
        );
    }
    if !HANDS_OVER {
        contention::switched();
    }
    // SAFETY: as above. What called the check for interrupts may not have looked at the number yet.
    unsafe { *__errno_location() = errno };
}

extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Without the GVL: lets another thread have it. From Ruby 3.3 on the longest waiting one has it already.
#[cfg(ruby_gte_3_3)]
unsafe extern "C" fn wait_aside(_: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

/// Without the GVL: lets another thread have it. The longest waiting one is being woken, and would find it taken if this
/// one went on at once.
#[cfg(all(ruby_gte_3_2, not(ruby_gte_3_3)))]
unsafe extern "C" fn wait_aside(_: *mut c_void) -> *mut c_void {
    let before = contention::switches();
    for _ in 0..10 {
        std::thread::sleep(WAKING / 2);
        if contention::switches() != before || !contention::is_wanted() {
            break;
        }
    }
    std::ptr::null_mut()
}

/// Without the GVL: lets another thread have it. If there is one it is being woken, and would find it taken if this one
/// went on at once.
#[cfg(not(ruby_gte_3_2))]
unsafe extern "C" fn wait_aside(_: *mut c_void) -> *mut c_void {
    std::thread::sleep(WAKING);
    std::ptr::null_mut()
}

/// The time in which a thread that was woken runs, as a rule.
#[cfg(not(ruby_gte_3_3))]
const WAKING: std::time::Duration = std::time::Duration::from_micros(50);

/// Postponed jobs as they are from Ruby 3.3 on, where any thread may trigger one.
#[cfg(ruby_gte_3_3)]
mod job {
    use magnus::Ruby;
    use rb_sys::{rb_postponed_job_handle_t, rb_postponed_job_preregister, rb_postponed_job_trigger};
    use std::sync::OnceLock;

    static HANDLE: OnceLock<rb_postponed_job_handle_t> = OnceLock::new();

    /// What Ruby returns when it has no place for another job.
    const NO_PLACE: rb_postponed_job_handle_t = rb_postponed_job_handle_t::MAX;

    pub(super) fn announce(_: &Ruby) {
        // SAFETY: the GVL is held. The function lives as long as the process, as the extension is never unloaded.
        HANDLE.get_or_init(|| unsafe { rb_postponed_job_preregister(0, Some(super::pass_on), std::ptr::null_mut()) });
    }

    pub(super) fn trigger() {
        if let Some(handle) = HANDLE.get().filter(|handle| **handle != NO_PLACE) {
            // SAFETY: a handle that Ruby has given; any thread may do this, a native one too.
            unsafe { rb_postponed_job_trigger(*handle) };
        }
    }
}

/// Postponed jobs as they were up to Ruby 3.2, in a list that is not made for several threads: while a native thread
/// adds a job, the thread that has the GVL may be taking another one, and then runs a function with the data of the
/// other job, or one that was in the list before. So that this does no harm, the list has had this job in each place,
/// and the data of this job is room full of zeros, in which Ruby's own jobs find nothing to do.
#[cfg(not(ruby_gte_3_3))]
mod job {
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

    pub(super) fn announce(_: &Ruby) {
        ANNOUNCED.call_once(|| {
            for _ in 0..PLACES {
                // SAFETY: the GVL is held, as for `trigger`. The jobs do nothing, because nothing is claimed.
                unsafe { rb_postponed_job_register(0, Some(super::pass_on), data()) };
            }
        });
    }

    pub(super) fn trigger() {
        // SAFETY: the function lives as long as the process, as the extension is never unloaded, and so does its data,
        // which anybody may write to.
        unsafe { rb_postponed_job_register_one(0, Some(super::pass_on), data()) };
    }

    fn data() -> *mut c_void {
        ZEROS.as_ptr().cast_mut().cast()
    }
}
