//! A pause of the server: requests wait in all workers until it ends. The supervisor begins and ends it. It has a limit,
//! so that it ends even if it is forgotten, or the supervisor is lost.

use crate::clock::{Millis, Nanos};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Shared by all processes of a server. Times are on the monotonic clock.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Pause {
    /// Milliseconds: the end of the pause; 0 while there is none.
    until: AtomicU64,
    /// Nanoseconds: its beginning.
    since: AtomicU64,
    /// Milliseconds that a request waits at most.
    wait: AtomicU64,
}

impl Pause {
    /// Begins a pause, or changes the running one. `wait`: longest wait of a request. `limit`: its longest duration.
    pub fn begin(&self, wait: Duration, limit: Duration) {
        if self.left().is_none() {
            self.since.store(Nanos::now().to_number(), SeqCst);
        }
        self.wait.store(wait.as_millis() as u64, SeqCst);
        self.until.store((Millis::now() + limit).to_number(), SeqCst);
    }

    /// Ends the pause.
    pub fn end(&self) {
        self.until.store(0, SeqCst);
    }

    /// Time until its limit; `None` if there is no pause.
    pub fn left(&self) -> Option<Duration> {
        match self.until.load(SeqCst) {
            0 => None,
            until => Some(Millis::from_number(until) - Millis::now()).filter(|left| !left.is_zero()),
        }
    }

    /// True if the request has arrived during the pause.
    pub(crate) fn concerns(&self, arrived: Nanos) -> bool {
        arrived >= Nanos::from_number(self.since.load(SeqCst))
    }

    /// Longest wait of a request.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait.load(SeqCst))
    }

    /// True while requests wait. Without a pause this costs one load.
    pub(crate) fn is_on(&self) -> bool {
        self.until.load(Relaxed) != 0 && self.left().is_some()
    }

    /// The time at which a request that has arrived then has waited for too long. A wait before the pause does not
    /// count.
    pub(crate) fn deadline(&self, arrived: Nanos) -> Nanos {
        arrived.max(Nanos::from_number(self.since.load(SeqCst))) + self.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_pause_lasts_until_its_end_or_its_limit() {
        let pause = Pause::default();
        assert!(!pause.is_on() && pause.left().is_none());
        pause.begin(MINUTE, MINUTE);
        assert!(pause.is_on() && pause.left() <= Some(MINUTE));
        pause.end();
        assert!(!pause.is_on());
        pause.begin(MINUTE, Duration::ZERO);
        assert!(!pause.is_on());
    }

    #[test]
    fn a_wait_counts_from_the_beginning_of_the_pause() {
        let pause = Pause::default();
        let before = Nanos::now();
        pause.begin(MINUTE, MINUTE);
        let during = Nanos::now();
        assert!(pause.deadline(before) > before + MINUTE - Duration::from_nanos(1));
        assert_eq!(pause.deadline(during), during + MINUTE);
        assert!(pause.deadline(before) <= pause.deadline(during));
    }
}
