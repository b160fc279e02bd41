//! Figures of all workers together, from the scoreboard.

use super::distribution::Distribution;
use fairlead_engine::{Histogram, Scoreboard};

/// The waits of requests, in the order in which the page stacks them.
pub(super) const WAITS: [&str; 3] = ["queue_time", "waiting_room_time", "lock_wait"];

/// The seconds that requests have spent in each of [`WAITS`], and the number of requests that have waited or not. `None` for
/// a wait that is not measured: for the lock before Ruby 3.2.
pub(super) fn waits(scoreboard: &Scoreboard) -> ([Option<f64>; 3], u64) {
    let times: Vec<(&str, Histogram)> = scoreboard
        .times()
        .map(|(statistic, times)| (statistic.name, times))
        .collect();
    let of = |name| times.iter().find(|(own, _)| *own == name).map(|(_, times)| times);
    let count = |name| of(name).map_or(0, Histogram::count);
    let is_measured = |name| name != WAITS[2] || count(name) > 0;
    let seconds = |name| of(name).filter(|_| is_measured(name)).map(Histogram::seconds);
    (WAITS.map(seconds), count(WAITS[0]))
}

/// The times from request to response.
pub(super) fn responses(scoreboard: &Scoreboard) -> Distribution {
    Distribution::of(scoreboard.responses().into_iter().map(|(_, times)| times))
}

/// The requests and connections that the server itself has refused, by reason.
pub(super) fn refusals(scoreboard: &Scoreboard) -> Vec<(&'static str, u64)> {
    let mut refusals = scoreboard.refusals();
    refusals.retain(|(_, count)| *count > 0);
    refusals
}
