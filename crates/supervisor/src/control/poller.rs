//! The descriptors of one control server that the kernel watches, behind one descriptor for the loop of the supervisor.

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, Timespec};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Events for which a descriptor is watched.
pub(super) use rustix::event::epoll::EventFlags as Interest;

/// Events of one turn; more than there are descriptors.
const EVENTS: usize = 256;

/// Names a watched descriptor; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// An epoll instance.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    last: u64,
}

impl Poller {
    /// Watches nothing yet.
    pub(super) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, last: 0 })
    }

    /// Readable while one of the descriptors is ready.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// A new name.
    pub(super) fn key(&mut self) -> Key {
        self.last += 1;
        Key(self.last)
    }

    /// Watches a descriptor.
    pub(super) fn add(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            epoll::EventData::new_u64(key.0),
            interest,
        )?)
    }

    /// Watches a descriptor for something else.
    pub(super) fn change(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            descriptor,
            epoll::EventData::new_u64(key.0),
            interest,
        )?)
    }

    /// Watches a descriptor no longer. To be called before it is closed: a process that is being started may still have
    /// a copy.
    pub(super) fn remove(&self, descriptor: impl AsFd) {
        // The only error is that it is not watched.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// The names of the descriptors that are ready now.
    pub(super) fn ready(&self) -> Vec<Key> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An interrupted call is made again in the next turn.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once));
        events.iter().map(|event| Key(event.data.u64())).collect()
    }
}
