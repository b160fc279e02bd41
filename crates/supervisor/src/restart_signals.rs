//! Restarts by signals: at most one a second. A burst, perhaps by mistake, does not load the application many times at
//! once.

use crate::machine::{Moment, RestartKind};
use std::time::Duration;

/// Time between two restarts.
const PAUSE: Duration = Duration::from_secs(1);

/// Restarts that signals have asked for.
#[derive(Debug, Default)]
pub struct RestartSignals {
    waiting: Option<RestartKind>,
    /// The earliest time of the next restart.
    free_at: Moment,
}

impl RestartSignals {
    /// A signal asks for a restart. If several are pending, a hot one has priority.
    pub fn ask(&mut self, kind: RestartKind) {
        self.waiting = self.waiting.max(Some(kind));
    }

    /// Takes the restart that has to begin now.
    pub fn due(&mut self, now: Moment) -> Option<RestartKind> {
        let due = self.waiting.take_if(|_| now >= self.free_at);
        if due.is_some() {
            self.free_at = now + PAUSE;
        }
        due
    }

    /// Time until the pending restart has to begin; `None` if none is pending.
    pub fn pause(&self, now: Moment) -> Option<Duration> {
        self.waiting.map(|_| self.free_at.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_restart_at_once_and_one_a_second_later() {
        let mut signals = RestartSignals::default();
        let now = Duration::from_secs(7);
        signals.ask(RestartKind::Phased);
        assert_eq!((signals.due(now), signals.due(now)), (Some(RestartKind::Phased), None));
        for kind in [RestartKind::Phased, RestartKind::Hot, RestartKind::Phased] {
            signals.ask(kind);
        }
        let soon = now + Duration::from_millis(999);
        assert_eq!(
            (signals.due(soon), signals.pause(soon)),
            (None, Some(Duration::from_millis(1)))
        );
        assert_eq!(signals.due(now + PAUSE), Some(RestartKind::Hot));
        assert_eq!(signals.pause(now + PAUSE), None);
    }
}
