//! The poll set of a worker, level-triggered, and a descriptor that interrupts a wait. `fairlead_system::poller` is the poller of
//! the operating system.
//!
//! A connection keeps its interest while a thread runs its request, so that a usual request costs no system call for
//! it. An event that arrives meanwhile silences the connection (`connection/parked.rs`). Any thread may change an
//! interest; only the thread that has the reactor waits.

use fairlead_system::poller::{self, Event};
use fairlead_system::wake_up;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io;
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    static DISPATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the handler of a poll's events. Afterwards it checks everything that it has queued,
/// so no other thread has to be woken for that.
pub(crate) struct Dispatching;

impl Dispatching {
    pub(crate) fn enter() -> Dispatching {
        DISPATCHES.set(true);
        Dispatching
    }

    /// True if this thread is handling events.
    pub(crate) fn is_here() -> bool {
        DISPATCHES.get()
    }
}

impl Drop for Dispatching {
    fn drop(&mut self) {
        DISPATCHES.set(false);
    }
}

/// Key of a connection or a client, which is also its token: the version is in the high half, and an index below 2³¹ in
/// the low half.
pub(crate) type Key = u64;

/// Identifies the owner of an event: the 64 bits that the poller keeps with a descriptor. The crate `polling` uses the highest
/// number itself.
pub(crate) mod token {
    pub(crate) const WAKE: u64 = u64::MAX - 1;
    pub(crate) const ROOM: u64 = u64::MAX - 2;
    pub(crate) const SIGNAL: u64 = u64::MAX - 3;
    pub(crate) const MIGRATION: u64 = u64::MAX - 4;
    pub(crate) const CLIENTS: u64 = u64::MAX - 5;
    /// Tokens of listeners count down from here.
    pub(crate) const LISTENER: u64 = u64::MAX - 16;
    pub(crate) const LAST_LISTENER: u64 = LISTENER - 1024;
}

/// Events of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Hung up, or failed.
    pub(crate) ended: bool,
}

impl From<Event> for Happened {
    fn from(event: Event) -> Happened {
        Happened {
            readable: event.readable(),
            writable: event.writable(),
            ended: event.ended(),
        }
    }
}

/// Events that a parked connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    /// As `Read`, but the transport holds input: watches for room to write, so the next poll ends at once.
    ReadHeld,
    Write,
    /// Only for a hang-up, which is reported once.
    Nothing,
}

impl Interest {
    pub(super) fn reads(self) -> bool {
        matches!(self, Interest::Read | Interest::ReadHeld)
    }

    pub(super) fn writes(self) -> bool {
        self == Interest::Write
    }

    fn events(self) -> poller::Interest {
        match self {
            Interest::Read => poller::Interest::Read,
            Interest::ReadHeld => poller::Interest::ReadAndWrite,
            Interest::Write => poller::Interest::Write,
            Interest::Nothing => SILENT,
        }
    }
}

/// No event except a hang-up, which is reported once.
const SILENT: poller::Interest = poller::Interest::HangUp;

pub(crate) struct Poller {
    poller: poller::Poller,
    waker: OwnedFd,
}

/// Buffer for the events of one wait.
pub(crate) type EventBuffer = poller::EventBuffer<BATCH>;

/// Most events taken in one wait.
const BATCH: usize = 128;

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let (poller, waker) = (poller::Poller::new()?, wake_up::open()?);
        poller.add(&waker, token::WAKE, poller::Interest::Read)?;
        Ok(Poller { poller, waker })
    }

    /// Waits for events, for at most `timeout` (`None`: without limit).
    pub(crate) fn wait<'a>(
        &self,
        space: &'a mut EventBuffer,
        timeout: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = Event> + use<'a>> {
        self.poller.wait(space, timeout)
    }

    /// Adds a connection.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller.add(fd, token, interest.events())
    }

    /// Adds a connection without interest.
    pub(crate) fn add_silent(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        self.poller.add(fd, token, SILENT)
    }

    /// Changes the interest in a connection.
    pub(crate) fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller.change(fd, token, interest.events())
    }

    /// Changes the interest in a client. Without interest, a hang-up is still reported once.
    pub(crate) fn change_client(&self, fd: impl AsFd, token: u64, reads: bool, writes: bool) -> io::Result<()> {
        let interest = match (reads, writes) {
            (true, true) => poller::Interest::ReadAndWrite,
            (true, false) => poller::Interest::Read,
            (false, true) => poller::Interest::Write,
            (false, false) => SILENT,
        };
        self.poller.change(fd, token, interest)
    }

    /// Reports no more events of a connection until its interest is changed.
    pub(crate) fn silence(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        self.poller.change(fd, token, SILENT)
    }

    /// Adds a descriptor that several workers wait for (a listener, the waiting room).
    pub(crate) fn add_shared(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        self.poller.add_shared(fd, token)
    }

    /// Removes a descriptor. Required before closing a descriptor that is shared with another process.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        self.poller.remove(fd);
    }

    /// Ends the current wait, or else the next one.
    pub(crate) fn wake(&self) {
        wake_up::ring(&self.waker);
    }

    /// Resets the waker after [`Poller::wake`].
    pub(crate) fn drain_waker(&self) {
        wake_up::take(&self.waker);
    }
}
