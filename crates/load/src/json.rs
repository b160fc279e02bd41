//! Reports as one JSON document. Their keys are part of the public interface: see the crate's documentation.
//! Here are the parts that all documents have.

pub(crate) mod http;
pub(crate) mod real_time;

use crate::fairness::{Fairness, Served};
use crate::latencies::{Latencies, PERCENTILES};
use crate::pacing::Nanos;
use hdrhistogram::Histogram;
use serde_json::{json, Map, Value};

fn latency(latencies: &Latencies, expected_interval: Option<Nanos>) -> Value {
    json!({
        "expected_interval": expected_interval.map(|nanos| nanos as f64 / 1e6),
        "raw": distribution(latencies.raw()),
        "corrected": distribution(&latencies.corrected(expected_interval)),
    })
}

fn distribution(latencies: &Histogram<u64>) -> Value {
    let known = |nanos: f64| json!((!latencies.is_empty()).then_some(nanos / 1e6));
    let mut members = Map::new();
    for (key, nanos) in [
        ("min", latencies.min() as f64),
        ("mean", latencies.mean()),
        ("max", latencies.max() as f64),
    ] {
        members.insert(key.into(), known(nanos));
    }
    for percent in PERCENTILES {
        let key = format!("p{percent}").replace('.', "_");
        members.insert(key, known(latencies.value_at_quantile(percent / 100.0) as f64));
    }
    Value::Object(members)
}

fn fairness(connections: &[Served]) -> Value {
    let fairness = Fairness::of(connections);
    json!({
        "jain": fairness.jain,
        "least": fairness.least,
        "most": fairness.most,
        "least_to_most": fairness.least_to_most(),
        "never_served": fairness.never_served,
    })
}

fn connections(connections: &[Served]) -> Value {
    let numbered = (1..).zip(connections);
    let each = numbered
        .map(|(number, served)| json!({ "connection": number, "answered": served.answered, "failed": served.failed }));
    each.collect()
}
