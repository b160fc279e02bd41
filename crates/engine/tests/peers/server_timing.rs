//! The times of a request in the field Server-Timing, and the clients that get them.

use crate::support::http2::{get, Http2Client};
use crate::support::*;
use crate::{request, trusting};
use fairlead_engine::{App, Config, Exchange, FilesConfig, RemoteAddress, ServerTiming};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAME: &str = "server-timing";
const LOCK_WAIT: Duration = Duration::from_micros(2_500);
const WORK: Duration = Duration::from_millis(20);

/// An app in a language with a lock.
#[derive(Default)]
struct Locked {
    is_held: Arc<AtomicBool>,
    is_open: Arc<AtomicBool>,
}

impl App for Locked {
    fn call(&self, exchange: &mut Exchange<'_>) {
        match path(exchange).as_str() {
            "/hold" => {
                self.is_held.store(true, SeqCst);
                eventually("the end of the wait", || self.is_open.load(SeqCst));
            }
            "/work" => std::thread::sleep(WORK),
            "/panic" => panic!("as the test wants"),
            "/hints" => {
                exchange.start_early_hints();
                let _ = exchange.field(b"link", b"</a.css>");
                exchange.end_early_hints();
            }
            _ => {}
        }
        exchange.start(200);
        if path(exchange) == "/own" {
            for value in [&b"db;dur=5"[..], b"cache;desc=\"a, b\""] {
                let _ = exchange.field(b"Server-Timing", value);
            }
        }
        exchange.end_head(Some(0));
    }

    fn lock_wait(&self) -> Option<Duration> {
        Some(LOCK_WAIT)
    }
}

fn server(config: Config) -> Server {
    Server::run(&listen(), config, None, Arc::new(Locked::default()))
}

fn telling(server_timing: ServerTiming) -> Config {
    Config {
        server_timing,
        ..config()
    }
}

fn values(response: &Response) -> Vec<&str> {
    let lines = response.head.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter_map(|(name, value)| (name == NAME).then_some(value))
        .collect()
}

/// The three times in milliseconds.
fn times(value: &str) -> [f64; 3] {
    let entries: Vec<_> = value.split(", ").collect();
    let time = |name: &str, entry: &str| {
        let time = entry.strip_prefix(name)?.strip_prefix(";dur=")?;
        assert!(
            time.split_once('.').is_some_and(|(_, digits)| digits.len() <= 3),
            "{value}"
        );
        time.parse().ok()
    };
    let times: Option<Vec<f64>> = ["queue", "lock", "app"]
        .iter()
        .zip(&entries)
        .map(|(name, entry)| time(name, entry))
        .collect();
    times
        .and_then(|times| times.try_into().ok())
        .unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_response_has_the_times_of_its_request() {
    let server = server(telling(ServerTiming::Always));
    let mut client = server.connect();
    for _ in 0..2 {
        let began = Instant::now();
        let response = client.get("/work");
        let took = began.elapsed().as_secs_f64() * 1e3;
        let [queue, lock, app] = times(values(&response)[0]);
        assert!((lock - 2.5).abs() < 1e-9, "the language knows it");
        assert!(app + lock >= WORK.as_secs_f64() * 1e3);
        assert!(queue + lock + app <= took, "{queue} {lock} {app} of {took}");
    }
    let head = client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n").response_to("HEAD");
    times(values(&head)[0]);
}

#[test]
fn the_time_in_the_queue_counts() {
    let app = Locked::default();
    let (is_held, is_open) = (Arc::clone(&app.is_held), Arc::clone(&app.is_open));
    let server = Server::run(&listen(), telling(ServerTiming::Always), None, Arc::new(app));
    let (mut first, mut second) = (server.connect(), server.connect());
    first.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("a busy thread", || is_held.load(SeqCst));
    second.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("a request in the queue", || server.engine.stats().queued == 1);
    let since = Instant::now();
    eventually("a wait that can be measured", || since.elapsed() > WORK);
    let waited = since.elapsed().as_secs_f64() * 1e3;
    is_open.store(true, SeqCst);
    first.response();
    let [queue, ..] = times(values(&second.response())[0]);
    assert!(queue >= waited, "{queue} {waited}");
}

#[test]
fn the_entries_of_the_app_stay() {
    let server = server(telling(ServerTiming::Always));
    let response = server.connect().get("/own");
    let [merged, second] = values(&response)[..] else {
        panic!("{}", response.head)
    };
    let (own, app) = merged.rsplit_once(", ").expect("a list");
    times(own);
    assert_eq!([app, second], ["db;dur=5", "cache;desc=\"a, b\""]);
}

#[test]
fn over_http2_a_response_has_them_too() {
    let server = server(telling(ServerTiming::Always));
    let mut client = Http2Client::connect(server.address);
    let mut asked = client.ask(get("/own"), false);
    let head = client.head(&mut asked).expect("a response");
    let values: Vec<_> = head.headers().get_all(NAME).iter().collect();
    assert_eq!(values.len(), 2);
    let merged = values[0].to_str().expect("text");
    times(merged.strip_suffix(", db;dur=5").expect("the entry of the app"));
}

#[test]
fn an_error_of_the_app_has_them_and_hints_do_not() {
    let config = Config {
        early_hints: true,
        ..telling(ServerTiming::Always)
    };
    let server = server(config);
    let mut client = server.connect();
    let error = client.get("/panic");
    assert_eq!((error.status, values(&error).len()), (500, 1));
    client = server.connect();
    let [hints, response] = [client.get("/hints"), client.response()];
    assert_eq!((hints.status, values(&hints).len()), (103, 0));
    assert_eq!((response.status, values(&response).len()), (200, 1));
}

#[test]
fn responses_without_the_app_have_none() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file.txt"), "file").expect("a file");
    let config = Config {
        files: FilesConfig {
            public_dir: Some(folder.path().into()),
            ..FilesConfig::default()
        },
        supported_http_methods: vec!["GET".into()],
        ..telling(ServerTiming::Always)
    };
    let server = server(config);
    let mut client = server.connect();
    let file = client.get("/file.txt");
    assert_eq!((file.status, values(&file).len()), (200, 0));
    let refused = client.send("POST / HTTP/1.1\r\nHost: test\r\n\r\n").response();
    assert_eq!((refused.status, values(&refused).len()), (501, 0));
}

#[test]
fn without_the_option_nobody_gets_them() {
    let server = server(telling(ServerTiming::Never));
    let response = server.connect().get("/own");
    assert_eq!(values(&response), ["db;dur=5", "cache;desc=\"a, b\""]);
}

/// Asserts which fields of a request lead to the times.
fn assert_told(config: Config, cases: &[(&str, bool)]) {
    let server = server(config);
    let mut client = server.connect();
    for (fields, is_told) in cases {
        let response = client.send(&request(fields)).response();
        assert_eq!(values(&response).len(), usize::from(*is_told), "{fields}");
    }
}

#[test]
fn a_trusted_client_gets_them_and_a_stranger_behind_the_proxy_does_not() {
    let trusted = || Config {
        trusted_proxies: trusting(&["127.0.0.1", "10.0.0.0/8"]),
        ..telling(ServerTiming::Trusted)
    };
    assert_told(
        trusted(),
        &[
            ("", true),
            ("X-Forwarded-For: 10.1.2.3\r\n", true),
            ("X-Forwarded-For: 192.0.2.1\r\n", false),
            ("X-Forwarded-For: 10.1.2.3, 192.0.2.1\r\n", false),
            ("Forwarded: for=192.0.2.1\r\n", false),
            ("Forwarded: for=_hidden\r\n", false),
            ("X-Forwarded-For: unknown\r\n", false),
            ("", true),
        ],
    );
    let elsewhere = Config {
        trusted_proxies: trusting(&["10.0.0.0/8"]),
        ..trusted()
    };
    assert_told(elsewhere, &[("", false), ("X-Forwarded-For: 10.1.2.3\r\n", false)]);
    assert_told(telling(ServerTiming::Trusted), &[("", false)]);
    // The address says nothing about the client.
    let fixed = Config {
        remote_address: RemoteAddress::Fixed([127, 0, 0, 1].into()),
        ..trusted()
    };
    assert_told(fixed, &[("", false)]);
}
