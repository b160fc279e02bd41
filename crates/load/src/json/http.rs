//! The report of HTTP requests as a JSON document.

use super::{connections, distribution, fairness, latency};
use crate::options::{names, Options};
use crate::run::Measured;
use crate::tally::{Failure, Tally};
use serde_json::{json, Map, Value};

/// The whole document.
pub(crate) fn document(options: &Options, measured: &Measured) -> Value {
    let tally = &measured.tally;
    let waiting = tally.unanswered + tally.unsent > 0;
    let mut document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "settings": settings(options),
        "seconds": measured.seconds(),
        "interrupted": measured.stopped,
        "gave_up": measured.gave_up,
        "requests": {
            "answered": tally.answered(),
            "per_second": measured.per_second(tally.answered()),
            "failed": tally.failed(),
            "unanswered": tally.unanswered,
            "unsent": tally.unsent,
            "longest_wait": waiting.then_some(tally.longest_wait as f64 / 1e9),
        },
        "bytes": { "read": tally.bytes, "per_second": measured.per_second(tally.bytes) },
        "statuses": statuses(tally),
        "errors": errors(tally),
        "latency_ms": latency(&tally.latencies, measured.expected_interval),
        "fairness": fairness(&tally.connections),
        "connections_opened": tally.opened,
        "connections": connections(&tally.connections),
    });
    if !options.mix.is_empty() {
        document["mix"] = mix(options, tally);
    }
    document
}

fn mix(options: &Options, tally: &Tally) -> Value {
    let kinds = names(&options.mix).into_iter().zip(&tally.kinds);
    let each = kinds.map(|(name, latencies)| {
        let raw = latencies.raw();
        json!({ "name": name, "answered": raw.len(), "latency_ms": distribution(raw) })
    });
    each.collect()
}

fn settings(options: &Options) -> Value {
    json!({
        "url": options.url.text,
        "method": options.method,
        "path": options.url.path,
        "connections": options.connections,
        "threads": options.threads,
        "pipeline": options.pipeline,
        "keep_alive": options.keep_alive,
        "duration": options.duration.map(|duration| duration.as_secs_f64()),
        "requests": options.requests,
        "rate": options.rate,
        "warmup": options.warmup.as_secs_f64(),
        "timeout": options.timeout.as_secs_f64(),
    })
}

fn statuses(tally: &Tally) -> Map<String, Value> {
    let classes = (1..).zip(tally.classes);
    classes
        .map(|(class, count)| (format!("{class}xx"), json!(count)))
        .collect()
}

fn errors(tally: &Tally) -> Map<String, Value> {
    let failures = Failure::ALL.map(|why| (why.name(), tally.failures[why as usize]));
    let all = failures.into_iter().chain([("status", tally.refusals())]);
    all.map(|(name, count)| (name.to_owned(), json!(count))).collect()
}
