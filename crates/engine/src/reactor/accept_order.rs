//! Decides which worker accepts the next connection, if several wait at the same listeners.
//!
//! The kernel wakes the first worker in its queue, and always the same one if the queue never changes. So a worker that
//! has accepted leaves the queue, and joins its end before it waits again. The rules:
//!
//! 1. A worker that is *ahead* (another one has fewer connections) rests outside the queue for a millisecond: otherwise
//!    a worker that is already running would take a whole burst before sleeping ones are awake. It rejoins at once when
//!    it is no longer ahead.
//! 2. If the millisecond passes, the worker is still ahead, and a connection is there *at once* after it has rejoined,
//!    then the rest was *in vain*: that connection has waited for this worker, and the other worker may hang. So the
//!    next connection is accepted without such a rest; after another rest in vain the next two, then four, up to 64.
//! 3. A rest that was not in vain, because the others have caught up, resets the count to one.

use crate::clock::Nanos;
use std::time::Duration;

/// Time for which a worker leaves the next connection to a worker that has fewer.
const REST: Duration = Duration::from_millis(1);

/// A connection that arrives this soon after a rest is assumed to have waited during it.
const AT_ONCE: Duration = Duration::from_micros(50);

/// Most connections that are accepted without a rest after a rest in vain.
const MOST_HURRIED: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct AcceptOrder {
    state: AcceptState,
    /// Connections still to be accepted without a rest, and their number the last time.
    hurried: u32,
    last_hurried: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum AcceptState {
    #[default]
    InLine,
    /// Not in the queue.
    Resting { until: Nanos },
    /// In the queue again. A connection before `until` shows that the rest was in vain.
    JustBack { until: Nanos },
}

impl AcceptOrder {
    /// Notes that a connection was accepted at `now`.
    pub(crate) fn accepted(&mut self, now: Nanos, is_ahead: impl FnOnce() -> bool) {
        let was_in_vain = matches!(self.state, AcceptState::JustBack { until } if now < until);
        self.state = AcceptState::InLine;
        if was_in_vain {
            self.last_hurried = (self.last_hurried * 2).clamp(1, MOST_HURRIED);
            self.hurried = self.last_hurried;
        }
        if self.hurried > 0 {
            self.hurried -= 1;
        } else if is_ahead() {
            self.state = AcceptState::Resting { until: now + REST };
        }
    }

    /// Remaining time outside the queue; `None` if the worker joins the queue now.
    pub(crate) fn rest(&mut self, now: impl FnOnce() -> Nanos, is_ahead: impl FnOnce() -> bool) -> Option<Duration> {
        let AcceptState::Resting { until } = self.state else {
            return None;
        };
        if !is_ahead() {
            self.state = AcceptState::InLine;
            self.last_hurried = 0;
            return None;
        }
        let now = now();
        if now < until {
            return Some(until - now);
        }
        self.state = AcceptState::JustBack { until: now + AT_ONCE };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: fn() -> bool = || true;
    const EVEN: fn() -> bool = || false;
    const START: Nanos = Nanos::START;
    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_worker_that_is_not_ahead_joins_the_line_at_once() {
        let mut accept_order = AcceptOrder::default();
        accept_order.accepted(START, EVEN);
        assert_eq!(accept_order.rest(|| START, EVEN), None);
    }

    #[test]
    fn a_worker_that_is_ahead_rests_for_a_millisecond() {
        let mut accept_order = AcceptOrder::default();
        accept_order.accepted(START, AHEAD);
        assert_eq!(accept_order.rest(|| START, AHEAD), Some(Duration::from_millis(1)));
        assert_eq!(
            accept_order.rest(|| START + MILLISECOND / 4, AHEAD),
            Some(Duration::from_micros(750))
        );
        assert_eq!(accept_order.rest(|| START + MILLISECOND, AHEAD), None);
    }

    #[test]
    fn a_resting_worker_comes_back_once_the_others_have_caught_up() {
        let mut accept_order = AcceptOrder::default();
        accept_order.accepted(START, AHEAD);
        assert!(accept_order.rest(|| START, AHEAD).is_some());
        assert_eq!(accept_order.rest(|| START, EVEN), None);
    }

    /// Number of connections that are accepted without a rest after the next one.
    fn hurried(accept_order: &mut AcceptOrder, now: &mut Nanos) -> usize {
        let mut count = 0;
        loop {
            accept_order.accepted(*now, AHEAD);
            if accept_order.rest(|| *now, AHEAD).is_some() {
                *now = *now + MILLISECOND;
                assert_eq!(accept_order.rest(|| *now, AHEAD), None);
                return count;
            }
            count += 1;
        }
    }

    #[test]
    fn each_rest_in_vain_doubles_the_connections_accepted_without_one() {
        let (mut accept_order, mut now) = (AcceptOrder::default(), START);
        let counts: Vec<usize> = (0..9).map(|_| hurried(&mut accept_order, &mut now)).collect();
        assert_eq!(counts, [0, 1, 2, 4, 8, 16, 32, 64, 64]);
    }

    #[test]
    fn a_rest_that_was_not_in_vain_resets_the_doubling() {
        let (mut accept_order, mut now) = (AcceptOrder::default(), START);
        (0..4).for_each(|_| _ = hurried(&mut accept_order, &mut now));
        while accept_order.rest(|| now, AHEAD).is_none() {
            accept_order.accepted(now, AHEAD);
        }
        assert_eq!(accept_order.rest(|| now, EVEN), None);
        assert_eq!(hurried(&mut accept_order, &mut now), 0);
    }

    #[test]
    fn a_connection_that_comes_later_does_not_count_as_one_that_waited() {
        let (mut accept_order, mut now) = (AcceptOrder::default(), START);
        for _ in 0..3 {
            assert_eq!(hurried(&mut accept_order, &mut now), 0);
            now = now + MILLISECOND / 10;
        }
    }
}
