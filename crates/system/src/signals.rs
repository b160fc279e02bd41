//! Signals as bytes of a descriptor.
//!
//! Linux: the signals are blocked, and read from a descriptor (signalfd(2)). Elsewhere: a handler writes the number of each signal
//! into a pipe.

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

        /// The pipe with the bytes, which a program that replaces this one must read; `None` if the signals stay blocked.
        pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
            None
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
    use nix::sys::signal::SigSet;
    use rustix::fd::OwnedFd;
    use std::io::Result;
    use std::os::fd::{AsFd, BorrowedFd};

    /// Signals that this process has received.
    pub struct Queue(OwnedFd);

    impl Queue {
        /// Begins to take these signals, which are blocked in this thread until then. Only one queue may exist in a process.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn open(signals: &SigSet) -> Result<Queue> {
            let (reader, writer) = pipe(false)?;
            let writer: &'static OwnedFd = Box::leak(Box::new(writer));
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
            let (mut numbers, mut space) = (Vec::new(), [0; 64]);
            while let Ok(count @ 1..) = rustix::io::read(&self.0, &mut space) {
                numbers.extend_from_slice(&space[..count]);
            }
            numbers
        }

        /// The pipe with the bytes, which a program that replaces this one must read; `None` if the signals stay blocked.
        pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
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
