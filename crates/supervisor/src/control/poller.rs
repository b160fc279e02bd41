//! The polled descriptors of one control server, behind one descriptor for the supervisor's loop.

use fairlead_system::poller::{self, EventBuffer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Events to poll a descriptor for.
pub(super) use fairlead_system::poller::Interest;

/// Most events of one turn; more than there are descriptors.
const EVENTS: usize = 256;

/// Names a polled descriptor; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Poller {
    poller: poller::Poller,
    last: u64,
}

impl Poller {
    /// Polls nothing yet.
    pub(super) fn new() -> io::Result<Poller> {
        let poller = poller::Poller::new()?;
        Ok(Poller { poller, last: 0 })
    }

    /// Readable while one of the descriptors is ready.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// A new name.
    pub(super) fn key(&mut self) -> Key {
        self.last += 1;
        Key(self.last)
    }

    /// Polls a descriptor.
    pub(super) fn add(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(self.poller.add(descriptor, key.0, interest)?)
    }

    /// Polls a descriptor for other events.
    pub(super) fn change(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(self.poller.change(descriptor, key.0, interest)?)
    }

    /// Stops polling a descriptor. Call this before it is closed: a process that is being started may still have a
    /// copy.
    pub(super) fn remove(&self, descriptor: impl AsFd) {
        self.poller.remove(descriptor);
    }

    /// The names of the descriptors that are ready now.
    pub(super) fn ready(&self) -> Vec<Key> {
        let mut space = EventBuffer::<EVENTS>::new();
        // The next turn repeats an interrupted call.
        let events = self.poller.wait(&mut space, Some(Duration::ZERO));
        events.into_iter().flatten().map(|event| Key(event.token())).collect()
    }
}
