//! HTTP/2: concurrent streams, limits, shares, and the same over TLS.

use crate::http2_peer::{
    answer_all, answered, answering, errors, in_batches, limiting, serving, streams, Http2, DATA, END_STREAM,
    MAX_CONCURRENT_STREAMS,
};
use crate::output::count_leaves;
use crate::support::{bench, measure, Server, OK};
use crate::terminator::{Authority, ONLY_13};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

#[test]
fn as_many_requests_wait_at_the_same_time_as_there_are_streams() {
    let server = in_batches(&[], 8);
    let report = measure(0, &[&server.url, "--http2", "--streams", "8", "-c", "1", "-n", "80"]);
    assert_eq!(
        (answered(&report), server.requests(), server.connections()),
        (80, 80, 1)
    );
    assert_eq!(streams(&report, 0), [10; 8]);
    assert_eq!(report["http2"]["fairness"]["jain"], 1.0);
    assert_eq!(report["http2"]["max_concurrent_streams"], Value::Null);
}

#[test]
fn the_limit_of_the_server_is_kept() {
    let server = limiting(&[(MAX_CONCURRENT_STREAMS, 3)], |http2| loop {
        let streams = http2.requests(3)?;
        // Everything that the tool sent before the acknowledgement of a PING has arrived with the acknowledgement.
        if http2.ping()? {
            return Ok(());
        }
        for stream in streams {
            http2.answer(stream)?;
        }
    });
    let report = measure(0, &[&server.url, "--http2", "--streams", "8", "-c", "1", "-n", "30"]);
    assert_eq!((answered(&report), errors(&report)), (30, vec![]));
    assert_eq!(report["http2"]["max_concurrent_streams"], 3);
    assert_eq!(streams(&report, 0), [10, 10, 10, 0, 0, 0, 0, 0]);
    let outcome = bench(&[&server.url, "--http2", "--streams", "8", "-c", "1", "-n", "30"]);
    assert!(
        outcome
            .stdout
            .contains("\nstreams    3 of 8: the server allows no more"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn connections_may_differ_and_each_one_shows_its_share() {
    // A connection on which no request follows the second one before the PING is acknowledged has a single stream, and
    // gets one response only.
    let server = serving(|http2| {
        let first = http2.request()?;
        http2.answer(first)?;
        let second = http2.request()?;
        if http2.ping()? {
            http2.answer(second)?;
            return answer_all(http2);
        }
        http2.hold()
    });
    let report = measure(0, &[&server.url, "--http2", "--streams", "4,1x2", "-d", "0.4"]);
    let classes = json!([{ "connections": 1, "streams": 4 }, { "connections": 2, "streams": 1 }]);
    assert_eq!(report["settings"]["http2"], classes);
    let lengths: Vec<usize> = (0..3).map(|connection| streams(&report, connection).len()).collect();
    assert_eq!(
        (lengths, &report["settings"]["connections"]),
        (vec![4, 1, 1], &json!(3))
    );
    let found = &report["http2"]["classes"];
    let sum = |class: usize| found[class]["answered"].as_u64().unwrap_or(0);
    assert_eq!(sum(0) + sum(1), answered(&report), "{report}");
    assert_eq!(sum(0), streams(&report, 0).iter().sum::<u64>());
    let share = |place: &Value| place["share"].as_f64().unwrap_or(0.0);
    assert!(
        (share(&found[0]) + 2.0 * share(&found[1]) - 3.0).abs() < 1e-9,
        "{report}"
    );
    assert_eq!(share(&found[0]), share(&report["connections"][0]));
    assert!(share(&found[0]) > 2.0 && share(&found[1]) < 0.5, "{report}");
    assert!(found[1]["latency_ms"]["p50"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn a_large_body_waits_for_room_and_arrives_whole() {
    let received = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&received);
    let server = serving(move |http2| loop {
        let frame = http2.frame()?;
        if frame.kind == DATA {
            seen.fetch_add(frame.payload.len(), Ordering::SeqCst);
            if frame.flags & END_STREAM != 0 {
                http2.answer(frame.stream)?;
            } else if !frame.payload.is_empty() {
                http2.allow(frame.stream, frame.payload.len() as u32)?;
            }
        }
    });
    let body = "x".repeat(100_000);
    let args = ["--http2", "--streams", "2", "-c", "1", "-n", "6", "--body", &body];
    let report = measure(0, &[&[server.url.as_str()][..], &args].concat());
    assert_eq!((answered(&report), received.load(Ordering::SeqCst)), (6, 600_000));
    assert_eq!(report["settings"]["method"], "POST");
}

#[test]
fn a_large_answer_is_taken_whole_and_its_room_given_back() {
    const BYTES: u32 = 20_000_000;
    let server = serving(|http2| loop {
        let stream = http2.request()?;
        http2.begin(stream)?;
        http2.content(stream, BYTES)?;
    });
    let report = measure(0, &[&server.url, "--http2", "-c", "1", "-n", "2", "--timeout", "20"]);
    assert_eq!((answered(&report), errors(&report)), (2, vec![]));
    assert!(
        report["bytes"]["read"].as_u64() > Some(2 * u64::from(BYTES)),
        "{report}"
    );
}

#[test]
fn over_tls_the_server_may_speak_first() {
    let authority = Authority::new("h2-first");
    let mut terms = authority.terms_with("localhost", &ONLY_13, &["h2"]);
    // SETTINGS without parameters, together with the end of the handshake.
    terms.first = b"\0\0\0\x04\0\0\0\0\0";
    let server = Server::start_secure(terms, |peer| answer_all(&mut Http2::greet(peer, &[])?));
    let cacert = authority.cacert();
    let args = ["--http2", "--cacert", &cacert, "--streams", "4", "-n", "40", "-c", "2"];
    let report = measure(0, &[&[server.url.as_str()][..], &args].concat());
    assert_eq!((answered(&report), &report["connections_opened"]), (40, &json!(2)));
}

#[test]
fn a_fixed_rate_goes_round_the_streams() {
    let server = answering();
    let args = ["--http2", "--streams", "3,1", "-n", "60", "--rate", "100"];
    let report = measure(0, &[&[server.url.as_str()][..], &args].concat());
    assert_eq!(answered(&report), 60, "{report}");
    assert_eq!((streams(&report, 0), streams(&report, 1)), (vec![10, 10, 10], vec![30]));
}

#[test]
fn documents_have_the_documented_keys() {
    let server = answering();
    let report = measure(0, &[&server.url, "--http2", "-n", "9", "-c", "1", "--streams", "2"]);
    let mut paths: Vec<String> = ["/settings/http2/0/connections", "/settings/http2/0/streams"]
        .into_iter()
        .chain([
            "/connections/0/share",
            "/connections/0/streams/0",
            "/connections/0/streams/1",
        ])
        .map(str::to_owned)
        .collect();
    let names =
        "/max_concurrent_streams /resets /goaways /fairness/jain /fairness/least_to_most /fairness/never_served \
        /classes/0/connections /classes/0/streams /classes/0/answered /classes/0/share";
    paths.extend(names.split_whitespace().map(|name| format!("/http2{name}")));
    let figures = ["min", "mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "max"];
    paths.extend(figures.map(|figure| format!("/http2/classes/0/latency_ms/{figure}")));
    for path in &paths {
        assert!(report.pointer(path).is_some(), "{path} is missing in {report}");
    }
    let plain = Server::answering(OK);
    let without = measure(0, &[&plain.url, "-n", "9", "-c", "1"]);
    // Empty objects have no leaves: no resets, no GOAWAY.
    assert_eq!(
        count_leaves(&report),
        count_leaves(&without) + paths.len() - 2,
        "nothing is undocumented"
    );
}
