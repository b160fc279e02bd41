//! The lock of the processes and threads that append to the history.
//!
//! Processes lock the file that they map. The kernel unlocks for a process that ends. Threads lock a word that names their
//! process: a copy in a forked child names the parent, so it counts as unlocked there.

use rustix::fd::OwnedFd;
use rustix::fs::{fcntl_lock, FlockOperation};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

#[derive(Debug)]
pub(super) struct Lock {
    /// The process with a thread that holds the lock, or 0.
    holder: AtomicU32,
    file: Option<OwnedFd>,
}

pub(super) struct Locked<'a>(&'a Lock);

impl Lock {
    pub(super) fn new(file: Option<OwnedFd>) -> Lock {
        Lock {
            holder: AtomicU32::new(0),
            file,
        }
    }

    /// Locks. `None` if another thread or process holds the lock.
    pub(super) fn try_lock(&self) -> Option<Locked<'_>> {
        let (own, holder) = (std::process::id(), self.holder.load(Relaxed));
        if holder == own || self.holder.compare_exchange(holder, own, Acquire, Relaxed).is_err() {
            return None;
        }
        let locked = Locked(self);
        let is_ours = match &self.file {
            Some(file) => fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).is_ok(),
            None => true,
        };
        // Dropping it unlocks the file, too, which this process has not locked then.
        is_ours.then_some(locked)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(file) = &self.0.file {
            let _ = fcntl_lock(file, FlockOperation::NonBlockingUnlock);
        }
        self.0.holder.store(0, Release);
    }
}
