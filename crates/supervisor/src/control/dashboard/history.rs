//! The last ten minutes, with a point for each second: the rate of requests, their latency, and their waits.

use super::distribution::Distribution;
use super::figures;
use fairlead_engine::{Scoreboard, SLOTS};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of points.
const POINTS: usize = 600;

/// Number of points that the percentiles of a point cover: the percentiles of a single second would jump.
const RECENT: usize = 10;

/// The percentiles that are shown.
const PARTS: [f64; 3] = [0.5, 0.95, 0.99];

/// The points of ten minutes. As JSON: a list of them.
#[derive(Debug)]
pub(super) struct History {
    began: Instant,
    points: VecDeque<Point>,
    last: Option<Totals>,
    /// The latencies of all points together.
    window: Distribution,
    /// The latencies of the last points.
    recent: Distribution,
    /// Requests per second of each slot.
    rates: Box<[f64; SLOTS]>,
}

/// One second. As JSON: a list of numbers, null where there is none.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Time since the beginning of the history.
    at: Duration,
    /// Requests per second.
    rate: f64,
    latencies: Distribution,
    /// Of the latencies of the last [`RECENT`] points, with this one.
    percentiles: [Option<f64>; 3],
    /// Average seconds of a request, see [`figures::WAITS`].
    waits: [Option<f64>; 3],
}

/// Everything that was counted up to one moment.
#[derive(Debug)]
struct Totals {
    at: Instant,
    requests: Box<[u64; SLOTS]>,
    waits: [Option<f64>; 3],
    waited: u64,
    responses: Distribution,
}

impl History {
    /// Without a point yet.
    pub(super) fn new(now: Instant) -> History {
        History {
            began: now,
            points: VecDeque::with_capacity(POINTS),
            last: None,
            window: Distribution::default(),
            recent: Distribution::default(),
            rates: Box::new([0.0; SLOTS]),
        }
    }

    /// Adds a point for the time since the last call.
    pub(super) fn look(&mut self, now: Instant, scoreboard: &Scoreboard) {
        let totals = Totals::new(now, scoreboard);
        if let Some(last) = self.last.replace(totals) {
            self.add(&last);
        }
    }

    /// The time of the last look, since the beginning.
    pub(super) fn age(&self) -> Duration {
        let last = self.last.as_ref();
        last.map_or(Duration::ZERO, |last| last.at.saturating_duration_since(self.began))
    }

    pub(super) fn last(&self) -> Option<&Point> {
        self.points.back()
    }

    /// Requests per second of a slot.
    pub(super) fn rate(&self, slot: usize) -> f64 {
        self.rates.get(slot).copied().unwrap_or_default()
    }

    /// The percentiles of the latencies in all points together.
    pub(super) fn percentiles(&self) -> [Option<f64>; 3] {
        percentiles(&self.window)
    }

    fn add(&mut self, last: &Totals) {
        let Some(now) = &self.last else { return };
        let seconds = now.at.saturating_duration_since(last.at).as_secs_f64().max(0.001);
        // The next worker in the same slot begins at 0.
        let since = |(now, last): (&u64, &u64)| if now < last { *now } else { now - last };
        let requests: Vec<u64> = now.requests.iter().zip(last.requests.iter()).map(since).collect();
        let waited = now.waited.saturating_sub(last.waited) as f64;
        let average = |wait: usize| {
            let (now, last) = (now.waits[wait]?, last.waits[wait].unwrap_or_default());
            (waited > 0.0).then_some((now - last).max(0.0) / waited)
        };
        let latencies = now.responses.since(&last.responses);
        self.recent.add(&latencies);
        if let Some(former) = self.points.iter().rev().nth(RECENT - 1) {
            self.recent.subtract(&former.latencies);
        }
        let point = Point {
            at: now.at.saturating_duration_since(self.began),
            rate: requests.iter().sum::<u64>() as f64 / seconds,
            latencies,
            percentiles: percentiles(&self.recent),
            waits: std::array::from_fn(average),
        };
        let rates = self.rates.iter_mut().zip(&requests);
        rates.for_each(|(rate, requests)| *rate = *requests as f64 / seconds);
        if self.points.len() == POINTS {
            if let Some(first) = self.points.pop_front() {
                self.window.subtract(&first.latencies);
            }
        }
        self.window.add(&point.latencies);
        self.points.push_back(point);
    }
}

impl Totals {
    fn new(at: Instant, scoreboard: &Scoreboard) -> Totals {
        let mut requests = Box::new([0; SLOTS]);
        for (slot, requests) in requests.iter_mut().enumerate() {
            *requests = scoreboard
                .slot(slot)
                .requests
                .load(std::sync::atomic::Ordering::Relaxed);
        }
        let (waits, waited) = figures::waits(scoreboard);
        Totals {
            at,
            requests,
            waits,
            waited,
            responses: figures::responses(scoreboard),
        }
    }
}

fn percentiles(latencies: &Distribution) -> [Option<f64>; 3] {
    PARTS.map(|part| latencies.percentile(part))
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.points)
    }
}

impl Serialize for Point {
    /// Milliseconds since the beginning, requests per second, three percentiles and three waits in seconds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(8))?;
        list.serialize_element(&(self.at.as_millis() as u64))?;
        list.serialize_element(&rounded(self.rate))?;
        for time in self.percentiles.into_iter().chain(self.waits) {
            list.serialize_element(&time.map(rounded))?;
        }
        list.end()
    }
}

/// Rounded to microseconds: shorter as text.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn json(history: &History) -> serde_json::Value {
        serde_json::to_value(history).expect("JSON")
    }

    #[test]
    fn each_point_has_the_rate_since_the_last_one() {
        let scoreboard = Box::new(Scoreboard::default());
        let began = Instant::now();
        let mut history = History::new(began);
        scoreboard.slot(0).requests.store(100, Relaxed);
        history.look(began, &scoreboard);
        assert_eq!(serde_json::json!([]), json(&history));

        scoreboard.slot(0).requests.store(110, Relaxed);
        scoreboard.slot(7).requests.store(5, Relaxed);
        history.look(began + Duration::from_secs(2), &scoreboard);

        let point = serde_json::json!([2000, 7.5, null, null, null, null, null, null]);
        assert_eq!(serde_json::json!([point]), json(&history));
        assert_eq!([5.0, 2.5, 0.0], [0, 7, 8].map(|slot| history.rate(slot)));
    }

    #[test]
    fn the_next_worker_in_a_slot_begins_at_zero() {
        let scoreboard = Box::new(Scoreboard::default());
        let began = Instant::now();
        let mut history = History::new(began);
        scoreboard.slot(0).requests.store(100, Relaxed);
        history.look(began, &scoreboard);
        scoreboard.reset(0);
        scoreboard.slot(0).requests.store(3, Relaxed);
        history.look(began + Duration::from_secs(1), &scoreboard);

        assert_eq!(3.0, history.rate(0));
    }

    #[test]
    fn it_has_a_limited_number_of_points() {
        let scoreboard = Box::new(Scoreboard::default());
        let began = Instant::now();
        let mut history = History::new(began);
        for second in 0..=(POINTS as u64 + 10) {
            history.look(began + Duration::from_secs(second), &scoreboard);
        }

        assert_eq!(POINTS, history.points.len());
        assert_eq!(serde_json::json!(11_000), json(&history)[0][0]);
    }
}
