//! Signals as messages of the loop.
//!
//! They are blocked, also before this program was executed, and read from a descriptor: none is lost, and no code runs in a
//! handler.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Signals that ask for something, by number and name.
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
    (Signal::SIGPWR, "PWR"),
];

/// Variables that leave a signal to others.
const SKIPPED: [(&str, Signal); 1] = [("PUMA_SKIP_SIGUSR2", Signal::SIGUSR2)];

/// The signals that this process has got.
pub struct Signals {
    queue: SignalFd,
    hup_was_ignored: bool,
}

impl Signals {
    /// Blocks the signals in this thread, and so in all that it starts from now on, and opens the queue.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn open() -> io::Result<Signals> {
        let mut read: SigSet = REQUESTS.iter().map(|(signal, _)| *signal).collect();
        read.add(Signal::SIGCHLD);
        read.thread_block()?;
        for (variable, signal) in SKIPPED {
            if std::env::var_os(variable).is_some() {
                read.remove(signal); // it stays blocked, and nobody reads it
            }
        }
        Ok(Signals {
            queue: SignalFd::with_flags(&read, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            hup_was_ignored: ignores(Signal::SIGHUP),
        })
    }

    /// Names of the signals that have come, without SIG. SIGCHLD only wakes the loop.
    pub fn read(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        while let Ok(Some(info)) = self.queue.read_signal() {
            let request = REQUESTS.iter().find(|(signal, _)| *signal as u32 == info.ssi_signo);
            names.extend(request.map(|(_, name)| *name));
        }
        names
    }

    /// True if the start of the process has left HUP ignored, as `nohup` does.
    pub fn hup_was_ignored(&self) -> bool {
        self.hup_was_ignored
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// From the kernel's table of this process, because asking by sigaction(2) takes `unsafe`.
fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
}
