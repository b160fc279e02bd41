//! `Fairlead::Native::Supervisor`: the supervisor of a server inside a program that has loaded the application itself.

use super::system_error;
use crate::gvl::wait_without_gvl;
use crate::protect::check_interrupts_of_method;
use fairlead_supervisor::asks::Asks;
use fairlead_supervisor::link::Link;
use fairlead_supervisor::start::Start;
use fairlead_supervisor::supervisor;
use magnus::{function, method, prelude::*, Error, RModule, Ruby};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use std::cell::RefCell;
use std::os::fd::{BorrowedFd, RawFd};

#[magnus::wrap(class = "Fairlead::Native::Supervisor", free_immediately)]
struct Supervisor {
    /// `None` while it runs, and afterwards.
    supervisor: RefCell<Option<supervisor::Supervisor>>,
    asks: Asks,
}

pub(super) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Supervisor", ruby.class_object())?;
    crate::classes::know::<Supervisor>(ruby);
    class.define_singleton_method("new", function!(Supervisor::new, 1))?;
    class.define_method("ask", method!(Supervisor::ask, 1))?;
    class.define_method("run", method!(Supervisor::run, 0))
}

impl Supervisor {
    /// `new(descriptor)`: takes over what was sent on the other end of that link. A RuntimeError says in a sentence what is wrong.
    fn new(ruby: &Ruby, descriptor: RawFd) -> Result<Supervisor, Error> {
        let failed = |reason: String| Error::new(ruby.exception_runtime_error(), reason);
        if descriptor < 0 {
            return Err(system_error(ruby, "the link", &Errno::BADF.into()));
        }
        // SAFETY: used for the copy alone; if the number stands for nothing, the system says so.
        let link = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(descriptor) }, 0);
        let link = Link::new(link.map_err(|error| system_error(ruby, "the link", &error.into()))?);
        let start = Start::receive_from(&link).map_err(failed)?;
        let supervisor = supervisor::Supervisor::new(start, None).map_err(failed)?;
        Ok(Supervisor {
            asks: supervisor.asks(),
            supervisor: RefCell::new(Some(supervisor)),
        })
    }

    /// `ask(request)`: the name of a signal ("TERM"), or of a request ("restart"). From any thread and from a trap.
    fn ask(&self, request: String) {
        self.asks.push(&request);
    }

    /// `run`: supervises until everything has ended, without the GVL but for traps. Returns the exit status, the reason of a defeat or
    /// nil, and whether the process is to end as by TERM.
    fn run(ruby: &Ruby, this: &Supervisor) -> Result<(i32, Option<String>, bool), Error> {
        let supervisor = this.supervisor.borrow_mut().take();
        let already = || Error::new(ruby.exception_runtime_error(), "the supervisor runs already");
        let mut supervisor = supervisor.ok_or_else(already)?;
        loop {
            let mut ended = None;
            wait_without_gvl(ruby, || ended = supervisor.turn());
            if let Some(ended) = ended {
                return Ok((ended.status, ended.defeat, ended.by_term));
            }
            check_interrupts_of_method(ruby)?;
        }
    }
}
