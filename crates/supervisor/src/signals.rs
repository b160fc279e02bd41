//! Signals as messages of the loop.
//!
//! They are blocked, even before this program was executed, and read from a descriptor: none is lost, and no code runs
//! in a handler. A program that has called this library has threads in which they are not blocked; there, a handler
//! writes the number of the signal into a pipe, which outlives an execution.

use fairlead_system::pending_signals;
use fairlead_system::signals::{self, is_ignored, BACKTRACES};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Signals with a request, by number and name.
pub const REQUESTS: [(Signal, &str); 10] = [
    (Signal::SIGTERM, "TERM"),
    (Signal::SIGINT, "INT"),
    (Signal::SIGQUIT, "QUIT"),
    (Signal::SIGHUP, "HUP"),
    (Signal::SIGUSR1, "USR1"),
    (Signal::SIGUSR2, "USR2"),
    (Signal::SIGTTIN, "TTIN"),
    (Signal::SIGTTOU, "TTOU"),
    (Signal::SIGURG, "URG"),
    (BACKTRACES, "PWR"),
];

/// Variables that leave a signal to the application.
const SKIPPED: [(&str, Signal); 1] = [("PUMA_SKIP_SIGUSR2", Signal::SIGUSR2)];

/// The signals that this process has received.
pub struct Signals {
    queue: Queue,
    /// The pipe of the previous program.
    former: Option<OwnedFd>,
    hup_was_ignored: bool,
}

enum Queue {
    /// The signals are blocked in all threads until the program takes them.
    Own(signals::Queue),
    /// A handler writes a byte for each signal: its number.
    Pipe(OwnedFd),
}

impl Signals {
    /// Blocks the signals in this thread, and so in all threads that it starts from now on, and opens the queue.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn open() -> io::Result<Signals> {
        let mut read: SigSet = all().collect();
        read.thread_block()?;
        for (variable, signal) in SKIPPED {
            if std::env::var_os(variable).is_some() {
                read.remove(signal); // it stays blocked and unread
            }
        }
        Ok(Signals {
            hup_was_ignored: is_ignored(Signal::SIGHUP),
            queue: Queue::Own(signals::Queue::open(&read)?),
            former: None,
        })
    }

    /// Reads from a pipe, into which handlers of this process write. It does not block.
    pub fn from_handlers(pipe: OwnedFd) -> Signals {
        Signals {
            queue: Queue::Pipe(pipe),
            former: None,
            hup_was_ignored: is_ignored(Signal::SIGHUP),
        }
    }

    /// The pipe, for the program that replaces this one; `None` if the signals stay pending.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        match &self.queue {
            Queue::Pipe(pipe) => Some(pipe.as_fd()),
            Queue::Own(_) => None,
        }
    }

    /// Also reads the remaining bytes in the pipe of the previous program.
    pub fn follow(&mut self, pipe: OwnedFd) {
        self.former = Some(pipe);
    }

    /// Names of the received signals, without SIG. SIGCHLD only wakes the loop.
    pub fn read(&mut self) -> Vec<&'static str> {
        let mut numbers = self.former.take().map(|pipe| read_all(&pipe)).unwrap_or_default();
        match &self.queue {
            Queue::Pipe(pipe) => numbers.extend(read_all(pipe)),
            Queue::Own(queue) => numbers.extend(queue.take()),
        }
        let name = |number: u8| REQUESTS.iter().find(|(signal, _)| *signal as i32 == i32::from(number));
        numbers.into_iter().filter_map(name).map(|(_, name)| *name).collect()
    }

    /// True if HUP was ignored at the start of the process, as with `nohup`.
    pub fn hup_was_ignored(&self) -> bool {
        self.hup_was_ignored
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.queue {
            Queue::Own(queue) => queue.as_fd(),
            Queue::Pipe(pipe) => pipe.as_fd(),
        }
    }
}

/// Executes a program with exactly these signals blocked. If that fails, restores the mask and returns.
pub fn blocked_for<R>(execute: impl FnOnce() -> R) -> R {
    let signals: SigSet = all().collect();
    let before = signals.thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = pending_signals::keep(signals, execute);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    result
}

/// The requests, and SIGCHLD. May be called in a handler.
pub fn all() -> impl Iterator<Item = Signal> {
    REQUESTS.into_iter().map(|(signal, _)| signal).chain([Signal::SIGCHLD])
}

fn read_all(pipe: &OwnedFd) -> Vec<u8> {
    let (mut numbers, mut space) = (Vec::new(), [0; 64]);
    while let Ok(count @ 1..) = rustix::io::read(pipe, &mut space) {
        numbers.extend_from_slice(&space[..count]);
    }
    numbers
}

/// Returns true if the kernel's table of a process or thread has the signal in this mask. System calls for this need
/// `unsafe`, and only report the calling thread.
pub fn is_in_mask(table: &str, mask: &str, signal: Signal) -> bool {
    let table = std::fs::read_to_string(table).unwrap_or_default();
    let digits = table.lines().find_map(|line| line.strip_prefix(mask));
    let mask = digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
}
