//! The time of a run.

use std::time::{Duration, Instant};

/// Nanoseconds since the start of the run.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of the run, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Nanos {
        nanos(self.0.elapsed())
    }
}

/// A request that a connection has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Time at which it should have been sent. In the closed loop this is when it was sent.
    pub(crate) due: Nanos,
    pub(crate) sent: Nanos,
    /// Not part of the warm-up.
    pub(crate) counted: bool,
}
