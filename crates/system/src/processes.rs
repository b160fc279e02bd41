//! Processes: a descriptor that tells of an end, signals without a race for the process id, and the end of a parent.

use rustix::event::{poll, PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal};

/// A descriptor that is readable once the process has ended; `None` where the system has none. Then the end shows by its link, and
/// by SIGCHLD.
pub fn descriptor(pid: Pid) -> Option<OwnedFd> {
    #[cfg(native_linux)]
    {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    }
    #[cfg(not(native_linux))]
    {
        let _ = pid;
        None
    }
}

/// Sends a signal to the process of a [`descriptor`], which need not be a child.
pub fn signal(process: &OwnedFd, signal: Signal) {
    #[cfg(native_linux)]
    let _ = rustix::process::pidfd_send_signal(process, signal);
    #[cfg(not(native_linux))]
    let _ = (process, signal);
}

/// Status of a process that has ended: its exit status, or the signal that has ended it.
pub type Ended = (Option<i32>, Option<i32>);

/// Takes the status of the process of a [`descriptor`]; `None` while it runs.
///
/// # Errors
/// As waitid(2).
pub fn take_status(process: &OwnedFd) -> rustix::io::Result<Option<Ended>> {
    #[cfg(native_linux)]
    {
        use rustix::process::{waitid, WaitId, WaitIdOptions};
        let options = WaitIdOptions::NOHANG | WaitIdOptions::EXITED;
        let status = waitid(WaitId::PidFd(process.as_fd()), options)?;
        Ok(status.map(|status| (status.exit_status(), status.terminating_signal())))
    }
    #[cfg(not(native_linux))]
    {
        let _ = process;
        Err(rustix::io::Errno::CHILD)
    }
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

/// Has the system send a signal to this process when its parent ends, or reverts that. Linux only.
pub fn signal_at_end_of_parent(signal: Option<Signal>) {
    #[cfg(native_linux)]
    let _ = rustix::process::set_parent_process_death_signal(signal);
    #[cfg(not(native_linux))]
    let _ = signal;
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
