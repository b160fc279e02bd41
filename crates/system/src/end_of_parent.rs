//! TERM for this process when its parent ends.
//!
//! Linux: PR_SET_PDEATHSIG. Elsewhere: a thread that waits for the end. A process that is forked meanwhile has neither.

pub use system::{expect, ignore};

#[cfg(native_linux)]
mod system {
    use rustix::process::{set_parent_process_death_signal, Pid, Signal};

    /// Has TERM sent to this process when its parent ends.
    pub fn expect(_parent: Pid) {
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }

    /// Reverts [`expect`].
    pub fn ignore() {
        let _ = set_parent_process_death_signal(None);
    }
}

#[cfg(not(native_linux))]
mod system {
    use crate::{processes, wake_up};
    use nix::sys::signal::SigSet;
    use rustix::event::{poll, PollFd, PollFlags};
    use rustix::fd::OwnedFd;
    use rustix::io::Errno;
    use rustix::process::{getpid, getppid, kill_process, Pid, Signal};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::{Builder, JoinHandle};

    /// The thread, and the descriptor that ends it. A forked process has the value, and not the thread.
    static THREAD: Mutex<Option<(Pid, Arc<OwnedFd>, JoinHandle<()>)>> = Mutex::new(None);

    /// Has TERM sent to this process when its parent ends. Does nothing if the parent has ended.
    pub fn expect(parent: Pid) {
        let (Some(end), Ok(stop)) = (processes::descriptor(parent), wake_up::open().map(Arc::new)) else {
            return;
        };
        if getppid() != Some(parent) {
            return;
        }
        let stops = Arc::clone(&stop);
        let thread = Builder::new().name("fairlead parent".into()).stack_size(64 * 1024);
        if let Ok(thread) = thread.spawn(move || wait(&end, &stops)) {
            *THREAD.lock().unwrap_or_else(PoisonError::into_inner) = Some((getpid(), stop, thread));
        }
    }

    /// Reverts [`expect`].
    pub fn ignore() {
        let thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, stop, thread)) = thread.filter(|(pid, ..)| *pid == getpid()) {
            wake_up::ring(&stop);
            let _ = thread.join();
        }
    }

    fn wait(end: &OwnedFd, stop: &OwnedFd) {
        SigSet::all().thread_block().unwrap_or_default(); // the other threads take the signals
        loop {
            let mut polled = [PollFd::new(end, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            match poll(&mut polled, None) {
                Err(Errno::INTR) => {}
                Ok(_) if polled[1].revents().is_empty() => {
                    let _ = kill_process(getpid(), Signal::TERM);
                    return;
                }
                _ => return,
            }
        }
    }
}
