//! An alarm that ends a poller's waits, to the microsecond.
//!
//! Linux: a timer descriptor, because epoll rounds up to milliseconds. Elsewhere: the wait itself ends in time.

pub use system::Alarm;

#[cfg(native_linux)]
mod system {
    use crate::poller::{Interest, Poller};
    use rustix::event::Timespec;
    use rustix::fd::OwnedFd;
    use rustix::io::Result;
    use rustix::time::{timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
    use std::time::Duration;

    /// See the head of this file.
    #[derive(Debug, Default)]
    pub struct Alarm(Option<OwnedFd>);

    impl Alarm {
        /// Makes waits end after `delay`; `None` cancels that. An alarm that has gone off keeps ending waits until it is set
        /// again. `token`: of the event by which it does so.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn set(&mut self, poller: &Poller, token: u64, delay: Option<Duration>) -> Result<()> {
            let timer = match (&self.0, delay) {
                (Some(timer), _) => timer,
                (None, None) => return Ok(()),
                (None, Some(_)) => {
                    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
                    poller.add(&timer, token, Interest::Read)?;
                    self.0.insert(timer)
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

        /// The limit of a wait that would take `timeout`.
        pub fn limit(&self, timeout: Duration) -> Duration {
            timeout
        }
    }

    fn timespec(duration: Duration) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        }
    }
}

#[cfg(not(native_linux))]
mod system {
    use crate::poller::Poller;
    use rustix::io::Result;
    use std::time::{Duration, Instant};

    /// See the head of this file.
    #[derive(Debug, Default)]
    pub struct Alarm(Option<Instant>);

    impl Alarm {
        /// Makes waits end after `delay`; `None` cancels that. An alarm that has gone off keeps ending waits until it is set
        /// again.
        ///
        /// # Errors
        /// None.
        pub fn set(&mut self, _poller: &Poller, _token: u64, delay: Option<Duration>) -> Result<()> {
            self.0 = delay.and_then(|delay| Instant::now().checked_add(delay));
            Ok(())
        }

        /// The limit of a wait that would take `timeout`.
        pub fn limit(&self, timeout: Duration) -> Duration {
            let rest = self.0.map(|at| at.saturating_duration_since(Instant::now()));
            rest.map_or(timeout, |rest| rest.min(timeout))
        }
    }
}
