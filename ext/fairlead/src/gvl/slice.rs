//! The end of a time slice: the monitor of an engine makes the thread that has the GVL give it to another thread.
//!
//! The monitor, a native thread, triggers a postponed job of Ruby. The holder of the GVL runs this job at a check for
//! interrupts, where Ruby itself may switch threads: between two instructions, never in the middle of one, in the
//! collector or in C code that does not allow it. The job gives up the GVL and then queues for it behind the waiting
//! threads.
//!
//! The job must not raise, because Ruby swallows exceptions of postponed jobs. `rb_thread_schedule` would raise: it
//! checks for interrupts when it has the GVL back, and a `Thread#raise`, `Thread#kill` or timeout that has come
//! meanwhile would be lost. `rb_nogvl` with `RB_NOGVL_INTR_FAIL` does not check. The check that has called the job
//! raises such an exception as soon as the job is over.

use super::{aside, contention, postponed, HANDS_OVER};
use fairlead_engine::{Lock, LockUse};
use magnus::Ruby;
use rb_sys::{rb_nogvl, RB_NOGVL_INTR_FAIL};
use std::ffi::{c_int, c_void};
#[cfg(not(ruby_gte_3_2))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Number of switches of the GVL at the moment of the claim; or [`NOTHING`].
static CLAIMED: AtomicU64 = AtomicU64::new(NOTHING);

const NOTHING: u64 = u64::MAX;

/// The GVL of this process, for its engines.
#[derive(Debug)]
pub(crate) struct Gvl {
    /// Threads of its engine that used or wanted the GVL at the engine's last check.
    #[cfg(not(ruby_gte_3_2))]
    users: AtomicUsize,
    /// Number of forks in the ancestry of this process when this value was made.
    #[cfg(not(ruby_gte_3_2))]
    forks: u32,
}

/// Sum of `users` over all engines.
#[cfg(not(ruby_gte_3_2))]
static USERS: AtomicUsize = AtomicUsize::new(0);

impl Gvl {
    /// Registers the job with Ruby, once for all engines.
    pub(crate) fn new(ruby: &Ruby) -> Gvl {
        postponed::announce(ruby);
        Gvl {
            #[cfg(not(ruby_gte_3_2))]
            users: AtomicUsize::new(0),
            #[cfg(not(ruby_gte_3_2))]
            forks: fairlead_engine::forks(),
        }
    }

    #[cfg(ruby_gte_3_2)]
    fn is_wanted(&self, _: usize) -> bool {
        contention::is_wanted()
    }

    #[cfg(not(ruby_gte_3_2))]
    fn is_wanted(&self, users: usize) -> bool {
        let before = self.users.swap(users, SeqCst);
        let change = users.wrapping_sub(before);
        USERS.fetch_add(change, SeqCst).wrapping_add(change) > 1
    }
}

#[cfg(not(ruby_gte_3_2))]
impl Drop for Gvl {
    fn drop(&mut self) {
        if self.forks == fairlead_engine::forks() {
            USERS.fetch_sub(*self.users.get_mut(), SeqCst);
        }
    }
}

impl Lock for Gvl {
    fn tells_waits(&self) -> bool {
        HANDS_OVER
    }

    fn look(&self, users: usize) -> LockUse {
        LockUse {
            switches: contention::switches(),
            is_wanted: self.is_wanted(users),
        }
    }

    fn claim(&self, seen: LockUse) {
        contention::while_held(seen.switches, || {
            CLAIMED.store(seen.switches, SeqCst);
            postponed::trigger();
        });
    }
}

/// This is the child of a fork: a job that was triggered earlier does nothing.
pub(super) fn forget() {
    CLAIMED.store(NOTHING, SeqCst);
    #[cfg(not(ruby_gte_3_2))]
    USERS.store(0, SeqCst);
}

/// Returns true if no thread has taken the claim yet. Ruby may have interrupted the wrong thread.
#[cfg(ruby_gte_3_3)]
pub(super) fn is_claimed() -> bool {
    CLAIMED.load(SeqCst) != NOTHING
}

/// The job. Does nothing if the thread for which it was meant has given up the GVL already.
pub(super) unsafe extern "C" fn pass_on(_: *mut c_void) {
    unsafe extern "C" fn step_aside(_: *mut c_void) -> *mut c_void {
        aside::stay_out();
        std::ptr::null_mut()
    }

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
            Some(step_aside),
            std::ptr::null_mut(),
            None,
            std::ptr::null_mut(),
            RB_NOGVL_INTR_FAIL as c_int,
        );
    }
    if !HANDS_OVER {
        contention::switched();
    }
    // SAFETY: as above. The caller of the check for interrupts may not have read errno yet.
    unsafe { *__errno_location() = errno };
}

extern "C" {
    fn __errno_location() -> *mut c_int;
}
