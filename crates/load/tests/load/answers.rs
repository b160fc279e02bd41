//! Framings of responses, and ways to send requests.

use crate::support::{bench, eventually, measure, Server, OK};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

#[test]
fn kept_alive_connections_serve_many_requests() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-n", "200", "-c", "4"]);
    assert_eq!(report["requests"]["answered"], 200);
    assert_eq!(report["statuses"]["2xx"], 200);
    assert_eq!(report["bytes"]["read"], 200 * OK.len());
    assert_eq!((server.requests(), server.connections()), (200, 4));
}

#[test]
fn a_connection_that_the_server_closes_is_opened_again() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
    });
    let report = measure(0, &[&server.url, "-n", "20", "-c", "2"]);
    assert_eq!(
        (report["requests"]["answered"].as_u64(), server.connections()),
        (Some(20), 20)
    );
    assert_eq!(report["connections_opened"], 20);
}

#[test]
fn an_answer_may_end_with_the_connection() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.send(b"HTTP/1.0 200 OK\r\n\r\nas long as it takes")
    });
    assert_eq!(
        measure(0, &[&server.url, "-n", "10", "-c", "2"])["requests"]["answered"],
        10
    );
}

#[test]
fn chunks_may_arrive_byte_by_byte() {
    let server = Server::start(|peer| loop {
        peer.request()?;
        for byte in
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\na\r\n0123456789\r\n0\r\nT: r\r\n\r\n"
        {
            peer.send(&[*byte])?;
        }
    });
    let report = measure(0, &[&server.url, "-n", "20", "-c", "2"]);
    assert_eq!(
        (report["requests"]["answered"].as_u64(), server.connections()),
        (Some(20), 2)
    );
}

#[test]
fn answers_larger_than_any_buffer_are_read_to_their_end() {
    let server = Server::start(|peer| loop {
        peer.request()?;
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")?;
        peer.send(&vec![b'x'; 3_000_000])?;
    });
    let report = measure(0, &[&server.url, "-n", "8", "-c", "2"]);
    assert_eq!(report["requests"]["answered"], 8);
    assert!(report["bytes"]["read"].as_u64() > Some(24_000_000), "{report}");
}

#[test]
fn head_204_and_304_have_no_content() {
    let head = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    assert_eq!(
        measure(0, &[&head.url, "-n", "10", "-m", "HEAD"])["requests"]["answered"],
        10
    );
    let none = Server::answering(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(measure(0, &[&none.url, "-n", "10"])["statuses"]["2xx"], 10);
    let same = Server::answering(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n");
    assert_eq!(measure(0, &[&same.url, "-n", "10"])["statuses"]["3xx"], 10);
}

#[test]
fn interim_answers_are_not_answers() {
    let server = Server::answering(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
    let report = measure(0, &[&server.url, "-n", "10"]);
    assert_eq!(
        (&report["requests"]["answered"], &report["statuses"]["1xx"]),
        (&json!(10), &json!(0))
    );
}

#[test]
fn without_keep_alive_every_request_has_its_own_connection() {
    let server = Server::answering(OK);
    let report = measure(0, &[&server.url, "-n", "12", "-c", "3", "--no-keep-alive"]);
    assert_eq!(
        (report["requests"]["answered"].as_u64(), server.connections()),
        (Some(12), 12)
    );
}

#[test]
fn a_pipeline_has_several_requests_under_way() {
    // Responds only when four requests have arrived; fewer requests would wait for ever.
    let server = Server::start(|peer| loop {
        (0..4).try_for_each(|_| peer.request().map(drop))?;
        peer.send(&OK.repeat(4))?;
    });
    let report = measure(0, &[&server.url, "-n", "40", "-c", "2", "--pipeline", "4"]);
    assert_eq!(
        (report["requests"]["answered"].as_u64(), server.connections()),
        (Some(40), 2)
    );
}

#[test]
fn requests_behind_an_answer_that_closes_are_sent_again() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.send(OK)?;
        peer.request()?;
        peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    });
    let report = measure(0, &[&server.url, "-n", "30", "-c", "2", "--pipeline", "5"]);
    assert_eq!(
        (&report["requests"]["answered"], &report["requests"]["failed"]),
        (&json!(30), &json!(0))
    );
}

#[test]
fn the_request_is_what_was_asked_for() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let server = Server::start(move |peer| loop {
        let request = peer.request()?;
        seen.lock().expect("no panic").push((request.head, request.body));
        peer.send(OK)?;
    });
    let url = format!("{}a/b?c=d", server.url);
    measure(
        0,
        &[&url, "-n", "1", "-m", "PUT", "-H", "X-One: 1", "--body", "some text"],
    );
    let host = server.url.trim_start_matches("http://").trim_end_matches('/');
    let head = format!("PUT /a/b?c=d HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\nX-One: 1\r\n\r\n");
    assert_eq!(*requests.lock().expect("no panic"), [(head, b"some text".to_vec())]);
}

/// More than the socket buffers hold, in a file.
fn large_body(name: &str) -> (PathBuf, Vec<u8>) {
    let file = std::env::temp_dir().join(format!("fairlead-load-{name}-{}", std::process::id()));
    let body: Vec<u8> = (0..16_000_000u32).map(|number| number as u8).collect();
    std::fs::write(&file, &body).expect("writable");
    (file, body)
}

#[test]
fn a_body_larger_than_the_socket_buffers_arrives_whole() {
    let (file, body) = large_body("upload");
    let server = Server::start(move |peer| loop {
        let intact = peer.request()?.body == body;
        peer.send(if intact {
            OK
        } else {
            b"HTTP/1.1 400 Mangled\r\nContent-Length: 0\r\n\r\n"
        })?;
    });
    let report = measure(
        0,
        &[
            &server.url,
            "-n",
            "4",
            "-c",
            "2",
            "--body",
            &format!("@{}", file.display()),
        ],
    );
    std::fs::remove_file(&file).expect("still there");
    assert_eq!(report["statuses"]["2xx"], 4);
}

#[test]
fn an_answer_before_the_body_is_sent_counts_and_ends_the_connection() {
    let (file, _) = large_body("refused");
    let server = Server::start(|peer| {
        peer.head()?;
        peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")?;
        // Reads nothing more until the tool has opened another connection.
        let last = peer.number == 2;
        assert!(
            last || eventually(|| peer.connections() > peer.number + 1),
            "the tool opens another connection"
        );
        Ok(())
    });
    let report = measure(
        2,
        &[
            &server.url,
            "-n",
            "3",
            "-c",
            "1",
            "--body",
            &format!("@{}", file.display()),
        ],
    );
    std::fs::remove_file(&file).expect("still there");
    assert_eq!(
        (&report["statuses"]["4xx"], &report["requests"]["failed"]),
        (&json!(3), &json!(0)),
        "{report}"
    );
    assert_eq!(server.connections(), 3);
}

#[test]
fn unix_sockets_work_like_tcp() {
    let path = std::env::temp_dir().join(format!("fairlead-load-{}.sock", std::process::id()));
    let server = Server::start_unix(&path, |peer| loop {
        let target = peer.request()?.head.split(' ').nth(1).map(str::to_owned);
        assert_eq!(target.as_deref(), Some("/hello"));
        peer.send(OK)?;
    });
    // More connections than the listener's queue holds: the tool tries the rejected ones again.
    let outcome = bench(&[&server.url, "--path", "/hello", "-c", "50", "-n", "500", "--json"]);
    std::fs::remove_file(&path).expect("still there");
    assert_eq!(
        (outcome.status, outcome.json()["requests"]["answered"].as_u64()),
        (0, Some(500)),
        "{outcome:?}"
    );
}

#[test]
fn a_mix_asks_for_its_lines_as_often_as_they_weigh() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    let server = Server::start(move |peer| loop {
        let request = peer.request()?;
        let first_line = request.head.lines().next().unwrap_or_default().to_owned();
        requests.lock().expect("unpoisoned").push((first_line, request.body));
        peer.send(OK)?;
    });
    let file = std::env::temp_dir().join(format!("fairlead-load-mix-{}", std::process::id()));
    std::fs::write(
        &file,
        "4 page GET /notes\n5 page GET /notes\n1 create POST /notes title=a b\n",
    )
    .expect("writable");
    let report = measure(
        0,
        &[&server.url, "-n", "2000", "-c", "3", "--mix", &file.to_string_lossy()],
    );
    std::fs::remove_file(&file).expect("still there");

    let seen = seen.lock().expect("unpoisoned");
    let often = |line: &str, body: &[u8]| seen.iter().filter(|seen| seen.0 == line && seen.1 == body).count();
    let (index, create) = (
        often("GET /notes HTTP/1.1", b""),
        often("POST /notes HTTP/1.1", b"title=a b"),
    );
    assert_eq!(index + create, 2000);
    assert!((120..=280).contains(&create), "{create}");
    let kinds = report["mix"].as_array().expect("a list");
    let answered = |kind: usize| (&kinds[kind]["name"], kinds[kind]["answered"].as_u64());
    assert_eq!(answered(0), (&"page".into(), Some(index as u64)));
    assert_eq!(answered(1), (&"create".into(), Some(create as u64)));
    assert!(
        kinds.iter().all(|kind| kind["latency_ms"]["p99"].as_f64() > Some(0.0)),
        "{report}"
    );
}
