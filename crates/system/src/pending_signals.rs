//! Signals that stay pending for the program that is about to replace this one: no thread may take them any more.
//!
//! Linux: the other threads block them, too. Elsewhere, a thread that takes such a signal sends it to the process again and waits in
//! the handler, which blocks all of them. Once no thread is left to take it, the signal stays pending. The first one is SIGCHLD, which
//! tells the next program nothing but to look at its children: it brings all threads into the handler.

use nix::sys::signal::SigSet;

/// Runs `execute`, which returns only if it fails. The calling thread blocks these signals; on Linux, all threads must do so.
pub fn keep<R>(signals: SigSet, execute: impl FnOnce() -> R) -> R {
    #[cfg(native_linux)]
    let _ = signals;
    #[cfg(not(native_linux))]
    let _handlers = system::Handlers::install(signals);
    execute()
}

#[cfg(not(native_linux))]
mod system {
    use crate::signals;
    use nix::errno::Errno;
    use nix::libc::{c_int, getpid, kill, poll, sigismember, sigpending, sigset_t};
    use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::time::Duration;

    /// Longest wait in a handler, in milliseconds: the thread may have a lock that the executing thread needs.
    const LIMIT: usize = 1_000;

    /// Time between two checks, and their largest number: a thread may be in a call that no signal interrupts.
    const PAUSE: Duration = Duration::from_millis(1);
    const CHECKS: usize = 100;

    /// After so many checks of a pending signal, no thread is about to take it.
    const CALM: usize = 10;

    static KEEPS: AtomicBool = AtomicBool::new(false);

    /// Handlers that keep signals pending. The drop restores the former handlers.
    pub(super) struct Handlers(Vec<(Signal, SigAction)>);

    impl Handlers {
        pub(super) fn install(kept: SigSet) -> Handlers {
            KEEPS.store(true, SeqCst);
            let action = SigAction::new(SigHandler::Handler(wait), SaFlags::SA_RESTART, kept);
            let former = kept
                .into_iter()
                .filter_map(|signal| Some((signal, replace(signal, &action)?)));
            let handlers = Handlers(former.collect());
            handlers.gather();
            signals::send_again();
            handlers
        }

        /// Waits until all threads are in the handler, or block the signals. Former handlers have ended then, too.
        fn gather(&self) {
            let first = Signal::SIGCHLD;
            if !self.0.iter().any(|(signal, _)| *signal == first) {
                return;
            }
            // SAFETY: a signal for this process.
            unsafe { kill(getpid(), first as c_int) };
            let mut calm = 0;
            for _ in 0..CHECKS {
                std::thread::sleep(PAUSE);
                calm = if is_pending(first) { calm + 1 } else { 0 };
                if calm == CALM {
                    return;
                }
            }
        }
    }

    fn is_pending(signal: Signal) -> bool {
        let mut pending = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: fills in a set, for which zeros are a valid value.
        unsafe {
            sigpending(pending.as_mut_ptr());
            sigismember(pending.as_ptr(), signal as c_int) == 1
        }
    }

    impl Drop for Handlers {
        fn drop(&mut self) {
            for (signal, former) in &self.0 {
                // SAFETY: the action that sigaction(2) returned before.
                let _ = unsafe { sigaction(*signal, former) };
            }
            KEEPS.store(false, SeqCst);
        }
    }

    /// Returns the previous action. A signal that is ignored stays so, because the next program has to ignore it, too.
    fn replace(signal: Signal, action: &SigAction) -> Option<SigAction> {
        // SAFETY: the handler makes only calls that are allowed in one, and restores errno.
        let former = unsafe { sigaction(signal, action) }.ok()?;
        if !matches!(former.handler(), SigHandler::SigIgn) {
            return Some(former);
        }
        // SAFETY: the action that sigaction(2) returned before.
        let _ = unsafe { sigaction(signal, &former) };
        None
    }

    extern "C" fn wait(signal: c_int) {
        if !KEEPS.load(SeqCst) {
            return;
        }
        let error = Errno::last_raw();
        // SAFETY: a signal for this process.
        unsafe { kill(getpid(), signal) };
        for _ in 0..LIMIT {
            if !KEEPS.load(SeqCst) {
                return Errno::set_raw(error);
            }
            // SAFETY: no descriptors, for a millisecond.
            unsafe { poll(std::ptr::null_mut(), 0, 1) };
        }
        KEEPS.store(false, SeqCst);
        Errno::set_raw(error);
    }
}

#[cfg(all(test, not(native_linux)))]
mod tests {
    use super::*;
    use nix::sys::signal::{kill, Signal};
    use nix::unistd::getpid;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::Arc;
    use std::time::Duration;

    /// The threads of the other tests take signals, too.
    #[test]
    fn no_thread_takes_a_signal_meanwhile_and_none_is_lost() {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        // SAFETY: the handler changes an atomic.
        let handler = unsafe {
            signal_hook::low_level::register(Signal::SIGUSR2 as i32, move || {
                count.fetch_add(1, SeqCst);
            })
        };
        handler.expect("a handler");
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGUSR2);
        signals.thread_block().expect("a mask");
        keep(signals, || {
            kill(getpid(), Signal::SIGUSR2).expect("a signal");
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(taken.load(SeqCst), 0);
        });
        signals.thread_unblock().expect("a mask");
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while taken.load(SeqCst) == 0 && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(taken.load(SeqCst), 1);
    }
}
