//! The server has used up its share of descriptors: connections are refused, uploads wait unread and in order, files
//! are temporarily unavailable, responses wait for their clients. All of this ends when descriptors are closed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use fairlead_engine::{Body, Config, Descriptors, Exchange, FilesConfig};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{config, eventually, path, reply, Client, Server};

/// Larger than a body that is kept in memory.
const BODY: usize = 40_000;

fn with(descriptors: &Arc<Descriptors>) -> Config {
    Config {
        descriptors: Arc::clone(descriptors),
        ..config()
    }
}

/// Notes the paths of its requests, and responds with the length of their bodies.
fn measure(order: &Arc<Mutex<Vec<String>>>) -> impl Fn(&mut Exchange<'_>) + Send + Sync + 'static {
    let order = Arc::clone(order);
    move |exchange| {
        order.lock().unwrap().push(path(exchange));
        let body = exchange.take_body();
        let kind = if matches!(body, Body::File(..)) {
            "file"
        } else {
            "memory"
        };
        reply(exchange, &format!("{kind} {}", body.len()));
    }
}

/// An upload without its last byte.
fn begin(server: &Server, path: &str, length: usize) -> Client {
    begin_with(server, path, length, length - 1)
}

fn begin_with(server: &Server, path: &str, length: usize, sent: usize) -> Client {
    let mut client = server.connect();
    client.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{}",
        "x".repeat(sent)
    ));
    client
}

/// Takes every descriptor that bodies may use.
fn hold(server: &Server, descriptors: &Descriptors, count: usize) -> Vec<Client> {
    let begin = |_| begin_with(server, "/held", 2 * BODY, BODY);
    let holders = (0..count).map(begin).collect();
    eventually("they hold all", || descriptors.used().1 == count);
    holders
}

fn is_waiting(server: &Server, count: usize) -> bool {
    server.totals.waiting() == count
}

#[test]
fn an_upload_waits_unread_until_another_one_is_over_and_they_go_on_in_order() {
    let descriptors = Descriptors::with(100, 1);
    let order = Arc::default();
    let server = Server::start(with(&descriptors), measure(&order));
    let mut holders = hold(&server, &descriptors, 1);
    let mut late: Vec<Client> = (0..5)
        .map(|number| {
            let client = begin(&server, &format!("/{number}"), 3 * BODY);
            eventually("it waits", || is_waiting(&server, number + 1));
            client
        })
        .collect();
    for client in &mut late {
        client.send("x");
    }
    assert_eq!(server.connect().get("/").text(), "memory 0", "others are served");
    for holder in &mut holders {
        let response = holder.send(&"x".repeat(BODY)).response();
        assert_eq!(response.text(), format!("file {}", 2 * BODY));
    }
    for client in &mut late {
        assert_eq!(client.response().text(), format!("file {}", 3 * BODY));
    }
    let order = order.lock().unwrap();
    let order: Vec<&str> = order
        .iter()
        .map(|path| &path[1..])
        .filter(|path| path.len() == 1)
        .collect();
    assert_eq!(order, ["0", "1", "2", "3", "4"]);
    eventually("every descriptor is back", || descriptors.used().1 == 0);
}

#[test]
fn an_upload_that_is_here_already_needs_no_descriptor() {
    let descriptors = Descriptors::with(100, 4);
    let server = Server::start(with(&descriptors), measure(&Arc::default()));
    let _holders = hold(&server, &descriptors, 3);
    let mut client = server.connect();
    client.send(&format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n\r\n{}",
        "x".repeat(5000)
    ));
    assert_eq!(client.response().text(), "memory 5000");
}

#[test]
fn who_gets_no_descriptor_in_time_is_refused_with_503_and_can_try_again() {
    let descriptors = Descriptors::with(100, 4);
    let config = Config {
        body_timeout: Duration::from_millis(600),
        ..with(&descriptors)
    };
    let server = Server::start(config, measure(&Arc::default()));
    let (end, ended) = mpsc::channel::<()>();
    let mut holders = hold(&server, &descriptors, 3);
    let mut late = begin(&server, "/late", BODY);
    eventually("it waits", || is_waiting(&server, 1));
    // Their clients continue, if slowly: the server must not refuse these.
    let keep_up = std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            for holder in &mut holders {
                holder.send("x");
            }
        }
    });
    let response = late.response();
    assert_eq!(response.status, 503);
    assert!(response.head.contains("retry-after: 1\r\n"), "{}", response.head);
    drop(end);
    keep_up.join().unwrap();
    eventually("none waits", || is_waiting(&server, 0) && descriptors.used().1 == 0);
    let mut again = begin(&server, "/again", BODY);
    assert_eq!(again.send("x").response().text(), format!("file {BODY}"));
}

#[test]
fn an_upload_whose_client_leaves_while_it_waits_gives_up_its_place() {
    let descriptors = Descriptors::with(100, 4);
    let server = Server::start(with(&descriptors), measure(&Arc::default()));
    let mut holders = hold(&server, &descriptors, 3);
    let first = begin(&server, "/first", BODY);
    eventually("it waits", || is_waiting(&server, 1));
    let mut second = begin(&server, "/second", BODY);
    eventually("it waits", || is_waiting(&server, 2));
    drop(first);
    holders.pop();
    assert_eq!(second.send("x").response().text(), format!("file {BODY}"));
    drop(holders);
    eventually("none waits", || is_waiting(&server, 0) && descriptors.used().1 == 0);
}

#[test]
fn a_connection_above_the_share_is_refused_with_503() {
    let descriptors = Descriptors::with(2, 4);
    let server = Server::start(with(&descriptors), measure(&Arc::default()));
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!((first.get("/").status, second.get("/").status), (200, 200));
    let response = server.connect().response();
    assert_eq!(response.status, 503);
    assert!(response.head.contains("retry-after: 1\r\n"), "{}", response.head);
    drop(second);
    eventually("there is a place again", || server.connect().get("/").status == 200);
    drop(first);
    eventually("every descriptor is back", || descriptors.used() == (0, 0));
}

#[test]
fn a_large_file_is_not_to_be_had_for_the_moment_and_a_small_one_is() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("large.bin"), vec![7; 300_000]).expect("a file");
    std::fs::write(folder.path().join("small.txt"), "small").expect("a file");
    let descriptors = Descriptors::with(100, 1);
    let config = Config {
        files: FilesConfig {
            public_dir: Some(folder.path().to_path_buf()),
            ..FilesConfig::default()
        },
        ..with(&descriptors)
    };
    let server = Server::start(config, measure(&Arc::default()));
    let holders = hold(&server, &descriptors, 1);
    let mut client = server.connect();
    let response = client.get("/large.bin");
    assert_eq!(response.status, 503);
    assert!(response.head.contains("retry-after: 1\r\n"), "{}", response.head);
    assert_eq!(client.get("/small.txt").text(), "small");
    drop(holders);
    eventually("the file can be had", || client.get("/large.bin").status == 200);
    eventually("it is closed", || descriptors.used() == (1, 0));
}

#[test]
fn an_answer_that_cannot_wait_on_disk_waits_in_memory_and_then_for_its_client() {
    let descriptors = Descriptors::with(100, 1);
    let bytes: Vec<u8> = (0..12_000_000u32).map(|number| (number / 1000) as u8).collect();
    let waits = Arc::new(AtomicBool::new(false));
    let (sent, is_waiting) = (bytes.clone(), Arc::clone(&waits));
    let config = Config {
        response_memory_total_bytes: 2 << 20,
        ..with(&descriptors)
    };
    let server = Server::start(config, move |exchange| {
        if path(exchange) != "/large" {
            return reply(exchange, "ok");
        }
        exchange.start(200);
        exchange.end_head(Some(sent.len() as u64));
        let mut rest = &sent[..];
        while let (Ok(taken), false) = (exchange.write(rest), rest.is_empty()) {
            rest = &rest[taken..];
            is_waiting.fetch_or(!rest.is_empty(), SeqCst);
            if !rest.is_empty() && exchange.wait_for_client().is_err() {
                return;
            }
        }
    });
    let _holders = hold(&server, &descriptors, 1);
    let mut client = server.connect();
    client.send("GET /large HTTP/1.0\r\nHost: test\r\n\r\n");
    eventually("the app waits", || waits.load(SeqCst));
    let response = client.rest();
    assert!(response.ends_with(&bytes), "{} bytes came", response.len());
    assert_eq!(descriptors.used().1, 1, "the upload's");
}
