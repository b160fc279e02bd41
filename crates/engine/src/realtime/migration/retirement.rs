//! The time that a worker has when others continue in its place, and its use for clients that cannot migrate.
//!
//! ```text
//!   begin ─────────────────────────────────────────────▶ stay (long_drain), limit
//!     │◀── spread ──▶│                 │◀── spread ──▶│◀── last frames ──▶│
//!     the app cannot hand them over    no connection for them elsewhere: HTTP/2
//! ```
//! If `stay` is short, both close from the beginning on. If the worker is patient, both close in the last part of `stay`.

use std::time::Duration;

/// The time for the last frames of clients.
const LAST_FRAMES: Duration = Duration::from_secs(5);

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retirement {
    /// Time for which clients stay because their connection cannot migrate.
    pub stay: Duration,
    /// The time until the worker ends in any case; zero if it is unknown.
    pub limit: Duration,
    /// True if clients stay, too, that the app does not hand over. Connections that it has hijacked keep the worker from ending.
    pub patient: bool,
}

/// The reason why a client stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::realtime) enum Hindrance {
    /// The app does not hand it over.
    App,
    /// The app has handed it over, and no worker takes it.
    Workers,
    /// Its connection cannot migrate.
    Connection,
}

impl Retirement {
    /// The time from the beginning of the drain on after which clients close, each after another part of the spread.
    pub(super) fn stay(&self, hindrance: Hindrance, spread: Duration) -> Duration {
        match hindrance {
            Hindrance::Workers => Duration::ZERO,
            Hindrance::App if !self.patient => Duration::ZERO,
            Hindrance::App | Hindrance::Connection => self.stay.saturating_sub(self.spread(spread) + LAST_FRAMES),
        }
    }

    /// The time over which clients close. `configured`: the option `drain_spread`.
    pub(super) fn spread(&self, configured: Duration) -> Duration {
        match self.limit.is_zero() {
            true => configured,
            false => configured.min(self.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPREAD: Duration = Duration::from_secs(10);

    fn seconds(retirement: Retirement, hindrance: Hindrance) -> [u64; 2] {
        [retirement.stay(hindrance, SPREAD), retirement.spread(SPREAD)].map(|time| time.as_secs())
    }

    #[test]
    fn connections_that_cannot_migrate_stay_up_to_the_last_part_of_a_long_drain() {
        let long = Retirement {
            stay: Duration::from_secs(60),
            limit: Duration::from_secs(60),
            patient: false,
        };
        assert_eq!(seconds(long, Hindrance::Connection), [45, 10]);
        assert_eq!(seconds(long, Hindrance::App), [0, 10], "waiting does not help them");
        let patient = Retirement { patient: true, ..long };
        assert_eq!(
            seconds(patient, Hindrance::App),
            [45, 10],
            "nobody has asked for their end"
        );
        assert_eq!(
            seconds(patient, Hindrance::Workers),
            [0, 10],
            "the app counts them as closed"
        );
    }

    #[test]
    fn without_a_long_drain_they_close_from_the_beginning_on_and_before_the_end_of_the_worker() {
        let short = Retirement {
            stay: Duration::ZERO,
            limit: Duration::from_secs(4),
            patient: false,
        };
        assert_eq!(seconds(short, Hindrance::Connection), [0, 4]);
        assert_eq!(seconds(Retirement::default(), Hindrance::App), [0, 10]);
    }
}
