//! The polled descriptors of one control server, behind one descriptor for the supervisor's loop.

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, Timespec};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Events to poll a descriptor for.
pub(super) use rustix::event::epoll::EventFlags as Interest;

/// Most events of one turn; more than there are descriptors.
const EVENTS: usize = 256;

/// Names a polled descriptor; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// An epoll instance.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    last: u64,
}

impl Poller {
    /// Polls nothing yet.
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

    /// Polls a descriptor.
    pub(super) fn add(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            epoll::EventData::new_u64(key.0),
            interest,
        )?)
    }

    /// Polls a descriptor for other events.
    pub(super) fn change(&self, descriptor: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            descriptor,
            epoll::EventData::new_u64(key.0),
            interest,
        )?)
    }

    /// Stops polling a descriptor. Call this before it is closed: a process that is being started may still have a
    /// copy.
    pub(super) fn remove(&self, descriptor: impl AsFd) {
        // The only possible error is that it is not polled.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// The names of the descriptors that are ready now.
    pub(super) fn ready(&self) -> Vec<Key> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The next turn repeats an interrupted call.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once));
        events.iter().map(|event| Key(event.data.u64())).collect()
    }
}
