//! The tool's output.

use crate::support::{bench, eventually, finish, measure, spawn, Server, OK};
use rustix::process::{kill_process, Pid, Signal};

#[test]
fn the_report_lists_every_connection() {
    let server = Server::answering(OK);
    let outcome = bench(&[&server.url, "-n", "100", "-c", "10"]);
    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, ""),
        "no progress where there is no terminal"
    );
    let lines: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| line.ends_with(" requests completed"))
        .collect();
    assert_eq!(lines.len(), 10, "{}", outcome.stdout);
    assert!(
        lines[0].starts_with("connection  1: ") && lines[9].starts_with("connection 10: "),
        "{lines:?}"
    );
    let sum: u64 = lines
        .iter()
        .filter_map(|line| line.split_whitespace().nth_back(2)?.parse::<u64>().ok())
        .sum();
    assert_eq!(sum, 100);
    for part in [
        "requests   100 in ",
        "latency ",
        "99.9 %",
        "responses  2xx: 100",
        "errors     none",
        "fairness   ",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is missing in {}", outcome.stdout);
    }
}

#[test]
fn the_report_names_connections_that_were_never_served() {
    let server = Server::start(|peer| loop {
        if peer.number == 0 {
            return peer.hold();
        }
        peer.request()?;
        peer.send(OK)?;
    });
    let outcome = bench(&[&server.url, "-c", "3", "-d", "0.4", "-q"]);
    assert!(
        outcome
            .stdout
            .contains("never served while others were: 1 of 3 connections ("),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("longer than any response took"),
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains("requests completed"), "{}", outcome.stdout);
}

#[test]
fn json_is_one_document_with_the_documented_keys() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-n", "50", "-c", "2"]);
    let paths = [
        "/version",
        "/settings/url",
        "/settings/method",
        "/settings/path",
        "/settings/connections",
        "/settings/threads",
        "/settings/pipeline",
        "/settings/keep_alive",
        "/settings/duration",
        "/settings/requests",
        "/settings/rate",
        "/settings/warmup",
        "/settings/timeout",
        "/seconds",
        "/interrupted",
        "/gave_up",
        "/requests/answered",
        "/requests/per_second",
        "/requests/failed",
        "/requests/unanswered",
        "/requests/unsent",
        "/requests/longest_wait",
        "/bytes/read",
        "/bytes/per_second",
        "/statuses/1xx",
        "/statuses/2xx",
        "/statuses/3xx",
        "/statuses/4xx",
        "/statuses/5xx",
        "/errors/connect",
        "/errors/tls",
        "/errors/read",
        "/errors/write",
        "/errors/timeout",
        "/errors/closed",
        "/errors/malformed",
        "/errors/reset",
        "/errors/refused",
        "/errors/goaway",
        "/errors/status",
        "/latency_ms/expected_interval",
        "/latency_ms/raw/min",
        "/latency_ms/raw/mean",
        "/latency_ms/raw/p50",
        "/latency_ms/raw/p75",
        "/latency_ms/raw/p90",
        "/latency_ms/raw/p95",
        "/latency_ms/raw/p99",
        "/latency_ms/raw/p99_9",
        "/latency_ms/raw/max",
        "/latency_ms/corrected/min",
        "/latency_ms/corrected/mean",
        "/latency_ms/corrected/p50",
        "/latency_ms/corrected/p75",
        "/latency_ms/corrected/p90",
        "/latency_ms/corrected/p95",
        "/latency_ms/corrected/p99",
        "/latency_ms/corrected/p99_9",
        "/latency_ms/corrected/max",
        "/fairness/jain",
        "/fairness/least",
        "/fairness/most",
        "/fairness/least_to_most",
        "/fairness/never_served",
        "/connections_opened",
        "/repeated",
        "/connections/0/connection",
        "/connections/0/answered",
        "/connections/0/failed",
    ];
    for path in paths {
        assert!(report.pointer(path).is_some(), "{path} is missing in {report}");
    }
    assert_eq!(
        count_leaves(&report),
        paths.len() + 3,
        "a second connection has three more, and nothing is undocumented"
    );
}

pub(crate) fn count_leaves(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Object(members) => members.values().map(count_leaves).sum(),
        serde_json::Value::Array(items) if !items.is_empty() => items.iter().map(count_leaves).sum(),
        _ => 1,
    }
}

#[test]
fn percentiles_never_decrease() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-d", "0.3"]);
    for column in ["raw", "corrected"] {
        let order = ["min", "p50", "p75", "p90", "p95", "p99", "p99_9", "max"];
        let values: Vec<f64> = order
            .iter()
            .filter_map(|key| report["latency_ms"][column][key].as_f64())
            .collect();
        assert_eq!(values.len(), order.len(), "{report}");
        assert!(values.is_sorted(), "{column}: {values:?}");
    }
}

#[test]
fn an_interrupt_prints_what_was_measured() {
    let server = Server::answering(OK);
    let child = spawn(&[&server.url, "-d", "50", "-c", "2", "--json"]);
    assert!(eventually(|| server.requests() > 10), "the tool sends requests");
    let pid = Pid::from_raw(child.id() as i32).expect("a running child");
    kill_process(pid, Signal::INT).expect("our child");
    let outcome = finish(child);
    let report = outcome.json();
    assert_eq!((outcome.status, &report["interrupted"]), (0, &serde_json::json!(true)));
    assert!(
        report["requests"]["answered"].as_u64() > Some(0) && report["seconds"].as_f64() < Some(50.0),
        "{report}"
    );
}

#[test]
fn help_goes_to_standard_output() {
    let outcome = bench(&["--help"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.starts_with("Usage: fairlead-load URL"), "{outcome:?}");
}
