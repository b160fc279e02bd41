//! Poller of the operating system: epoll, level-triggered, and an eventfd that interrupts a wait.
//!
//! A connection keeps its interest while a thread runs its request, so that a usual request costs no system call for
//! it. An event that arrives meanwhile silences the connection (`connection/parked.rs`). Any thread may change an
//! interest; only the thread that has the reactor waits. A port to kqueue has to replace only this file.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{eventfd, EventfdFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io;
use std::cell::Cell;
use std::mem::MaybeUninit;
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

/// Identifies the owner of an event: the 64 bits that epoll keeps with a descriptor.
pub(crate) mod token {
    pub(crate) const WAKE: u64 = u64::MAX;
    pub(crate) const ROOM: u64 = u64::MAX - 1;
    pub(crate) const SIGNAL: u64 = u64::MAX - 2;
    pub(crate) const MIGRATION: u64 = u64::MAX - 3;
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

impl From<EventFlags> for Happened {
    fn from(flags: EventFlags) -> Happened {
        let ended = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        Happened {
            readable: ended || flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            ended,
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

    fn flags(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN,
            Interest::ReadHeld => EventFlags::IN | EventFlags::OUT,
            Interest::Write => EventFlags::OUT,
            Interest::Nothing => SILENT,
        }
    }
}

/// No event except a hang-up, which cannot be disabled; reported once.
const SILENT: EventFlags = EventFlags::ONESHOT;

pub(crate) struct Poller {
    epoll: OwnedFd,
    waker: OwnedFd,
}

/// Buffer for the events of one wait.
pub(crate) type EventBuffer = [MaybeUninit<epoll::Event>; BATCH];

/// Most events taken in one wait.
const BATCH: usize = 128;

/// Returns an empty buffer.
pub(crate) const fn events() -> EventBuffer {
    [const { MaybeUninit::uninit() }; BATCH]
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &waker, EventData::new_u64(token::WAKE), EventFlags::IN)?;
        Ok(Poller { epoll, waker })
    }

    /// Waits for events, for at most `timeout` (`None`: without limit).
    pub(crate) fn wait<'a>(
        &self,
        space: &'a mut EventBuffer,
        timeout: Option<Duration>,
    ) -> io::Result<&'a [epoll::Event]> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: t.as_secs() as _,
            tv_nsec: t.subsec_nanos() as _,
        });
        match epoll::wait(&self.epoll, space, timeout.as_ref()) {
            Ok((events, _)) => Ok(events),
            Err(io::Errno::INTR) => Ok(&[]),
            Err(error) => Err(error),
        }
    }

    /// Adds a connection.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), interest.flags())
    }

    /// Adds a connection without interest.
    pub(crate) fn add_silent(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), SILENT)
    }

    /// Changes the interest in a connection.
    pub(crate) fn change(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, fd, EventData::new_u64(token), interest.flags())
    }

    /// Changes the interest in a client. Without interest, a hang-up is still reported once.
    pub(crate) fn change_client(&self, fd: impl AsFd, token: u64, reads: bool, writes: bool) -> io::Result<()> {
        let flags = match (reads, writes) {
            (true, true) => EventFlags::IN | EventFlags::OUT,
            (true, false) => EventFlags::IN,
            (false, true) => EventFlags::OUT,
            (false, false) => SILENT,
        };
        epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags)
    }

    /// Reports no more events of a connection until its interest is changed.
    pub(crate) fn silence(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        epoll::modify(&self.epoll, fd, EventData::new_u64(token), SILENT)
    }

    /// Adds a descriptor that several workers wait for (a listener, the waiting room): the kernel wakes as few of them
    /// as possible.
    pub(crate) fn add_shared(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(token),
            EventFlags::IN | EventFlags::EXCLUSIVE,
        )
    }

    /// Removes a descriptor. Required before closing a descriptor that is shared with another process.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Ends the current wait, or else the next one.
    pub(crate) fn wake(&self) {
        let _ = io::write(&self.waker, &1u64.to_ne_bytes());
    }

    /// Resets the eventfd after [`Poller::wake`].
    pub(crate) fn drain_waker(&self) {
        let _ = io::read(&self.waker, &mut [0u8; 8]);
    }
}
