//! Time: moments on the monotonic clock, in milliseconds and nanoseconds, and the `Date` of a response, formatted once
//! a second.

use rustix::time::{clock_gettime, ClockId};
use std::cell::Cell;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for which the end of an engine waits for the last work of a native thread: messages in the dispatcher, or log
/// lines that the reader of the log may never take.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

thread_local! {
    /// The second of the last comparison, and the start of the monotonic clock since the Unix epoch.
    static EPOCH: Cell<(u64, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

/// A moment on the monotonic clock, in whole milliseconds since an arbitrary start: the unit of every deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(u64);

/// A moment on the monotonic clock, in nanoseconds since the same start, which all processes of the machine share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(u64);

impl Millis {
    /// An arbitrary moment, for tests.
    #[cfg(test)]
    pub(crate) const START: Millis = Millis(1_000);

    /// A moment that never comes.
    pub(crate) const NEVER: Millis = Millis(u64::MAX);

    /// A moment before all others; as a deadline it is always in the past.
    pub(crate) const LONG_AGO: Millis = Millis(0);

    pub(crate) fn now() -> Millis {
        Nanos::now().millis()
    }

    /// Converts it to a number, to send to another process.
    pub(crate) fn to_number(self) -> u64 {
        self.0
    }

    /// Makes it from a number that another process has sent.
    pub(crate) fn from_number(number: u64) -> Millis {
        Millis(number)
    }

    /// The second that contains the moment.
    pub(crate) fn second(self) -> u64 {
        self.0 / 1_000
    }
}

impl Nanos {
    /// An arbitrary moment, for tests.
    #[cfg(test)]
    pub(crate) const START: Nanos = Nanos(1_000_000_000);

    pub(crate) fn now() -> Nanos {
        let time = clock_gettime(ClockId::Monotonic);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    pub(crate) fn millis(self) -> Millis {
        Millis(self.0 / 1_000_000)
    }

    /// Time since the Unix epoch, by the wall clock. Each thread compares the clocks once a second of the wall clock: so it notices at
    /// once if that was set, or if the machine was suspended.
    pub(crate) fn since_epoch(self) -> Duration {
        let second = unix_seconds();
        let (compared, mut epoch) = EPOCH.get();
        if compared != second {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            epoch = wall.saturating_sub(Duration::from_nanos(Nanos::now().0));
            EPOCH.set((second, epoch));
        }
        epoch + Duration::from_nanos(self.0)
    }

    /// First whole millisecond that is not before this moment.
    pub(crate) fn rounded_up(self) -> Millis {
        Millis(self.0.div_ceil(1_000_000))
    }

    /// Converts it to a number, to send to another process.
    pub(crate) fn to_number(self) -> u64 {
        self.0
    }

    /// Makes it from a number that another process has sent.
    pub(crate) fn from_number(number: u64) -> Nanos {
        Nanos(number)
    }
}

impl From<Millis> for Nanos {
    fn from(moment: Millis) -> Nanos {
        Nanos(moment.0.saturating_mul(1_000_000))
    }
}

impl Millis {
    /// The time so many milliseconds earlier.
    pub(crate) fn before(self, milliseconds: u64) -> Millis {
        Millis(self.0.saturating_sub(milliseconds))
    }
}

/// Later by that time; at most [`Millis::NEVER`].
impl Add<Duration> for Millis {
    type Output = Millis;

    fn add(self, time: Duration) -> Millis {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Millis(self.0.saturating_add(time))
    }
}

/// Time since `earlier`; zero if that is in the future.
impl Sub for Millis {
    type Output = Duration;

    fn sub(self, earlier: Millis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Nanos {
    type Output = Nanos;

    fn add(self, time: Duration) -> Nanos {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Nanos(self.0.saturating_add(time))
    }
}

impl Sub<Duration> for Nanos {
    type Output = Nanos;

    fn sub(self, time: Duration) -> Nanos {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Nanos(self.0.saturating_sub(time))
    }
}

/// Time since `earlier`; zero if that is in the future.
impl Sub for Nanos {
    type Output = Duration;

    fn sub(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A moment that several threads share.
#[derive(Debug)]
pub(crate) struct AtomicMillis(AtomicU64);

impl AtomicMillis {
    pub(crate) const fn new(moment: Millis) -> AtomicMillis {
        AtomicMillis(AtomicU64::new(moment.0))
    }

    pub(crate) fn load(&self, order: Ordering) -> Millis {
        Millis(self.0.load(order))
    }

    pub(crate) fn store(&self, moment: Millis, order: Ordering) {
        self.0.store(moment.0, order);
    }

    /// Stores the earlier of the two; returns the previous value.
    pub(crate) fn fetch_min(&self, moment: Millis, order: Ordering) -> Millis {
        Millis(self.0.fetch_min(moment.0, order))
    }

    /// Stores the later of the two; returns the previous value.
    pub(crate) fn fetch_max(&self, moment: Millis, order: Ordering) -> Millis {
        Millis(self.0.fetch_max(moment.0, order))
    }
}

/// Processor time that all threads of this process have used.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The least processor time that `code` takes on this thread in several rounds, for tests that compare two amounts of work.
#[cfg(test)]
pub(crate) fn least_time(mut code: impl FnMut()) -> Duration {
    let rounds = (0..20).map(|_| {
        let begin = thread_time();
        code();
        thread_time() - begin
    });
    rounds.min().unwrap_or_default()
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    fairlead_system::clock::unix_seconds()
}

/// Value of a `Date` field (RFC 9110 §6.6.1) for now.
pub(crate) fn http_date() -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_seconds()))
}

/// Current value of `Date`, formatted once a second. One cache per thread.
#[derive(Default)]
pub(crate) struct DateCache {
    second: u64,
    text: String,
}

impl DateCache {
    pub(crate) fn text(&mut self) -> &[u8] {
        let now = unix_seconds();
        if now != self.second || self.text.is_empty() {
            self.second = now;
            self.text = http_date();
        }
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two clocks are never read at the same time.
    const TOLERANCE: Duration = Duration::from_secs(1);

    #[test]
    fn a_moment_has_the_time_of_the_wall_clock() {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (before, moment, after) = (wall(), Nanos::now(), wall());
        for time in [moment.since_epoch(), moment.since_epoch()] {
            assert!(
                before <= time + TOLERANCE && time <= after + TOLERANCE,
                "{before:?} {time:?} {after:?}"
            );
        }
        let later = moment + Duration::from_secs(3600);
        assert!(later.since_epoch() > moment.since_epoch() + Duration::from_secs(3599));
    }
}
