//! Parts that several reports share.

use crate::clock::Nanos;
use crate::fairness::Served;
use crate::latencies::Latencies;
use crate::sample::Sample;
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Latencies in milliseconds; `None` without responses.
#[derive(Debug, Default, Serialize)]
pub(super) struct Distribution {
    pub(super) min: Option<f64>,
    pub(super) mean: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p75: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p99_9: Option<f64>,
    pub(super) max: Option<f64>,
}

impl From<&Histogram<u64>> for Distribution {
    fn from(latencies: &Histogram<u64>) -> Distribution {
        let known = |nanos: f64| (!latencies.is_empty()).then_some(nanos / 1e6);
        let at = |quantile| known(latencies.value_at_quantile(quantile) as f64);
        Distribution {
            min: known(latencies.min() as f64),
            mean: known(latencies.mean()),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: known(latencies.max() as f64),
        }
    }
}

impl From<&Sample> for Distribution {
    fn from(sample: &Sample) -> Distribution {
        match sample {
            Sample::Few(values) => Distribution::of_few(values.clone()),
            Sample::Many(histogram) => histogram.as_ref().into(),
        }
    }
}

impl Distribution {
    fn of_few(mut nanos: Vec<Nanos>) -> Distribution {
        nanos.sort_unstable();
        let count = nanos.len();
        let known = |nanos: Option<&Nanos>| nanos.map(|&nanos| nanos as f64 / 1e6);
        // The least value that as large a part of all does not exceed.
        let at = |quantile: f64| known(nanos.get(((quantile * count as f64).ceil() as usize).max(1) - 1));
        Distribution {
            min: known(nanos.first()),
            mean: (count > 0).then(|| nanos.iter().sum::<Nanos>() as f64 / count as f64 / 1e6),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: known(nanos.last()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.max.is_none()
    }

    /// Latencies for a table.
    pub(super) fn rows(&self) -> [(&'static str, f64); 7] {
        let rows = [
            ("50 %", self.p50),
            ("75 %", self.p75),
            ("90 %", self.p90),
            ("95 %", self.p95),
            ("99 %", self.p99),
            ("99.9 %", self.p99_9),
            ("max", self.max),
        ];
        rows.map(|(name, value)| (name, value.unwrap_or(0.0)))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Latency {
    /// Expected interval of the correction, in milliseconds.
    pub(super) expected_interval: Option<f64>,
    pub(super) raw: Distribution,
    pub(super) corrected: Distribution,
}

impl Latency {
    pub(super) fn new(latencies: &Latencies, expected_interval: Option<Nanos>) -> Latency {
        Latency {
            expected_interval: expected_interval.map(|nanos| nanos as f64 / 1e6),
            raw: latencies.raw().into(),
            corrected: (&latencies.corrected(expected_interval)).into(),
        }
    }
}

/// Requests and their responses, or messages and their echoes.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pub(super) answered: u64,
    pub(super) per_second: f64,
    pub(super) failed: u64,
    pub(super) unanswered: u64,
    pub(super) unsent: u64,
    /// Seconds that the oldest unanswered or unsent request had waited.
    pub(super) longest_wait: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Bytes {
    pub(super) read: u64,
    pub(super) per_second: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Connection {
    pub(super) connection: usize,
    pub(super) answered: u64,
    pub(super) failed: u64,
    #[serde(flatten)]
    pub(super) streams: Option<Streams>,
}

/// HTTP/2: the responses of each stream of a connection.
#[derive(Debug, Serialize)]
pub(super) struct Streams {
    /// Average in equal shares of all connections.
    pub(super) share: Option<f64>,
    pub(super) streams: Vec<u64>,
}

pub(super) fn connections(connections: &[Served]) -> Vec<Connection> {
    let connection = |(connection, served): (usize, &Served)| Connection {
        connection,
        answered: served.answered,
        failed: served.failed,
        streams: None,
    };
    (1..).zip(connections).map(connection).collect()
}

/// Counts by kind, each with its key in JSON and its words in a text.
#[derive(Debug, Default)]
pub(super) struct Counts(pub(super) Vec<(String, String, u64)>);

impl Counts {
    pub(super) fn words(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(_, words, count)| (words.as_str(), *count))
    }
}

impl<K: Into<String>, W: Into<String>> FromIterator<(K, W, u64)> for Counts {
    fn from_iter<T: IntoIterator<Item = (K, W, u64)>>(counts: T) -> Counts {
        let counts = counts.into_iter();
        Counts(
            counts
                .map(|(key, words, count)| (key.into(), words.into(), count))
                .collect(),
        )
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, _, count)| (key, count)))
    }
}

pub(super) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

pub(super) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latencies::histogram;

    #[test]
    fn few_latencies_have_the_distribution_of_their_histogram() {
        for count in [1, 2, 3, 10, 99, 100, 101, 1000] {
            let values: Vec<Nanos> = (1..=count).rev().collect();
            let mut counts = histogram();
            values.iter().for_each(|&value| counts.saturating_record(value));
            let (few, counted) = (Distribution::of_few(values), Distribution::from(&counts));
            assert_eq!(
                few.rows(),
                counted.rows(),
                "{count}: values below 2,048 are exact in the histogram"
            );
            assert_eq!(few.min, counted.min);
            let means = few.mean.zip(counted.mean);
            assert!(means.is_some_and(|(few, counted)| (few - counted).abs() < 1e-12));
        }
    }

    #[test]
    fn no_latencies_have_no_distribution() {
        assert!(Distribution::from(&Sample::default()).is_empty());
    }
}
