//! The counters of workers, from the scoreboard.

use super::status::Child;
use fairlead_engine::{Histogram, Scoreboard, SLOTS};
use serde::{Serialize, Serializer};

/// The counters of one worker, in the order in which `/status` shows them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counters {
    pub(super) connections: i64,
    pub(super) requests: u64,
    pub(super) queued: i64,
    pub(super) threads: i64,
    pub(super) busy_threads: i64,
    pub(super) clients: i64,
}

/// The counters of all workers that have started, by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Vec<(usize, Counters)>);

impl Counts {
    /// Reads the current counters of the scoreboard.
    pub(super) fn of(scoreboard: Option<&Scoreboard>) -> Counts {
        let slots = scoreboard
            .into_iter()
            .flat_map(|scoreboard| (0..SLOTS).map(|slot| (slot, scoreboard.slot(slot))));
        let started = slots.filter(|(_, slot)| slot.age().is_some());
        Counts(
            started
                .map(|(number, slot)| (number, Counters::from(slot.stats(slot))))
                .collect(),
        )
    }

    /// Distributes the requests in the waiting room over the serving workers: Puma has no such room, and programs that
    /// watch the backlog must see these requests.
    pub(super) fn dealt(scoreboard: Option<&Scoreboard>) -> Counts {
        let mut counts = Counts::of(scoreboard);
        let waiting = scoreboard.map_or(0, |scoreboard| i64::try_from(scoreboard.waiting()).unwrap_or(i64::MAX));
        counts.deal(waiting);
        counts
    }

    fn deal(&mut self, waiting: i64) {
        let serving = self
            .0
            .iter_mut()
            .filter(|(_, counters)| counters.threads > 0)
            .collect::<Vec<_>>();
        let workers = i64::try_from(serving.len().max(1)).unwrap_or(1);
        let (share, rest) = (waiting / workers, waiting % workers);
        for (place, (_, counters)) in (0i64..).zip(serving) {
            counters.queued += share + i64::from(place < rest);
        }
    }

    /// The counters of a worker; `None` if it has not started.
    pub(super) fn of_child(&self, child: &Child) -> Option<&Counters> {
        self.iter()
            .find(|(slot, _)| *slot == child.slot)
            .map(|(_, counters)| counters)
    }

    /// Slots and counters.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Counters)> {
        self.0.iter().map(|(slot, counters)| (*slot, counters))
    }
}

impl From<fairlead_engine::Stats> for Counters {
    fn from(stats: fairlead_engine::Stats) -> Counters {
        Counters {
            connections: stats.connections,
            requests: stats.requests,
            queued: stats.queued,
            threads: stats.threads,
            busy_threads: stats.busy_threads,
            clients: stats.clients,
        }
    }
}

/// The histograms of all workers together, including replaced ones.
pub(super) struct Times<'a>(pub(super) Option<&'a Scoreboard>);

impl Serialize for Times<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let times = self.0.into_iter().flat_map(Scoreboard::times);
        serializer.collect_map(times.map(|(statistic, histogram)| (statistic.name, Shown::from(&histogram))))
    }
}

/// The statistics of the waiting room.
pub(super) struct Room<'a>(pub(super) &'a Scoreboard);

impl Serialize for Room<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.room().map(|(statistic, value)| (statistic.name, value)))
    }
}

/// A histogram: bounds in seconds, each with the number of values up to that bound.
#[derive(Serialize)]
struct Shown {
    count: u64,
    seconds: f64,
    buckets: Buckets,
}

struct Buckets(Vec<(f64, u64)>);

impl From<&Histogram> for Shown {
    fn from(histogram: &Histogram) -> Shown {
        Shown {
            count: histogram.count(),
            seconds: histogram.seconds(),
            buckets: Buckets(histogram.buckets().collect()),
        }
    }
}

impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(bound, count)| (bound, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(threads: [i64; 3]) -> Counts {
        let counters = |threads| Counters {
            threads,
            queued: 3,
            ..Counters::default()
        };
        Counts(threads.iter().map(|threads| counters(*threads)).enumerate().collect())
    }

    fn queued(counts: &Counts) -> Vec<i64> {
        counts.iter().map(|(_, counters)| counters.queued).collect()
    }

    #[test]
    fn requests_in_the_waiting_room_are_dealt_out_to_the_workers_that_serve() {
        let mut counts = counts([4, 0, 4]);
        counts.deal(5);

        assert_eq!(vec![6, 3, 5], queued(&counts));
    }

    #[test]
    fn where_no_worker_serves_nothing_is_dealt_out() {
        let mut counts = counts([0, 0, 0]);
        counts.deal(5);

        assert_eq!(vec![3, 3, 3], queued(&counts));
    }

    #[test]
    fn only_slots_that_have_started_count() {
        let scoreboard = Box::new(Scoreboard::default());
        scoreboard.slot(2).beat();

        assert_eq!(
            vec![2],
            Counts::of(Some(&scoreboard))
                .iter()
                .map(|(slot, _)| slot)
                .collect::<Vec<_>>()
        );
        assert_eq!(0, Counts::of(None).iter().count());
    }
}
