//! Idle sockets, and the JSON documents of all kinds of runs.

use crate::frames::{self, accept, close, message, whole, Hub, PING, TEXT};
use crate::support::{bench, eventually, finish, measure, spawn, Peer, Server};
use serde_json::{json, Value};
use std::io::{self, BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn websocket(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Server {
    let mut server = Server::start(serve);
    server.url = server.url.replace("http://", "ws://");
    server
}

#[test]
fn sockets_are_held_for_as_long_as_asked_and_their_pings_answered() {
    let pongs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&pongs);
    let server = websocket(move |peer| {
        accept(peer)?;
        peer.send(&whole(PING, b""))?;
        while frames::read(peer)?.opcode() != 8 {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let report = measure(0, &[&server.url, "--idle", "-c", "150", "-d", "0.5"]);
    assert_eq!(
        report["sockets"],
        json!({ "asked": 150, "opened": 150, "subscribed": 150, "left": 150 })
    );
    assert!(report["seconds"].as_f64() >= Some(0.5), "{report}");
    assert_eq!((server.connections(), pongs.load(Ordering::SeqCst)), (150, 150));
}

#[test]
fn sockets_that_are_closed_meanwhile_are_counted() {
    let server = websocket(|peer| {
        accept(peer)?;
        match peer.number % 3 {
            0 => peer.send(&close(1001)),
            _ => peer.hold(),
        }
    });
    let report = measure(2, &[&server.url, "--idle", "-c", "9", "-d", "0.3"]);
    assert_eq!(
        (&report["closed_with"], &report["sockets"]["left"]),
        (&json!({ "1001": 3 }), &json!(6))
    );
}

#[test]
fn a_line_says_when_all_are_open() {
    let server = websocket(|peer| {
        accept(peer)?;
        peer.hold()
    });
    let mut child = spawn(&[&server.url, "--idle", "-c", "3", "-d", "0.5", "--json"]);
    let mut line = String::new();
    let stderr = child.stderr.take().expect("piped");
    let mut reader = BufReader::new(stderr);
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "holding 3 connections\n");
    assert!(child.try_wait().expect("our child").is_none(), "they are still held");
    child.stderr = Some(reader.into_inner());
    assert_eq!(finish(child).status, 0);
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let server = websocket(|peer| {
        accept(peer)?;
        peer.hold()
    });
    let command = format!(
        "ulimit -Sn 64; exec \"$0\" {} --idle -c 200 -d 0.1 -q --json",
        server.url
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &command, env!("CARGO_BIN_EXE_fairlead-load")])
        .output()
        .expect("a shell");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(report["sockets"]["left"], 200, "{report}");
}

#[test]
fn documents_have_the_documented_keys() {
    let hub = Hub::default();
    let server = websocket(move |peer| {
        hub.join(peer);
        accept(peer)?;
        loop {
            let message = message(peer)?;
            let bytes = whole(TEXT, &message.payload);
            // Echoes are recognized by their first byte.
            match message.payload.first() {
                Some(b'.') => peer.send(&bytes)?,
                _ => hub.publish(|_| bytes.clone()),
            }
        }
    });
    let common = "/version /settings/mode /settings/transport /settings/url /settings/connections /settings/deflate \
        /settings/protocol /settings/timeout /seconds /interrupted /sockets/asked /sockets/opened /sockets/subscribed \
        /sockets/left /errors/connect /errors/tls /errors/refused /errors/handshake /errors/read /errors/write /errors/timeout \
        /errors/malformed /errors/wrong_echo /errors/closed /refused_with /closed_with /reasons /bytes/read \
        /bytes/per_second";
    let latency =
        |key: &str| ["min", "mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "max"].map(|p| format!("{key}/{p}"));
    let echo = "/settings/size /settings/type /settings/duration /settings/requests /settings/warmup \
        /requests/answered /requests/per_second /requests/failed /requests/unanswered /requests/unsent \
        /requests/longest_wait /latency_ms/expected_interval /fairness/jain /fairness/least /fairness/most \
        /fairness/least_to_most /fairness/never_served /connections/0/connection /connections/0/answered \
        /connections/0/failed";
    let broadcast = "/settings/publish /settings/publishers /settings/messages /settings/size /settings/type \
        /settings/rate /gave_up /messages/published /messages/rejected /messages/unsent /deliveries/expected \
        /deliveries/received /deliveries/per_second /deliveries/lost /deliveries/duplicated /deliveries/out_of_order \
        /deliveries/truncated /deliveries/other /complete /connections/0/connection /connections/0/received \
        /connections/0/lost /connections/0/duplicated /connections/0/out_of_order";
    let idle = "/settings/duration /opening /messages";
    let raw_and_corrected = [latency("/latency_ms/raw"), latency("/latency_ms/corrected")].concat();
    let table: [(&[&str], &str, Vec<String>); 3] = [
        (&["-n", "20"], echo, raw_and_corrected),
        (
            &["--broadcast", "--messages", "5"],
            broadcast,
            latency("/latency_ms").to_vec(),
        ),
        (&["--idle", "-d", "0.1"], idle, Vec::new()),
    ];
    for (options, own, latencies) in table {
        let report = measure(0, &[&[server.url.as_str(), "-c", "1", "-q"], options].concat());
        let paths = common.split_whitespace().chain(own.split_whitespace());
        let paths: Vec<&str> = paths.chain(latencies.iter().map(String::as_str)).collect();
        for path in &paths {
            assert!(report.pointer(path).is_some(), "{path} is missing in {report}");
        }
        assert_eq!(leaves(&report), paths.len(), "nothing is undocumented: {report}");
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(members) if !members.is_empty() => members.values().map(leaves).sum(),
        Value::Array(items) if !items.is_empty() => items.iter().map(leaves).sum(),
        _ => 1,
    }
}

#[test]
fn an_interrupt_ends_any_run_and_prints_what_was_found() {
    let server = websocket(|peer| {
        accept(peer)?;
        peer.hold()
    });
    for mode in ["--idle", "--broadcast"] {
        let before = server.connections();
        let timeout: &[&str] = if mode == "--idle" {
            &["-d", "50"]
        } else {
            &["--timeout", "50"]
        };
        let child = spawn(&[&[server.url.as_str(), mode, "-c", "2", "--json"], timeout].concat());
        assert!(eventually(|| server.requests() >= before + 2), "the tool connects");
        let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a running child");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("our child");
        assert_eq!(finish(child).json()["interrupted"], true, "{mode}");
    }
}

#[test]
fn the_report_for_people_says_how_many_were_held() {
    let server = websocket(|peer| {
        accept(peer)?;
        peer.hold()
    });
    let outcome = bench(&[&server.url, "--idle", "-c", "2", "-d", "0.1"]);
    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, "holding 2 connections\n")
    );
    for part in [
        ": 2 WebSockets held\n",
        "\nheld for   0.1",
        "\nsockets    2 of 2 opened, 2 open at the end\n",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is missing in {}", outcome.stdout);
    }
}
