//! Decides when a full worker refuses connections, if several workers wait at the same listeners.
//!
//! A worker that has no place would refuse the next connection, although another one may have a place, or get one at any moment. So a
//! full worker is not in the kernel's queue. It looks every twenty milliseconds, and refuses the connections that wait if no worker has a
//! place. If another one has, but at ten looks in a row a connection waits and the workers with a place have accepted none, they may hang,
//! or not listen at this address: then the connections are refused, too.

use crate::clock::Millis;
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Looks in a row at which a waiting connection is left to a worker that has a place.
const PATIENCE: u32 = 10;

#[derive(Debug)]
pub(crate) struct FullWorker {
    look_at: Millis,
    /// Looks in a row at which a connection has waited, and the others have accepted none since the last one.
    in_vain: u32,
    /// See [`FullWorker::refuses`], at the last look.
    accepted: Option<u64>,
}

impl Default for FullWorker {
    fn default() -> FullWorker {
        FullWorker {
            look_at: Millis::LONG_AGO,
            in_vain: 0,
            accepted: None,
        }
    }
}

impl FullWorker {
    /// Time until the next look; `None` if it is due. Then the one after it counts from now.
    pub(crate) fn pause(&mut self, now: Millis) -> Option<Duration> {
        if now < self.look_at {
            return Some(self.look_at - now);
        }
        self.look_at = now + LOOK;
        None
    }

    /// Notes a look. Returns true if the waiting connections are to be refused. `accepted`: number of connections that the other workers with
    /// a place have accepted; `None` if none of them has a place.
    pub(crate) fn refuses(&mut self, is_waiting: bool, accepted: Option<u64>) -> bool {
        let is_vain = is_waiting && accepted.is_some() && accepted == self.accepted;
        self.in_vain = if is_vain { self.in_vain.saturating_add(1) } else { 0 };
        self.accepted = accepted;
        is_waiting && (accepted.is_none() || self.in_vain >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_every_twenty_milliseconds() {
        let (mut full, now) = (FullWorker::default(), Millis::now());
        assert_eq!(full.pause(now), None);
        assert_eq!(full.pause(now), Some(LOOK));
        assert_eq!(full.pause(now + LOOK / 2), Some(LOOK / 2));
        assert_eq!(full.pause(now + LOOK * 1_000), None, "the process was stopped");
        assert_eq!(full.pause(now + LOOK * 1_001), None);
    }

    #[test]
    fn connections_are_refused_at_once_if_no_worker_has_a_place() {
        let mut full = FullWorker::default();
        assert!(!full.refuses(false, None));
        assert!(full.refuses(true, None) && full.refuses(true, None));
    }

    #[test]
    fn connections_are_left_to_a_worker_that_has_a_place_unless_it_hangs() {
        let mut full = FullWorker::default();
        for look in 0..100 {
            assert!(!full.refuses(true, Some(look)), "look {look}");
            assert!(!full.refuses(look % 10 > 0, Some(look)), "look {look}");
        }
        for _ in 2..PATIENCE {
            assert!(!full.refuses(true, Some(99)));
        }
        assert!(full.refuses(true, Some(99)) && full.refuses(true, Some(99)));
        assert!(!full.refuses(true, Some(100)));
    }
}
