//! Servers that refuse, hang up, stall or send garbage.

use crate::support::{bench, measure, Server, OK, PATIENT};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

/// The counted errors, without zeros.
fn errors(report: &Value) -> Vec<(&str, u64)> {
    let kinds = report["errors"].as_object().into_iter().flatten();
    kinds
        .filter_map(|(kind, count)| {
            count
                .as_u64()
                .filter(|count| *count > 0)
                .map(|count| (kind.as_str(), count))
        })
        .collect()
}

#[test]
fn a_server_that_is_not_there_is_one_clear_line() {
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    for args in [
        &["-c", "3"][..],
        &["-n", "5", "--threads", "2", "-c", "2"],
        &["--rate", "10"],
    ] {
        let outcome = bench(&[&[format!("http://{address}/").as_str()], args].concat());
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""));
        let expected = format!("fairlead-load: cannot connect to http://{address}/: Connection refused\n");
        assert_eq!(outcome.stderr, expected);
    }
    let outcome = bench(&["unix:///nowhere/at/all.sock"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stderr.contains("cannot connect") && outcome.stderr.lines().count() == 1,
        "{outcome:?}"
    );
}

#[test]
fn a_name_that_does_not_resolve_is_one_clear_line() {
    let outcome = bench(&["http://does-not-exist.invalid/"]);
    assert_eq!((outcome.status, outcome.stderr.lines().count()), (1, 1), "{outcome:?}");
    assert!(outcome.stderr.contains("does-not-exist.invalid"), "{outcome:?}");
}

#[test]
fn a_server_that_goes_away_costs_connect_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let only_one = std::thread::spawn(move || {
        let (client, _) = listener.accept()?;
        drop(listener);
        for line in BufReader::new(&client).lines() {
            if line?.is_empty() {
                break;
            }
        }
        (&client).write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    });
    let report = measure(2, &[&url, "-n", "3", "-c", "1"]);
    only_one.join().expect("no panic").expect("served");
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(1), vec![("connect", 2)])
    );
}

#[test]
fn closing_without_an_answer_fails_the_request() {
    let server = Server::start(|peer| peer.request().map(drop));
    let report = measure(2, &[&server.url, "-n", "10", "-c", "2"]);
    assert_eq!(errors(&report), [("closed", 10)]);
    assert_eq!(
        (&report["requests"]["failed"], &report["requests"]["answered"]),
        (&json!(10), &json!(0))
    );
}

#[test]
fn closing_in_the_middle_of_an_answer_fails_the_request() {
    for part in [
        &b"HTTP/1.1 200 OK\r\nContent-Le"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let server = Server::start(move |peer| {
            peer.request()?;
            peer.send(part)
        });
        assert_eq!(
            errors(&measure(2, &[&server.url, "-n", "6", "-c", "2"])),
            [("closed", 6)]
        );
    }
}

#[test]
fn a_reset_during_the_upload_fails_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    std::thread::spawn(move || loop {
        // Closing with unread input makes the kernel send a reset.
        listener
            .accept()
            .and_then(|(mut client, _)| client.read_exact(&mut [0; 100]))
            .expect("a request");
    });
    let report = measure(2, &[&url, "-n", "4", "-c", "2", "--body", &"x".repeat(100_000)]);
    let failed = errors(&report)
        .iter()
        .filter(|(kind, _)| ["read", "write", "closed"].contains(kind))
        .map(|(_, n)| n)
        .sum();
    assert_eq!((&report["requests"]["failed"], failed), (&json!(4), 4u64), "{report}");
}

#[test]
fn a_failure_costs_one_request_of_a_pipeline() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.send(OK)?;
        peer.request().map(drop)
    });
    let report = measure(
        2,
        &[
            &server.url,
            "-n",
            "20",
            "-c",
            "1",
            "--pipeline",
            "4",
            "--method",
            "POST",
        ],
    );
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(10), vec![("closed", 10)])
    );
}

/// Serves one request of each connection, and closes it at the next one, as if it had been idle for too long.
fn closing_after_one() -> Server {
    Server::start(|peer| {
        peer.request()?;
        peer.send(OK)?;
        peer.request().map(drop)
    })
}

#[test]
fn a_request_on_a_kept_connection_that_was_closed_is_sent_again_if_that_does_no_harm() {
    for pipeline in ["1", "4"] {
        let args = ["-n", "20", "-c", "1", "--pipeline", pipeline];
        let server = closing_after_one();
        let report = measure(0, &[&[server.url.as_str()], &args[..]].concat());
        assert_eq!(
            (&report["requests"]["answered"], &report["repeated"], errors(&report)),
            (&json!(20), &json!(19), vec![])
        );
        let outcome = bench(&[&[server.url.as_str()], &args[..]].concat());
        let line = "19 requests sent again: the server had closed a kept connection";
        assert!(outcome.stdout.contains(line), "{outcome:?}");
    }
    let report = measure(
        2,
        &[&closing_after_one().url, "-n", "20", "-c", "1", "--method", "POST"],
    );
    assert_eq!(
        (&report["repeated"], errors(&report)),
        (&json!(0), vec![("closed", 10)])
    );
}

#[test]
fn a_request_that_fails_again_on_a_new_connection_is_not_sent_a_third_time() {
    let server = Server::start(|peer| {
        peer.request()?;
        if peer.number == 0 {
            peer.send(OK)?;
            peer.request()?;
        }
        Ok(())
    });
    let report = measure(2, &[&server.url, "-n", "3", "-c", "1"]);
    assert_eq!(
        (&report["requests"]["answered"], &report["repeated"], errors(&report)),
        (&json!(1), &json!(1), vec![("closed", 2)])
    );
    assert_eq!(server.requests(), 4);
}

#[test]
fn nonsense_is_counted_as_malformed() {
    for nonsense in [
        &b"SSH-2.0-OpenSSH\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let server = Server::answering(nonsense);
        assert_eq!(
            errors(&measure(2, &[&server.url, "-n", "6", "-c", "2"])),
            [("malformed", 6)]
        );
    }
}

#[test]
fn an_answer_nobody_asked_for_is_counted_as_malformed() {
    let server = Server::answering(b"HTTP/1.1 204 A\r\n\r\nHTTP/1.1 204 B\r\n\r\n");
    let report = measure(2, &[&server.url, "-n", "5", "-c", "1"]);
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(5), vec![("malformed", 5)])
    );
}

#[test]
fn refusals_are_answers_but_not_success() {
    let server = Server::answering(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let report = measure(2, &[&server.url, "-n", "10"]);
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(10), vec![("status", 10)])
    );
    assert_eq!(report["statuses"]["5xx"], 10);
}

#[test]
fn a_request_without_answer_times_out() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.hold()
    });
    let report = measure(2, &[&server.url, "-n", "4", "-c", "2", "--timeout", "0.1"]);
    assert_eq!(errors(&report), [("timeout", 4)]);
    assert_eq!(report["latency_ms"]["raw"]["max"], Value::Null);
    assert!(
        report["latency_ms"]["corrected"]["max"].as_f64() >= Some(100.0),
        "{report}"
    );
}

#[test]
fn one_slow_request_does_not_fail_the_others() {
    let server = Server::start(|peer| loop {
        peer.request()?;
        if peer.number == 0 {
            return peer.hold();
        }
        peer.send(OK)?;
    });
    let report = measure(2, &[&server.url, "-n", "50", "-c", "2", "--timeout", PATIENT]);
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(49), vec![("timeout", 1)])
    );
}

#[test]
fn a_run_without_time_limit_gives_up_on_a_dead_server() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.hold()
    });
    let report = measure(2, &[&server.url, "-n", "1000000", "-c", "2", "--timeout", "0.1"]);
    assert_eq!(report["gave_up"], true);
    let count = |key: &str| {
        report["requests"][key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {report}"))
    };
    assert_eq!(
        count("failed") + count("unanswered") + count("unsent"),
        1_000_000,
        "{report}"
    );
}

#[test]
fn wrong_usage_is_one_line_that_names_the_help() {
    for args in [
        &[][..],
        &["ftp://x/"],
        &["http://x/", "--bogus"],
        &["http://x/", "-c", "none"],
    ] {
        let outcome = bench(args);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{args:?}");
        assert!(outcome.stderr.ends_with("(see fairlead-load --help)\n"), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn a_refused_value_with_an_empty_line_does_not_hide_the_reason() {
    let outcome = bench(&["http://x/", "-H", "a: b\n\nc: d"]);
    assert!(outcome.stderr.contains("there is a line break or a NUL"), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
}
