//! epoll, level-triggered: each socket is registered once, however many requests it carries.
//!
//! Timeouts in microseconds use a timer file descriptor, because `epoll_wait` rounds up to milliseconds.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::Timespec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::time::{timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::time::Duration;

/// Limit for the events of one wait.
const BATCH: usize = 256;
const TIMER: u64 = u64::MAX;

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    timer: Option<OwnedFd>,
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

    fn flags(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN,
            Interest::ReadAndWrite => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller {
            epoll,
            events: Vec::with_capacity(BATCH),
            timer: None,
        })
    }

    /// Watches `socket` until it is closed.
    pub(crate) fn add(&self, socket: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token as u64), interest.flags())
    }

    pub(crate) fn change(&self, socket: impl AsFd, token: usize, interest: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(token as u64), interest.flags())
    }

    /// Makes waits end after `delay`, to the microsecond; `None` cancels that. An alarm that has gone off keeps ending
    /// waits until it is set again.
    pub(crate) fn set_alarm(&mut self, delay: Option<Duration>) -> io::Result<()> {
        let timer = match (&self.timer, delay) {
            (Some(timer), _) => timer,
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let timer = timerfd_create(
                    TimerfdClockId::Monotonic,
                    TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
                )?;
                epoll::add(&self.epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
                self.timer.insert(timer)
            }
        };
        // In timerfd, zero means never instead of now.
        let it_value = timespec(delay.map_or(Duration::ZERO, |delay| delay.max(Duration::from_nanos(1))));
        let once = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value,
        };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).map(drop)
    }

    /// Waits for sockets, at most for `timeout`; a signal also ends the wait. Returns the number of ready sockets.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            Some(&timespec(timeout)),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(self.events.len()),
            Err(error) => Err(error),
        }
    }

    /// One of the sockets that the last wait found; `None` for the alarm.
    pub(crate) fn ready(&self, index: usize) -> Option<Ready> {
        let event = self.events[index];
        let (token, flags) = (event.data.u64(), event.flags);
        let failed = EventFlags::ERR | EventFlags::HUP;
        (token != TIMER).then(|| Ready {
            token: token as usize,
            readable: flags.intersects(EventFlags::IN | failed),
            writable: flags.intersects(EventFlags::OUT | failed),
        })
    }
}

fn timespec(duration: Duration) -> Timespec {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: seconds,
        tv_nsec: duration.subsec_nanos().into(),
    }
}
