//! The dashboard: its files, its snapshot, and the stream of events.

use crate::support::{access, child, scoreboard, status, Builder, Client, Server};
use fairlead_engine::{RequestKind, ResponseKind, Scoreboard, Version};
use fairlead_supervisor::control::{Access, Kind};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

const VIEWERS: usize = 16;

/// A viewer that reads events.
struct Viewer(BufReader<Client>);

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Viewer {
    /// Opens the stream, and returns it with the lines of its head.
    fn open(server: &Server) -> (Viewer, Vec<String>) {
        let mut client = server.connect();
        client.write("GET /dashboard/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\n\r\n");
        let mut viewer = Viewer(BufReader::new(client));
        let head = std::iter::from_fn(|| Some(viewer.line()).filter(|line| !line.is_empty()));
        let head = head.collect();
        (viewer, head)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The text of the next event, as sent.
    fn text(&mut self, name: &str) -> String {
        assert_eq!(format!("event: {name}"), self.line());
        let data = self.line();
        assert_eq!("", self.line());
        data.strip_prefix("data: ").unwrap().to_owned()
    }

    fn event(&mut self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The next snapshot for which this is true; there is one each second.
    fn snapshot(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut snapshots = (0..10).map(|_| self.event("snapshot"));
        snapshots.find(wanted).expect("a snapshot in time")
    }
}

/// Everything that the server sends for a request until it closes the connection.
fn raw(server: &Server, target: &str) -> String {
    let mut text = String::new();
    server.send(target).0.read_to_string(&mut text).unwrap();
    text
}

fn busy(requests: u64) -> Arc<Scoreboard> {
    let scoreboard = scoreboard();
    let slot = scoreboard.slot(1);
    slot.beat();
    slot.requests.store(requests, Relaxed);
    slot.busy_threads.store(3, Relaxed);
    scoreboard
}

#[test]
fn the_files_need_no_token_and_allow_nothing_but_themselves() {
    let server = Builder::default().start();
    for (path, kind) in [
        ("/", "text/html"),
        ("/dashboard.css", "text/css"),
        ("/texts.js", "text/javascript"),
        ("/elements.js", "text/javascript"),
        ("/chart.js", "text/javascript"),
        ("/dashboard.js", "text/javascript"),
    ] {
        let text = raw(&server, path);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        for line in [
            "HTTP/1.1 200 OK",
            &format!("content-type: {kind}; charset=utf-8"),
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "x-frame-options: DENY",
        ] {
            assert!(head.lines().any(|own| own == line), "{path}: {line}\n{head}");
        }
        let policy = head
            .lines()
            .find_map(|line| line.strip_prefix("content-security-policy: "));
        let policy = policy.unwrap();
        assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"));
        let others = body.replace("http://www.w3.org/2000/svg", ""); // a name
        assert!(
            !others.contains("http://") && !others.contains("https://"),
            "{path} names another origin"
        );
        assert!(
            !body.contains(" style=") && !body.contains(" onclick="),
            "{path} has inline code"
        );
    }
}

#[test]
fn health_endpoints_have_no_dashboard() {
    let server = Builder {
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();

    assert_eq!([404, 404], ["/", "/events"].map(|path| server.get(path).status));
}

#[test]
fn events_and_snapshots_need_the_token() {
    let server = Builder::default().start();

    assert_eq!(
        [403, 403],
        ["/dashboard/events", "/snapshot"].map(|path| server.get(path).status)
    );
    assert_eq!(403, server.get("/dashboard/events?token=wrong").status);
    assert_eq!(200, server.command("snapshot").status);
}

#[test]
fn without_a_token_no_page_of_another_origin_reads_the_events() {
    let server = Builder {
        kind: Kind::Control(Access {
            token: None,
            ..access()
        }),
        ..Builder::default()
    }
    .start();
    for field in ["sec-fetch-site: cross-site", "host: evil.example"] {
        let mut client = server.connect();
        client.write(format!("GET /events HTTP/1.1\r\n{field}\r\n\r\n"));
        assert_eq!(403, client.answer().status, "{field}");
    }
}

#[test]
fn data_only_allows_the_dashboard_without_backtraces() {
    let server = Builder {
        kind: Kind::Control(Access {
            data_only: true,
            ..access()
        }),
        ..Builder::default()
    }
    .start();

    assert_eq!(
        [200, 404],
        ["snapshot", "backtraces"].map(|name| server.command(name).status)
    );
    assert_eq!("HTTP/1.1 200 OK", Viewer::open(&server).1[0]);
}

#[test]
fn a_viewer_gets_the_history_and_then_a_snapshot_each_second() {
    let scoreboard = busy(10);
    let server = Builder {
        scoreboard: Some(Arc::clone(&scoreboard)),
        ..Builder::default()
    }
    .start();
    let (mut viewer, head) = Viewer::open(&server);
    assert!(head.contains(&"content-type: text/event-stream".into()), "{head:?}");
    assert!(viewer.event("history").is_array());
    let first = viewer.snapshot(|snapshot| snapshot["point"].is_array());
    scoreboard.slot(1).requests.store(1_000, Relaxed);
    let next = viewer.snapshot(|snapshot| snapshot["processes"][1]["rate"].as_f64() > Some(0.0));

    let fields = ["index", "state", "busy_threads", "requests"].map(|key| first["processes"][1][key].clone());
    assert_eq!(serde_json::json!([1, "serving", 3, 10]), serde_json::json!(fields));
    assert!(next["now"].as_u64() > first["now"].as_u64());
}

#[test]
fn a_snapshot_has_latencies_and_memory() {
    let scoreboard = busy(0);
    let server = Builder {
        scoreboard: Some(Arc::clone(&scoreboard)),
        ..Builder::default()
    }
    .start();
    let (mut viewer, _) = Viewer::open(&server);
    viewer.event("history");
    viewer.snapshot(|snapshot| snapshot["point"].is_array());
    let kind = ResponseKind {
        request: RequestKind::new(b"GET", false),
        version: Version::Http11,
        status: 200,
    };
    scoreboard.count_response(1, kind, Duration::from_millis(60));
    let snapshot = viewer.snapshot(|snapshot| snapshot["point"][2].is_number());

    assert_eq!(snapshot["point"][2], snapshot["percentiles"][0]);
    let median = snapshot["percentiles"][0].as_f64().unwrap();
    assert!(
        (0.05..0.075).contains(&median),
        "{median} is not between the bounds around 60 ms"
    );
    let memory = [&snapshot["memory"], &snapshot["processes"][0]["memory"]].map(|bytes| bytes.as_u64());
    assert_eq!([Some(12), Some(7)], memory);
}

#[test]
fn a_page_that_opens_late_has_the_history() {
    let server = Builder::default().start();
    let (mut early, _) = Viewer::open(&server);
    early.event("history");
    let point = early.snapshot(|snapshot| snapshot["point"].is_array())["point"].clone();

    let history = Viewer::open(&server).0.event("history");
    assert!(history.as_array().unwrap().contains(&point), "{history} {point}");
}

#[test]
fn all_viewers_get_the_same_bytes() {
    let server = Builder::default().start();
    let mut viewers = [0; 3].map(|_| Viewer::open(&server).0);
    for viewer in &mut viewers {
        viewer.event("history");
        viewer.event("snapshot");
    }
    // A viewer may have opened between two looks: the seconds are compared.
    let texts = viewers.each_mut().map(|viewer| [0; 3].map(|_| viewer.text("snapshot")));
    let common = texts[0]
        .iter()
        .filter(|text| texts[1].contains(text) && texts[2].contains(text));

    assert!(common.count() > 0, "{texts:?}");
}

#[test]
fn the_number_of_viewers_is_limited_and_leaves_room_for_commands() {
    let server = Builder::default().start();
    let mut viewers: Vec<Viewer> = (0..VIEWERS).map(|_| Viewer::open(&server).0).collect();

    assert_eq!(503, server.get("/events?token=t").status);
    assert_eq!(200, server.command("status").status);
    drop(viewers.pop());
    let began = Instant::now();
    while Viewer::open(&server).1[0] != "HTTP/1.1 200 OK" {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the place of a viewer that has left is not free"
        );
    }
}

#[test]
fn a_viewer_that_does_not_read_is_dropped_and_delays_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_socket_send_buffer_size(&listener, 1024).unwrap(); // connections inherit it
    let address = listener.local_addr().unwrap();
    let mut builder = Builder::default();
    builder.limits.peer = Duration::from_millis(300);
    builder.status.children = (0..64).map(child).collect();
    let server = builder.start_on(listener.into(), address);
    let mut slow = server.connect();
    set_socket_recv_buffer_size(&slow.0, 1024).unwrap();
    slow.0.write_all(b"GET /events?token=t HTTP/1.1\r\n\r\n").unwrap();
    let (mut quick, _) = Viewer::open(&server);
    quick.event("history");
    for _ in 0..4 {
        quick.event("snapshot");
    }

    // It has been closed: there is an end behind the bytes that were on their way.
    let end = (&slow.0).take(100_000).read_to_end(&mut Vec::new());
    let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(
        end.as_ref().map_or_else(is_reset, |length| *length < 100_000),
        "{end:?}"
    );
}

#[test]
fn the_streams_end_with_the_server() {
    let mut server = Builder::default().start();
    let (mut viewer, _) = Viewer::open(&server);
    server.stop();
    let mut rest = String::new();
    viewer.0.read_to_string(&mut rest).unwrap();
    server.join();
}

#[test]
fn a_server_without_workers_has_one_process() {
    let server = Builder {
        status: status(0),
        ..Builder::default()
    }
    .start();
    let snapshot: Value = serde_json::from_str(&server.command("snapshot").body).unwrap();

    assert_eq!(Some(1), snapshot["processes"].as_array().map(Vec::len));
    assert_eq!(
        (Value::Null, 0.into()),
        (snapshot["waiting_room"].clone(), snapshot["workers"].clone())
    );
}

#[test]
fn one_worker_can_be_asked_for_its_backtraces_and_a_silent_one_is_described() {
    let mut builder = Builder::default();
    builder.limits.ruby = Duration::from_millis(100);
    builder.status.children[0].pid = Some(i32::try_from(std::process::id()).unwrap());
    let server = builder.start();
    let mut client = server.send(&format!("/backtraces?pid={}&token=t", std::process::id()));
    let (_, pipes) = server.question();
    assert_eq!(1, pipes.len());
    let answer: Value = serde_json::from_str(&client.answer().body).unwrap();

    assert_eq!(Value::Null, answer[0]["threads"]);
    assert!(answer[0]["native"].as_str().unwrap().contains("running"), "{answer}");
}
