//! Failed attempts of an order, and the time of the next attempt. A file stores them (`lib/fairlead/acme/failure.rb`).

use super::{Now, Wall, HOUR, MINUTE};
use serde::{Deserialize, Serialize};

/// The longest pause that the server itself chooses.
const LONGEST: Wall = 6 * HOUR;

/// The longest pause that an authority can ask for.
const MOST: Wall = 7 * 24 * HOUR;

/// The largest difference between a pause and the regular pause, as a fraction.
const JITTER: f64 = 0.15;

/// Failed attempts since the last success.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Failure {
    /// Number of failed attempts.
    pub count: u32,
    /// The reason of the last failure.
    pub reason: String,
    /// The time of the next attempt.
    pub retry_at: Wall,
}

impl Failure {
    /// Adds one more failure. `retry_after`: the pause in seconds that the authority asks for.
    pub(super) fn after(before: Option<&Failure>, reason: String, retry_after: Option<f64>, now: Now) -> Failure {
        let count = before.map_or(0, |failure| failure.count).saturating_add(1);
        let pause = (MINUTE << (count - 1).min(20)).min(LONGEST) as f64 * (1.0 - JITTER + 2.0 * JITTER * now.random);
        let asked = (retry_after.unwrap_or(0.0) * 1000.0).clamp(0.0, MOST as f64) * (1.0 + JITTER * now.random);
        Failure {
            count,
            reason,
            retry_at: now.wall + pause.max(asked) as Wall,
        }
    }

    /// Shortens a pause that is longer than any pause can be, because a clock was wrong or a file is damaged.
    pub(super) fn bound(&mut self, now: Wall) {
        if self.retry_at > now.saturating_add((MOST as f64 * (1.0 + JITTER)) as Wall) {
            self.retry_at = now + LONGEST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(random: f64) -> Now {
        Now {
            wall: 1_800_000_000_000,
            running: Duration::ZERO,
            random,
        }
    }

    fn pause(retry_after: Option<f64>, random: f64) -> Wall {
        Failure::after(None, "refused".into(), retry_after, at(random)).retry_at - at(0.0).wall
    }

    #[test]
    fn the_pauses_double_up_to_a_limit_and_differ_a_little() {
        let mut last = None;
        let regular = [60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600, 21_600];
        for (number, seconds) in regular.into_iter().enumerate() {
            let pauses = [0.0, 0.5, 1.0].map(|random| {
                let failure = Failure::after(last.as_ref(), "refused".into(), None, at(random));
                (failure.retry_at - at(0.0).wall, failure)
            });
            let parts = pauses
                .each_ref()
                .map(|(pause, _)| *pause as f64 / f64::from(seconds * 1000));
            for (part, wanted) in parts.iter().zip([0.85, 1.0, 1.15]) {
                assert!((part - wanted).abs() < 0.001, "{parts:?}");
            }
            last = pauses.into_iter().next().map(|(_, failure)| failure);
            assert_eq!(last.as_ref().map(|failure| failure.count), Some(number as u32 + 1));
        }
    }

    #[test]
    fn the_count_has_no_end() {
        let many = Failure {
            count: u32::MAX,
            reason: String::new(),
            retry_at: 0,
        };
        let next = Failure::after(Some(&many), "refused".into(), None, at(0.5));
        assert_eq!(next.retry_at, at(0.0).wall + LONGEST);
    }

    #[test]
    fn an_authority_that_asks_for_a_longer_pause_gets_it_up_to_a_week() {
        assert_eq!(pause(Some(7200.0), 0.0), 2 * HOUR);
        assert_eq!(pause(Some(5.0), 0.5), MINUTE);
        assert!(pause(Some(1e9), 1.0) <= (MOST as f64 * 1.15) as Wall);
        assert_eq!(pause(Some(f64::MAX), 0.0), MOST);
        assert_eq!(pause(Some(f64::NAN), 0.5), MINUTE);
    }

    #[test]
    fn a_clock_that_was_wrong_puts_nothing_off_for_ever() {
        let mut failure = Failure::after(None, "refused".into(), Some(1e9), at(1.0));
        let before = failure.clone();
        failure.bound(at(0.0).wall);
        assert_eq!(failure, before);
        failure.bound(at(0.0).wall - 365 * 24 * HOUR);
        assert_eq!(failure.retry_at, at(0.0).wall - 365 * 24 * HOUR + LONGEST);
    }
}
