//! `Fairlead::Native::Supervisor`: the supervisor of a server inside a program that has loaded the application itself.
//! It runs on its own native thread, which never needs the GVL.

use super::signals::{self, Handlers};
use super::{process, program, system_error};
use fairlead_supervisor::asks::Asks;
use fairlead_supervisor::link::Link;
use fairlead_supervisor::settings::SystemText;
use fairlead_supervisor::signals::{Signals, REQUESTS};
use fairlead_supervisor::start::{Caller, Resident, Start};
use fairlead_supervisor::supervisor::{self, Ended};
use fairlead_system::beneath::LOOK;
use fairlead_system::wake_up;
use magnus::{function, method, prelude::*, Error, RModule, RString, Ruby};
use nix::sys::signal::{SigSet, Signal};
use rustix::fs::Mode;
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::process::getpid;
use std::cell::RefCell;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;

#[magnus::wrap(class = "Fairlead::Native::Supervisor", free_immediately)]
struct Supervisor {
    asks: Asks,
    /// Readable when the thread has ended.
    bell: Arc<OwnedFd>,
    thread: RefCell<Option<JoinHandle<Option<Ended>>>>,
    /// The value that the thread waits for; `None` once the thread runs.
    waiting: RefCell<Option<(Sender<supervisor::Supervisor>, supervisor::Supervisor)>>,
    /// Installed from the start to the end.
    handlers: RefCell<Option<Handlers>>,
}

pub(super) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Supervisor", ruby.class_object())?;
    crate::classes::know::<Supervisor>(ruby);
    class.define_singleton_method("new", function!(Supervisor::new, 3))?;
    class.define_method("ask", method!(Supervisor::ask, 1))?;
    class.define_method("start", method!(Supervisor::start, 1))?;
    class.define_method("release", method!(Supervisor::release, 0))?;
    class.define_method("fileno", method!(Supervisor::fileno, 0))?;
    class.define_method("finish", method!(Supervisor::finish, 0))
}

/// Rings when it is dropped, even if the thread panics.
struct Bell(Arc<OwnedFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        wake_up::ring(&*self.0);
    }
}

impl Supervisor {
    /// `new(descriptor, path, pid_file)`: takes over the state that was sent on the other end of this link. `path`: the
    /// path of the supervisor program, which replaces this program after a restart. `pid_file`: the path of the file
    /// that this program would remove at its end, or nil. A RuntimeError says in a sentence what is wrong. The thread
    /// exists before anything is written.
    fn new(ruby: &Ruby, descriptor: RawFd, path: RString, pid_file: Option<RString>) -> Result<Supervisor, Error> {
        let failed = |reason: String| Error::new(ruby.exception_runtime_error(), reason);
        let no_system = |error: std::io::Error| system_error(ruby, "the supervisor", &error);
        if descriptor < 0 {
            return Err(system_error(ruby, "the link", &Errno::BADF.into()));
        }
        // SAFETY: used for the copy alone; if the number is not an open descriptor, the system says so.
        let link = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(descriptor) }, 0);
        let link = Link::new(link.map_err(|error| system_error(ruby, "the link", &error.into()))?);
        let mut start = Start::receive_from(&link).map_err(failed)?;
        start.resident = (start.first == getpid()).then_some(Resident {
            stop: process::stop_resident,
        });
        let path = program::text(ruby, path)?;
        let pid_file = pid_file.map(|path| program::text(ruby, path)).transpose()?;
        let program = rustix::fs::open(path.as_c_str(), LOOK, Mode::empty());
        let program = program.map_err(|error| system_error(ruby, &path.to_string_lossy(), &error.into()))?;
        start.caller = Some(Caller {
            successor: program,
            pid_file: pid_file.map(|path| SystemText::from(OsString::from_vec(path.into_bytes()))),
        });
        let pipe = signals::reader().map_err(|error| no_system(error.into()))?;
        let bell = wake_up::open();
        let bell = Arc::new(bell.map_err(|error| no_system(error.into()))?);
        let (sender, inbox) = channel();
        let thread = std::thread::Builder::new().name("fairlead supervisor".into());
        let rings = Bell(Arc::clone(&bell));
        let thread = thread.spawn(move || run(&inbox, rings)).map_err(no_system)?;
        let supervisor = supervisor::Supervisor::new(start, Signals::from_handlers(pipe)).map_err(failed)?;
        Ok(Supervisor {
            asks: supervisor.asks(),
            bell,
            thread: RefCell::new(Some(thread)),
            waiting: RefCell::new(Some((sender, supervisor))),
            handlers: RefCell::new(None),
        })
    }

    /// `ask(request)`: sends a request by its name ("restart"). Works from any thread and from a trap.
    fn ask(&self, request: String) {
        self.asks.push(&request);
    }

    /// `start(signals)`: runs the supervisor from now on, until everything has ended. It gets the signals of these
    /// names ("TERM").
    fn start(&self, names: Vec<String>) {
        let requests = REQUESTS.iter().filter(|(_, name)| names.iter().any(|one| one == name));
        let signals: Vec<Signal> = requests.map(|(signal, _)| *signal).collect();
        *self.handlers.borrow_mut() = Some(Handlers::set(&signals));
        if let Some((sender, supervisor)) = self.waiting.borrow_mut().take() {
            let _ = sender.send(supervisor);
        }
    }

    /// `release`: restores the signal handlers from before the start.
    fn release(&self) {
        self.handlers.borrow_mut().take();
    }

    /// `fileno`: the number of a descriptor that is readable when the supervisor has ended.
    fn fileno(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// `finish`: call this after the end. Returns the exit status, the reason of a failure or nil, and true if the
    /// process has to end as by TERM.
    fn finish(ruby: &Ruby, this: &Supervisor) -> Result<(i32, Option<String>, bool), Error> {
        let thread = this.thread.borrow_mut().take();
        let ended = thread.and_then(|thread| thread.join().ok().flatten());
        let broken = || Error::new(ruby.exception_runtime_error(), "[BUG] the supervisor panicked");
        let ended = ended.ok_or_else(broken)?;
        Ok((ended.status, ended.defeat, ended.by_term))
    }
}

/// The body of the thread. It receives nothing if there is no supervisor after all.
fn run(inbox: &Receiver<supervisor::Supervisor>, bell: Bell) -> Option<Ended> {
    SigSet::all().thread_block().unwrap_or_default(); // Ruby's own threads take the signals
    let ended = inbox.recv().ok().map(|mut supervisor| supervisor.run());
    drop(bell);
    ended
}
