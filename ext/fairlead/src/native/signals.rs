//! Signals of a program that has called the supervisor: handlers instead of Ruby's traps, so that they are noticed
//! while Ruby computes or hangs. A handler writes the number of its signal into a pipe, from which the supervisor
//! reads.

use fairlead_system::descriptors;
use nix::sys::signal::{raise, sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
use rustix::io::{write, Errno};
use rustix::process::getpid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};

/// The process that has the handlers. In a forked process, a signal has its default effect.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The end of the pipe into which the handlers write.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// One pipe for each process, which is never closed: a handler may be about to write.
static PIPE: Mutex<Option<Pipe>> = Mutex::new(None);

struct Pipe {
    pid: i32,
    reader: OwnedFd,
    writer: OwnedFd,
}

/// Installed handlers, until they are dropped.
pub(super) struct Handlers {
    /// The actions that the handlers replaced, and the process that has the handlers.
    previous: Vec<(Signal, SigAction)>,
    pid: i32,
}

/// The end of the pipe for reading. It does not block.
pub(super) fn reader() -> Result<OwnedFd, Errno> {
    let mut pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = own_pid();
    if pipe.as_ref().is_none_or(|pipe| pipe.pid != pid) {
        let (reader, writer) = descriptors::pipe(false)?;
        *pipe = Some(Pipe { pid, reader, writer });
    }
    let reader = pipe.as_ref().map(|pipe| pipe.reader.as_fd()).ok_or(Errno::BADF)?;
    rustix::io::fcntl_dupfd_cloexec(reader, 0)
}

impl Handlers {
    /// Sets handlers for these signals, except for an ignored HUP, as under `nohup`. Call [`reader`] first.
    pub(super) fn set(signals: &[Signal]) -> Handlers {
        if let Some(pipe) = &*PIPE.lock().unwrap_or_else(PoisonError::into_inner) {
            WRITER.store(pipe.writer.as_raw_fd(), SeqCst);
            OWNER.store(pipe.pid, SeqCst);
        }
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
        let mut handlers = Handlers {
            previous: Vec::new(),
            pid: own_pid(),
        };
        for signal in signals.iter().copied() {
            // SAFETY: the handler makes system calls and loads atomics, which is safe at any time in any thread.
            let Ok(previous) = (unsafe { sigaction(signal, &action) }) else {
                continue;
            };
            if signal == Signal::SIGHUP && matches!(previous.handler(), SigHandler::SigIgn) {
                set_back(signal, &previous);
            } else {
                handlers.previous.push((signal, previous));
            }
        }
        handlers
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        if self.pid == own_pid() {
            self.previous
                .iter()
                .for_each(|(signal, previous)| set_back(*signal, previous));
        }
    }
}

fn set_back(signal: Signal, action: &SigAction) {
    // SAFETY: the default, or an action that Ruby or a library in this process had set when we replaced it.
    let _ = unsafe { sigaction(signal, action) };
}

extern "C" fn note(number: i32) {
    if OWNER.load(SeqCst) == own_pid() {
        // SAFETY: the pipe of this process, which is never closed.
        let writer = unsafe { BorrowedFd::borrow_raw(WRITER.load(SeqCst)) };
        let _ = write(writer, &[number as u8]); // by a system call that leaves errno alone
    } else if let Ok(signal) = Signal::try_from(number) {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        set_back(signal, &default);
        let _ = raise(signal); // it arrives when this handler has returned
    }
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}
