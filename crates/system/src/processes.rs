//! Processes: a descriptor that tells of an end, and the status of an ended process.
//!
//! Linux: pidfd. Elsewhere: a kqueue that watches the process. (The portable build on Linux has a pidfd in its place.) Only Linux makes
//! the supervisor the parent of workers that another process has forked; elsewhere that process reports the status.

use rustix::event::{poll, PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal};

/// A descriptor that is readable once the process has ended; `None` if it has, or descriptors are short.
pub fn descriptor(pid: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        use rustix::event::kqueue::{kevent, kqueue, Event, EventFilter, EventFlags, ProcessEvents};
        let queue = kqueue().ok()?;
        crate::descriptors::close_on_exec(&queue).ok()?;
        let flags = ProcessEvents::EXIT;
        let end = Event::new(EventFilter::Proc { pid, flags }, EventFlags::ADD, std::ptr::null_mut());
        let mut nothing: [Event; 0] = [];
        // SAFETY: the event refers to no descriptor.
        unsafe { kevent(&queue, &[end], &mut nothing, Some(std::time::Duration::ZERO)) }.ok()?;
        Some(queue)
    }
}

/// Sends a signal to a process. On Linux, a later process with the same id never gets it.
pub fn signal(process: &OwnedFd, pid: Pid, signal: Signal) {
    #[cfg(native_linux)]
    let _ = (pid, rustix::process::pidfd_send_signal(process, signal));
    #[cfg(not(native_linux))]
    if !is_readable(process) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Runs,
    /// It has ended: its exit status, or the signal that has ended it. The system forgets it now.
    Ended(Option<i32>, Option<i32>),
    /// It is no child of this process.
    NotOurs,
    /// It has ended, and was no child of this process.
    Gone,
}

/// Asks for the status of the process of a [`descriptor`].
pub fn status(process: &OwnedFd, pid: Pid) -> Status {
    #[cfg(native_linux)]
    {
        use rustix::process::{waitid, WaitId, WaitIdOptions};
        let options = WaitIdOptions::NOHANG | WaitIdOptions::EXITED;
        match waitid(WaitId::PidFd(process.as_fd()), options) {
            Ok(Some(status)) => Status::Ended(status.exit_status(), status.terminating_signal()),
            Ok(None) => Status::Runs,
            Err(_) => {
                let _ = pid;
                Status::NotOurs
            }
        }
    }
    #[cfg(not(native_linux))]
    {
        match status_of_child(pid) {
            Status::NotOurs if is_readable(process) => Status::Gone,
            Status::NotOurs => Status::Runs,
            status => status,
        }
    }
}

/// Asks for the status of a process without a descriptor.
pub fn status_of_child(pid: Pid) -> Status {
    use rustix::process::{waitpid, WaitOptions};
    match waitpid(Some(pid), WaitOptions::NOHANG) {
        Ok(Some((_, status))) => Status::Ended(status.exit_status(), status.terminating_signal()),
        Ok(None) => Status::Runs,
        Err(_) => Status::NotOurs,
    }
}

#[cfg(not(native_linux))]
fn is_readable(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    poll(&mut polled, Some(&rustix::event::Timespec::default())) == Ok(1)
}

/// Makes this process the parent of orphans among its descendants, or reverts that. Linux only: elsewhere it returns false.
pub fn adopt_orphans(adopts: bool) -> bool {
    #[cfg(native_linux)]
    {
        rustix::process::set_child_subreaper(adopts.then(rustix::process::getpid)).is_ok()
    }
    #[cfg(not(native_linux))]
    {
        let _ = adopts;
        false
    }
}

/// Waits until the other end of a socket is closed.
pub fn wait_for_hang_up(socket: impl AsFd) {
    let gone = PollFlags::HUP | PollFlags::ERR;
    loop {
        // Linux reports nothing but the end of the other side then; macOS has to be asked for something.
        let asked = if cfg!(native_linux) {
            PollFlags::empty()
        } else {
            PollFlags::IN
        };
        let mut polled = [PollFd::new(&socket, asked)];
        if poll(&mut polled, None).is_ok() && polled[0].revents().intersects(gone) {
            return;
        }
        // There is a message for another thread.
        #[cfg(not(native_linux))]
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    fn wait(process: &OwnedFd) {
        let mut polled = [PollFd::new(process, PollFlags::IN)];
        let patience = rustix::event::Timespec::try_from(Duration::from_secs(20)).expect("a time");
        let result = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&patience)));
        assert_eq!(result, Ok(1));
    }

    #[test]
    #[allow(clippy::zombie_processes, reason = "its status is taken without this value")]
    fn the_end_of_a_child_shows_and_its_status_is_taken_once() {
        let child = Command::new("sleep").arg("60").spawn().expect("a process");
        let pid = Pid::from_raw(child.id() as i32).expect("a process");
        let process = descriptor(pid).expect("a descriptor");
        assert_eq!(status(&process, pid), Status::Runs);
        signal(&process, pid, Signal::KILL);
        wait(&process);
        assert_eq!(status(&process, pid), Status::Ended(None, Some(9)));
        assert!(matches!(status(&process, pid), Status::NotOurs | Status::Gone));
    }
}
