//! Distinguishes a signal that repeats another one from an impatient user.

use crate::machine::{Moment, StopReason};
use std::time::Duration;

/// Time after the first signal in which other signals repeat it.
const REPETITION: Duration = Duration::from_secs(1);

/// Signals that programs send twice.
const REPEATED: [&str; 2] = ["TERM", "HUP"];

/// Decides if a signal to a stopping server means that it must stop at once. GNU `timeout`, `tini -g`, foreman, npm and
/// shells send TERM or HUP twice, or after an INT, because they signal both the process and its group: such a signal
/// only repeats the first one. A second INT comes from a user.
#[derive(Debug, Default)]
pub struct Insistence {
    began: Option<Moment>,
}

impl Insistence {
    /// Notes that a signal or command has asked for the end. The end of an idle server does not count.
    pub fn begin(&mut self, reason: StopReason, now: Moment) {
        if reason != StopReason::Idle && self.began.is_none() {
            self.began = Some(now);
        }
    }

    /// Returns true if this request to a stopping server asks to hurry. Only signals do, not commands of the control
    /// server, and not the first signal: a server may stop by itself before.
    pub fn hurries(&mut self, reason: StopReason, now: Moment) -> bool {
        let StopReason::Signal(name) = reason else {
            return false;
        };
        match self.began {
            Some(began) => !REPEATED.contains(&name) || now.saturating_sub(began) > REPETITION,
            None => {
                self.begin(reason, now);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: StopReason = StopReason::Signal("INT");
    const TERM: StopReason = StopReason::Signal("TERM");
    const HUP: StopReason = StopReason::Signal("HUP");

    fn at(milliseconds: u64) -> Moment {
        Duration::from_millis(5_000 + milliseconds)
    }

    #[test]
    fn the_first_signal_never_hurries() {
        for signal in [TERM, INT, HUP] {
            assert!(!Insistence::default().hurries(signal, at(0)));
        }
    }

    #[test]
    fn a_second_int_hurries_and_a_term_right_after_it_does_not() {
        let mut insistence = Insistence::default();
        insistence.begin(INT, at(0));
        assert!(!insistence.hurries(TERM, at(10)));
        assert!(!insistence.hurries(HUP, at(1_000)));
        assert!(!insistence.hurries(StopReason::Command, at(1_500)));
        assert!(insistence.hurries(INT, at(10)));
        assert!(insistence.hurries(TERM, at(1_001)));
    }

    #[test]
    fn after_a_server_was_idle_the_first_signal_is_the_first_one() {
        let mut insistence = Insistence::default();
        insistence.begin(StopReason::Idle, at(0));
        assert!(!insistence.hurries(INT, at(5_000)));
        assert!(insistence.hurries(INT, at(5_000)));
    }
}
