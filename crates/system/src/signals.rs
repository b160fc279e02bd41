//! Signals as bytes of a descriptor.
//!
//! Linux: the signals are blocked, and read from a descriptor (signalfd(2)). Elsewhere: a handler writes the number of each signal
//! into a pipe.

#[cfg(not(native_linux))]
pub(crate) use system::send_again;
pub use system::Queue;

use nix::sys::signal::Signal;

/// The signal by which a process is asked for its backtraces: PWR on Linux, and INFO elsewhere.
#[cfg(target_os = "linux")]
pub const BACKTRACES: Signal = Signal::SIGPWR;
/// The signal by which a process is asked for its backtraces: PWR on Linux, and INFO elsewhere.
#[cfg(not(target_os = "linux"))]
pub const BACKTRACES: Signal = Signal::SIGINFO;

/// True if the process ignores the signal, as with `nohup`. Call this before there is a [`Queue`].
pub fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<nix::libc::sigaction>::zeroed();
    // SAFETY: asks for the action of a signal that exists, in a structure of the right type; zeros are a valid value of it.
    let action = unsafe {
        nix::libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == nix::libc::SIG_IGN
}

#[cfg(native_linux)]
mod system {
    use nix::sys::signal::SigSet;
    use nix::sys::signalfd::{SfdFlags, SignalFd};
    use std::io::Result;
    use std::os::fd::{AsFd, BorrowedFd};

    /// Signals that this process has received.
    pub struct Queue(SignalFd);

    impl Queue {
        /// Begins to take these signals, which are blocked in this thread.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn open(signals: &SigSet) -> Result<Queue> {
            let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
            Ok(Queue(SignalFd::with_flags(signals, flags)?))
        }

        /// Takes the numbers of the signals.
        pub fn take(&self) -> Vec<u8> {
            let next = || self.0.read_signal().ok().flatten();
            std::iter::from_fn(next).map(|info| info.ssi_signo as u8).collect()
        }
    }

    /// Readable while there are signals.
    impl AsFd for Queue {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(native_linux))]
mod system {
    use crate::descriptors::pipe;
    use nix::sys::signal::{kill, SigSet, Signal};
    use nix::unistd::getpid;
    use rustix::fd::OwnedFd;
    use std::io::Result;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::OnceLock;

    /// The ends for reading and for writing.
    static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

    /// Signals that this process has received.
    pub struct Queue(&'static OwnedFd);

    impl Queue {
        /// Begins to take these signals, which are blocked in this thread until then. All queues of a process are the same.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn open(signals: &SigSet) -> Result<Queue> {
            let new = pipe(false)?;
            let (reader, writer) = PIPE.get_or_init(|| new);
            for signal in signals {
                let number = [signal as u8];
                let write = move || {
                    let _ = rustix::io::write(writer, &number);
                };
                // SAFETY: write(2) may be called in a handler; the descriptor is never closed. If the pipe is full, the reader has
                // enough to do.
                unsafe { signal_hook::low_level::register(signal as i32, write)? };
            }
            signals.thread_unblock()?;
            Ok(Queue(reader))
        }

        /// Takes the numbers of the signals.
        pub fn take(&self) -> Vec<u8> {
            take(self.0)
        }
    }

    fn take(reader: &OwnedFd) -> Vec<u8> {
        let (mut numbers, mut space) = (Vec::new(), [0; 64]);
        while let Ok(count @ 1..) = rustix::io::read(reader, &mut space) {
            numbers.extend_from_slice(&space[..count]);
        }
        numbers
    }

    /// Sends the signals in the queue to this process again.
    pub(crate) fn send_again() {
        let numbers = PIPE.get().map(|(reader, _)| take(reader)).unwrap_or_default();
        for signal in numbers
            .into_iter()
            .filter_map(|number| Signal::try_from(i32::from(number)).ok())
        {
            let _ = kill(getpid(), signal);
        }
    }

    /// Readable while there are signals.
    impl AsFd for Queue {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::SigSet;

    #[test]
    fn a_signal_that_came_before_the_queue_is_in_it() {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGURG);
        signals.thread_block().expect("a mask");
        assert!(!is_ignored(Signal::SIGURG));
        nix::sys::signal::raise(Signal::SIGURG).expect("a signal");
        let queue = Queue::open(&signals).expect("a queue");
        assert_eq!(queue.take(), [Signal::SIGURG as u8]);
        assert_eq!(queue.take(), []);
    }
}
