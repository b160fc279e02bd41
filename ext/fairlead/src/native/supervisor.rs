//! `Fairlead::Native::Supervisor`: the supervisor of a server inside a program that has loaded the application itself. It runs on a
//! native thread of its own, which never needs the GVL.

use super::{process, system_error};
use fairlead_supervisor::asks::Asks;
use fairlead_supervisor::link::Link;
use fairlead_supervisor::start::{Resident, Start};
use fairlead_supervisor::supervisor::{self, Ended};
use magnus::{function, method, prelude::*, Error, RModule, Ruby};
use nix::sys::signal::SigSet;
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::process::getpid;
use std::cell::RefCell;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;

#[magnus::wrap(class = "Fairlead::Native::Supervisor", free_immediately)]
struct Supervisor {
    asks: Asks,
    /// Readable when the thread has ended.
    bell: Arc<OwnedFd>,
    thread: RefCell<Option<JoinHandle<Option<Ended>>>>,
    /// What the thread waits for; `None` once it runs.
    waiting: RefCell<Option<(Sender<supervisor::Supervisor>, supervisor::Supervisor)>>,
}

pub(super) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Supervisor", ruby.class_object())?;
    crate::classes::know::<Supervisor>(ruby);
    class.define_singleton_method("new", function!(Supervisor::new, 1))?;
    class.define_method("ask", method!(Supervisor::ask, 1))?;
    class.define_method("start", method!(Supervisor::start, 0))?;
    class.define_method("fileno", method!(Supervisor::fileno, 0))?;
    class.define_method("finish", method!(Supervisor::finish, 0))
}

/// Rings when it is dropped: also if the thread panics.
struct Bell(Arc<OwnedFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl Supervisor {
    /// `new(descriptor)`: takes over what was sent on the other end of that link. A RuntimeError says in a sentence what is wrong. The
    /// thread is there before anything is written.
    fn new(ruby: &Ruby, descriptor: RawFd) -> Result<Supervisor, Error> {
        let failed = |reason: String| Error::new(ruby.exception_runtime_error(), reason);
        let no_system = |error: std::io::Error| system_error(ruby, "the supervisor", &error);
        if descriptor < 0 {
            return Err(system_error(ruby, "the link", &Errno::BADF.into()));
        }
        // SAFETY: used for the copy alone; if the number stands for nothing, the system says so.
        let link = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(descriptor) }, 0);
        let link = Link::new(link.map_err(|error| system_error(ruby, "the link", &error.into()))?);
        let mut start = Start::receive_from(&link).map_err(failed)?;
        start.resident = (start.first == getpid()).then_some(Resident {
            stop: process::stop_resident,
        });
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = Arc::new(bell.map_err(|error| no_system(error.into()))?);
        let (sender, inbox) = channel();
        let thread = std::thread::Builder::new().name("fairlead supervisor".into());
        let rings = Bell(Arc::clone(&bell));
        let thread = thread.spawn(move || run(&inbox, rings)).map_err(no_system)?;
        let supervisor = supervisor::Supervisor::new(start, None).map_err(failed)?;
        Ok(Supervisor {
            asks: supervisor.asks(),
            bell,
            thread: RefCell::new(Some(thread)),
            waiting: RefCell::new(Some((sender, supervisor))),
        })
    }

    /// `ask(request)`: the name of a signal ("TERM"), or of a request ("restart"). From any thread and from a trap.
    fn ask(&self, request: String) {
        self.asks.push(&request);
    }

    /// `start`: the supervisor runs from now on, until everything has ended.
    fn start(&self) {
        if let Some((sender, supervisor)) = self.waiting.borrow_mut().take() {
            let _ = sender.send(supervisor);
        }
    }

    /// `fileno`: the number of a descriptor that is readable when the supervisor has ended.
    fn fileno(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// `finish`: to be called then. Returns the exit status, the reason of a defeat or nil, and whether the process is to end as by TERM.
    fn finish(ruby: &Ruby, this: &Supervisor) -> Result<(i32, Option<String>, bool), Error> {
        let thread = this.thread.borrow_mut().take();
        let ended = thread.and_then(|thread| thread.join().ok().flatten());
        let broken = || Error::new(ruby.exception_runtime_error(), "[BUG] the supervisor has failed");
        let ended = ended.ok_or_else(broken)?;
        Ok((ended.status, ended.defeat, ended.by_term))
    }
}

/// The thread. Nothing comes if there is no supervisor after all.
fn run(inbox: &Receiver<supervisor::Supervisor>, bell: Bell) -> Option<Ended> {
    SigSet::all().thread_block().unwrap_or_default(); // Ruby's own threads take the signals
    let ended = inbox.recv().ok().map(|mut supervisor| supervisor.run());
    drop(bell);
    ended
}
