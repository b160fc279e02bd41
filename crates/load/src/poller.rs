//! Polls sockets, level-triggered: each socket is registered once, however many requests it carries.

use fairlead_system::alarm::Alarm;
use fairlead_system::poller::{self, Event, EventBuffer};
use rustix::fd::AsFd;
use rustix::io;
use std::time::Duration;

/// Limit for the events of one wait.
const BATCH: usize = 256;
const TIMER: u64 = u64::MAX - 1;

pub(crate) struct Poller {
    poller: poller::Poller,
    space: EventBuffer<BATCH>,
    events: Vec<Event>,
    alarm: Alarm,
}

/// A socket that is readable or writable, or has failed (then it is both).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: usize,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// Events to watch a socket for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    ReadAndWrite,
}

impl Interest {
    /// Watches for readability, and with `writing` also for writability.
    pub(crate) fn of(writing: bool) -> Interest {
        if writing {
            Interest::ReadAndWrite
        } else {
            Interest::Read
        }
    }

    fn events(self) -> poller::Interest {
        match self {
            Interest::Read => poller::Interest::Read,
            Interest::ReadAndWrite => poller::Interest::ReadAndWrite,
        }
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller {
            poller: poller::Poller::new()?,
            space: EventBuffer::new(),
            events: Vec::with_capacity(BATCH),
            alarm: Alarm::default(),
        })
    }

    /// Watches `socket` until it is closed.
    pub(crate) fn add(&self, socket: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        self.poller.add(socket, token as u64, interest.events())
    }

    pub(crate) fn change(&self, socket: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        self.poller.change(socket, token as u64, interest.events())
    }

    /// Makes waits end after `delay`, to the microsecond; `None` cancels that. An alarm that has gone off keeps ending
    /// waits until it is set again.
    pub(crate) fn set_alarm(&mut self, delay: Option<Duration>) -> io::Result<()> {
        self.alarm.set(&self.poller, TIMER, delay)
    }

    /// Waits for sockets, at most for `timeout`; a signal also ends the wait. Returns the number of ready sockets.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        self.events.clear();
        let timeout = self.alarm.limit(timeout);
        self.events.extend(self.poller.wait(&mut self.space, Some(timeout))?);
        Ok(self.events.len())
    }

    /// One of the sockets that the last wait found; `None` for the alarm.
    pub(crate) fn ready(&self, index: usize) -> Option<Ready> {
        let event = self.events[index];
        (event.token() != TIMER).then(|| Ready {
            token: event.token() as usize,
            readable: event.readable(),
            writable: event.writable() || event.ended(),
        })
    }
}
