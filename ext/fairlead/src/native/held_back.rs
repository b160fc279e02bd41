//! Signals that wait for the next program of this process.
//!
//! The kernel gives a signal of a process to any of its threads that has not blocked it, and Ruby has more threads than the one that
//! executes the next program. A signal that such a thread takes ends with it. So all threads block these signals: in each, a handler
//! of a signal that nothing else uses changes the mask that the thread has after the handler.

use nix::libc::{c_int, c_void, sigaddset, siginfo_t, sigismember, syscall, ucontext_t, SYS_tgkill};
use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal};
use nix::unistd::{getpid, gettid};
use std::fs;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// All that the supervisor acts on.
const HELD_BACK: [Signal; 11] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGURG,
    Signal::SIGPWR,
    Signal::SIGCHLD,
];

/// Asks a thread to block them. Linux never sends it.
const ASK: Signal = Signal::SIGSTKFLT;

/// Longest time for all threads: one may be in a system call that no signal ends.
const LIMIT: Duration = Duration::from_millis(100);

/// Pause before the next look at the answer.
const PAUSE: Duration = Duration::from_micros(20);

/// The answer of the thread that was asked last.
static ANSWER: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = 0;
const BLOCKED: i32 = 1;
/// It is in the handler of one of these signals, which sets the mask back at its end.
const BUSY: i32 = 2;

/// Runs `code`, which executes the next program, with these signals blocked in all threads. If it returns, they are as before in this
/// thread; the others leave them to it.
///
/// # Errors
/// If they cannot be blocked.
pub(super) fn hold_back<T>(code: impl FnOnce() -> T) -> nix::Result<T> {
    let signals: SigSet = HELD_BACK.into_iter().collect();
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    block_in_others();
    let result = code();
    let _ = before.thread_set_mask();
    Ok(result)
}

/// New threads have the mask of the one that starts them.
fn block_in_others() {
    let action = SigAction::new(SigHandler::SigAction(block), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler makes no system call that changes errno, and uses nothing but its arguments and an atomic. It stays: a thread
    // may be late.
    if unsafe { sigaction(ASK, &action) }.is_err() {
        return;
    }
    let deadline = Instant::now() + LIMIT;
    let own = gettid().as_raw();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    for thread in ids.filter(|thread| *thread != own) {
        while ask(thread, deadline) == BUSY {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns NONE if the thread has ended, or does not answer in time.
fn ask(thread: i32, deadline: Instant) -> i32 {
    ANSWER.store(NONE, SeqCst);
    // SAFETY: three numbers: a thread of this process, which may have ended, and a signal that has a handler.
    let asked = unsafe { syscall(SYS_tgkill, getpid().as_raw(), thread, ASK as c_int) };
    while asked == 0 && Instant::now() < deadline {
        match ANSWER.load(SeqCst) {
            NONE => std::thread::sleep(PAUSE),
            answer => return answer,
        }
    }
    NONE
}

extern "C" fn block(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's record of the interrupted code, until this handler returns. These signals are in the first word of the
    // mask, and the kernel has no more of it.
    let mask = unsafe { &raw mut (*context.cast::<ucontext_t>()).uc_sigmask };
    // SAFETY: as above; signals that exist.
    let blocked = HELD_BACK
        .iter()
        .filter(|signal| unsafe { sigismember(mask, **signal as c_int) } == 1);
    match blocked.count() {
        0 => {
            for signal in HELD_BACK {
                // SAFETY: as above.
                unsafe { sigaddset(mask, signal as c_int) };
            }
            ANSWER.store(BLOCKED, SeqCst);
        }
        count if count == HELD_BACK.len() => ANSWER.store(BLOCKED, SeqCst),
        _ => ANSWER.store(BUSY, SeqCst),
    }
}
