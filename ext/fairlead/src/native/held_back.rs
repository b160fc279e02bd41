//! Signals that wait for the next program of this process.
//!
//! The kernel delivers a signal for a process to any thread that has not blocked it, and Ruby has more threads than the
//! executing one. If such a thread takes a signal, the signal is lost with it. So all threads block these signals: on Linux, in
//! each, a handler of a signal that nothing else uses changes the mask that the thread has after the handler. Elsewhere,
//! `fairlead_system::pending_signals` does it.

use crate::protect::check_interrupts_of_method;
use fairlead_supervisor::signals::blocked_for;
use magnus::{Error, Ruby};
use rb_sys::{rb_thread_current, rb_thread_interrupted};

/// Runs `execute` with the supervisor's signals blocked in all threads, after the traps of the signals that Ruby has taken already. If
/// `execute` returns, this thread gets its mask back; on Linux, the other threads leave these signals to it.
///
/// # Errors
/// The exception of a trap.
pub(super) fn hold_back<R>(ruby: &Ruby, execute: impl Fn() -> R) -> Result<R, Error> {
    #[cfg(target_os = "linux")]
    if !fairlead_system::IS_PORTABLE {
        return blocked_for(|| {
            others::block();
            check_interrupts_of_method(ruby)?;
            Ok(execute())
        });
    }
    // No trap may run while other threads wait in a handler: one of them may be the next to get the GVL.
    loop {
        check_interrupts_of_method(ruby)?;
        // SAFETY: called by a thread of Ruby.
        let has_trap = || unsafe { rb_thread_interrupted(rb_thread_current()) } != 0;
        if let Some(result) = blocked_for(|| (!has_trap()).then(&execute)) {
            return Ok(result);
        }
    }
}

#[cfg(target_os = "linux")]
mod others {
    use fairlead_supervisor::signals::{all, is_in_mask};
    use nix::libc::{c_int, c_void, sigaddset, siginfo_t, sigismember, syscall, ucontext_t, SYS_tgkill};
    use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, Signal};
    use nix::unistd::{getpid, gettid};
    use std::fs;
    use std::sync::atomic::AtomicI32;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::{Duration, Instant};

    /// Asks a thread to block the signals. Linux itself never sends it.
    const ASK: Signal = Signal::SIGSTKFLT;

    /// Longest time for all threads together: a thread may be in a system call that no signal ends. On a busy machine, a thread
    /// may have to wait for a processor for tenths of a second.
    const LIMIT: Duration = Duration::from_secs(2);

    /// Pause before the next check of the answer.
    const PAUSE: Duration = Duration::from_micros(20);

    /// Longer than any handler of Ruby takes.
    const HANDLER: Duration = Duration::from_millis(1);

    /// The last answer: the id of the thread, and an [`Answer`] in the lowest bit.
    static ANSWER: AtomicI32 = AtomicI32::new(0);

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Answer {
        /// The thread has blocked all signals.
        Blocked,
        /// Some of the signals were blocked already: perhaps the thread is in a handler of one of them, and the end of that
        /// handler restores the mask.
        Busy,
    }

    /// A thread that starts later inherits the mask of this one.
    pub(super) fn block() {
        let action = SigAction::new(SigHandler::SigAction(answer), SaFlags::SA_RESTART, all().collect());
        // SAFETY: the handler makes no system call that changes errno, and uses nothing but its arguments and an atomic. It
        // stays installed: a thread may be late.
        if unsafe { sigaction(ASK, &action) }.is_err() {
            return;
        }
        let deadline = Instant::now() + LIMIT;
        let own = gettid().as_raw();
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        for thread in ids.filter(|thread| *thread != own) {
            while ask(thread, deadline) == Some(Answer::Busy) {
                std::thread::sleep(HANDLER);
            }
        }
    }

    /// Returns `None` if the thread has ended, or does not answer in time. If the thread blocks the asking signal, it
    /// answers when it takes signals again, before any other signal.
    fn ask(thread: i32, deadline: Instant) -> Option<Answer> {
        let waits = !is_in_mask(&format!("/proc/self/task/{thread}/status"), "SigBlk:", ASK);
        ANSWER.store(0, SeqCst);
        // SAFETY: three numbers: the process, a thread of it (which may have ended), and a signal that has a handler.
        let asked = unsafe { syscall(SYS_tgkill, getpid().as_raw(), thread, ASK as c_int) };
        while asked == 0 && waits && Instant::now() < deadline {
            let answer = ANSWER.load(SeqCst);
            if answer >> 1 == thread {
                return Some(match answer & 1 {
                    0 => Answer::Blocked,
                    _ => Answer::Busy,
                });
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    extern "C" fn answer(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel's record of the interrupted code, valid until this handler returns. The mask that the kernel
        // has is the first word; it contains these signals.
        let mask = unsafe { &raw mut (*context.cast::<ucontext_t>()).uc_sigmask };
        // SAFETY: as above; signals that exist.
        let is_blocked = |signal: Signal| unsafe { sigismember(mask, signal as c_int) } == 1;
        let blocked = match all().any(is_blocked) && !all().all(is_blocked) {
            true => Answer::Busy,
            false => Answer::Blocked,
        };
        for signal in all() {
            // SAFETY: as above.
            unsafe { sigaddset(mask, signal as c_int) };
        }
        ANSWER.store(gettid().as_raw() << 1 | blocked as i32, SeqCst);
    }
}
