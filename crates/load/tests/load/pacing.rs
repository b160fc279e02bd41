//! Fairness, the schedule of requests, and latencies.

use crate::support::{measure, Server, OK};
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Serves one request at a time and lets all clients wait once, for `stall`, at request number `at`.
fn stalling(at: usize, stall: Duration) -> Server {
    let (turn, count) = (Mutex::new(()), AtomicUsize::new(0));
    Server::start(move |peer| loop {
        peer.request()?;
        let _turn = turn.lock().expect("no panic");
        if count.fetch_add(1, Ordering::SeqCst) == at {
            std::thread::sleep(stall);
        }
        peer.send(OK)?;
    })
}

fn latency(report: &Value, column: &str, key: &str) -> f64 {
    report["latency_ms"][column][key]
        .as_f64()
        .unwrap_or_else(|| panic!("{column} {key}: {report}"))
}

#[test]
fn a_number_of_requests_is_kept_exactly() {
    for (connections, threads) in [("1", "1"), ("7", "1"), ("7", "3")] {
        let server = Server::answering(OK);
        let report = measure(0, &[&server.url, "-n", "101", "-c", connections, "--threads", threads]);
        assert_eq!((&report["requests"]["answered"], server.requests()), (&json!(101), 101));
        let sum: u64 = report["connections"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|c| c["answered"].as_u64())
            .sum();
        assert_eq!(sum, 101, "{report}");
    }
}

#[test]
fn connections_without_a_request_to_send_are_not_called_starved() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-n", "3", "-c", "10"]);
    assert_eq!(report["fairness"]["never_served"], json!([]));
    assert_eq!(server.requests(), 3);
}

#[test]
fn a_connection_that_is_never_served_is_named() {
    let server = Server::start(|peer| loop {
        if peer.number == 1 {
            return peer.hold();
        }
        peer.request()?;
        peer.send(OK)?;
    });
    let report = measure(0, &[&server.url, "-c", "4", "-d", "0.5"]);
    let starved = report["fairness"]["never_served"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(starved.len(), 1, "{report}");
    let index = starved[0].as_u64().map_or(0, |number| number as usize - 1);
    assert_eq!(report["connections"][index]["answered"], 0);
    assert_eq!(
        (&report["fairness"]["least"], &report["fairness"]["least_to_most"]),
        (&json!(0), &json!(0.0))
    );
    assert!(report["fairness"]["jain"].as_f64() < Some(0.76), "{report}");
    // It waited from beginning to end, which only the corrected column can show.
    assert!(
        latency(&report, "corrected", "max") > 0.9 * 1000.0 * report["seconds"].as_f64().unwrap_or(0.0),
        "{report}"
    );
}

#[test]
fn threads_share_the_connections() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-c", "5", "-d", "0.3", "--threads", "2"]);
    assert_eq!(
        (report["connections"].as_array().map(Vec::len), server.connections()),
        (Some(5), 5)
    );
    assert_eq!(report["fairness"]["never_served"], json!([]));
}

#[test]
fn closed_loop_correction_shows_a_stall_that_raw_hides() {
    let server = stalling(20, Duration::from_millis(500));
    let report = measure(0, &[&server.url, "-c", "2", "-d", "1"]);
    assert!(
        latency(&report, "raw", "p75") * 4.0 < latency(&report, "corrected", "p75"),
        "{report}"
    );
    assert!(latency(&report, "raw", "max") >= 500.0, "{report}");
}

#[test]
fn a_fixed_rate_counts_from_when_a_request_was_due() {
    let server = stalling(20, Duration::from_millis(500));
    let report = measure(0, &[&server.url, "-c", "2", "-d", "1", "--rate", "200"]);
    assert!(
        latency(&report, "raw", "p75") * 4.0 < latency(&report, "corrected", "p75"),
        "{report}"
    );
}

#[test]
fn a_fixed_rate_sends_what_it_promises_and_no_more() {
    let server = Server::answering(OK);
    let report = measure(
        0,
        &[&server.url, "-c", "3", "-d", "0.5", "--rate", "100", "--threads", "2"],
    );
    let count = |key: &str| {
        report["requests"][key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {report}"))
    };
    assert_eq!(
        count("answered") + count("unanswered") + count("unsent"),
        50,
        "{report}"
    );
    let limited = measure(0, &[&server.url, "-c", "3", "-n", "21", "--rate", "500"]);
    assert_eq!(limited["requests"]["answered"], 21);
}

#[test]
fn a_fixed_rate_is_even_and_does_not_come_in_bursts() {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&arrivals);
    let server = Server::start(move |peer| loop {
        peer.request()?;
        seen.lock().expect("no panic").push(Instant::now());
        peer.send(OK)?;
    });
    measure(0, &[&server.url, "-c", "5", "-n", "40", "--rate", "50"]);
    let arrivals = arrivals.lock().expect("no panic");
    let gaps = arrivals
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > Duration::from_secs(1) / 100);
    assert!(
        gaps.count() > 20,
        "most requests come at least half an interval after the one before: {arrivals:?}"
    );
}

#[test]
fn a_server_too_slow_for_the_rate_leaves_requests_unsent() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.hold()
    });
    let report = measure(2, &[&server.url, "-c", "2", "-d", "0.5", "--rate", "100"]);
    assert_eq!(
        (&report["requests"]["unanswered"], &report["requests"]["unsent"]),
        (&json!(2), &json!(48)),
        "{report}"
    );
    assert!(report["requests"]["longest_wait"].as_f64() > Some(0.4), "{report}");
}

#[test]
fn the_warm_up_is_not_counted() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-c", "2", "-n", "10", "--warmup", "0.2"]);
    assert_eq!(report["requests"]["answered"], 10);
    assert!(server.requests() > 10, "nothing was sent to warm up");
}

#[test]
fn good_responses_in_time_are_counted_apart_from_late_ones_and_refusals() {
    const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    // The third response takes long, and the fourth request is due before it is sent.
    let server = Server::start(|peer| {
        for number in 0.. {
            peer.request()?;
            if number == 2 {
                std::thread::sleep(Duration::from_millis(1_700));
            }
            peer.send(if number < 2 { BUSY } else { OK })?;
        }
        Ok(())
    });
    let rate = ["--rate", "2", "-n", "6", "-c", "1"];
    let report = measure(2, &[&[&*server.url, "--within", "1"], &rate[..]].concat());
    let (good, refused) = (&report["good"], &report["refused"]);
    let answered = |part: &Value| part["answered"].as_u64();
    assert_eq!((answered(good), answered(refused)), (Some(4), Some(2)), "{report}");
    let in_time = good["in_time"].as_u64().unwrap_or(9);
    assert!(
        (1..=2).contains(&in_time),
        "the third and the fourth are late: {report}"
    );
    let milliseconds = |part: &Value| part["latency_ms"]["max"].as_f64();
    assert!(milliseconds(good) >= Some(1_700.0), "{report}");
    assert!(milliseconds(refused) < milliseconds(good), "{report}");
    assert_eq!(report["settings"]["within"], json!(1.0));
    let plain = measure(2, &[&*server.url, "-n", "1", "-c", "1"]);
    assert!(plain.get("good").is_none() && plain.get("refused").is_none(), "{plain}");
}

#[test]
fn a_source_is_the_address_that_the_server_sees() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    for source in ["127.0.0.1", "127.0.0.3"] {
        let peer = std::thread::scope(|scope| {
            let server = scope.spawn(|| -> std::io::Result<SocketAddr> {
                let (mut stream, peer) = listener.accept()?;
                while stream.read(&mut [0; 4096])? > 0 {
                    stream.write_all(OK)?;
                }
                Ok(peer)
            });
            let report = measure(0, &[&url, "-n", "2", "-c", "1", "--source", source]);
            assert_eq!(report["settings"]["source"], source);
            server.join().expect("no panic").expect("a client")
        });
        assert_eq!(peer.ip().to_string(), source);
    }
}
