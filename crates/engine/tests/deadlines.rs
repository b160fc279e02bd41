//! Slow and greedy clients, timeouts, and the end: draining and stopping.

mod support;

use fairlead_engine::{Config, Exchange, FilesConfig};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{Read, Write};
use std::sync::{mpsc, Mutex};
use std::time::{Duration, Instant};
use support::*;

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn a_head_that_trickles_is_refused_when_its_time_is_over() {
    let server = Server::start(
        Config {
            head_timeout: SHORT,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let mut slow = server.connect();
    let began = Instant::now();
    // Every byte arrives within a timeout between bytes; the whole head does not.
    for byte in b"GET / HTTP/1.1\r\nHost: test\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
        if slow.stream.write_all(&[*byte]).is_err() || began.elapsed() > PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(slow.response().status, 408);
    assert!(slow.rest().is_empty());
}

#[test]
fn a_client_that_says_nothing_is_left_without_a_word() {
    let server = Server::start(
        Config {
            head_timeout: SHORT,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    assert!(server.connect().rest().is_empty());
}

#[test]
fn a_body_below_the_least_rate_is_refused() {
    let server = Server::start(
        Config {
            body_timeout: SHORT,
            body_min_rate: 1_000_000,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let mut slow = server.connect();
    slow.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nsome");
    assert_eq!(slow.response().status, 408);
}

#[test]
fn a_body_that_came_fast_and_then_trickles_is_refused() {
    let server = Server::start(
        Config {
            body_timeout: SHORT,
            body_min_rate: 1_000,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let framings = [
        "Content-Length: 1000000\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nf4240\r\n",
    ];
    for framing in framings {
        let mut client = server.connect();
        client.send(&format!("POST / HTTP/1.1\r\nHost: test\r\n{framing}"));
        // At the average rate these are worth six minutes.
        client.send(&"x".repeat(400_000));
        let began = Instant::now();
        while began.elapsed() < PATIENCE && client.stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(began.elapsed() < PATIENCE, "it may trickle for ever: {framing}");
        assert_eq!(client.response().status, 408);
    }
}

#[test]
fn a_body_that_is_steady_may_take_as_long_as_it_likes() {
    let server = Server::start(
        Config {
            body_timeout: SHORT * 2,
            body_min_rate: 1_000,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n\r\n");
    for _ in 0..50 {
        client.send(&"x".repeat(100));
        std::thread::sleep(Duration::from_millis(25));
    }
    assert_eq!(client.response().text(), "ok");
}

#[test]
fn an_idle_connection_is_closed_and_a_used_one_is_not() {
    let server = Server::start(
        Config {
            keep_alive_timeout: SHORT * 5,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let (mut idle, mut used) = (server.connect(), server.connect());
    assert_eq!(idle.get("/").status, 200);
    eventually("the idle one is closed", || {
        assert_eq!(used.get("/").status, 200);
        server.engine.stats().connections == 1
    });
    assert_eq!(used.get("/").status, 200);
    assert!(idle.is_closed());
}

#[test]
fn a_client_that_takes_nothing_holds_no_thread_and_is_cut_off() {
    let server = Server::start(
        Config {
            write_timeout: SHORT * 3,
            write_min_rate: 1 << 30,
            ..config()
        },
        |exchange| {
            if path(exchange) == "/large" {
                exchange.start(200);
                exchange.end_head(Some(50 << 20));
                let part = vec![b'x'; 1 << 20];
                for _ in 0..50 {
                    let mut rest = &part[..];
                    while let Ok(taken @ 1..) = exchange.write(rest) {
                        rest = &rest[taken..];
                    }
                }
            } else {
                reply(exchange, "ok");
            }
        },
    );
    let mut greedy = server.connect();
    greedy.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
    // The only thread is free although the client has not read a byte.
    assert_eq!(server.connect().get("/").text(), "ok");
    eventually("the greedy client is disconnected", || {
        server.engine.stats().connections <= 1
    });
}

#[test]
fn a_slow_but_steady_reader_gets_its_answer() {
    let timeout = Duration::from_millis(400);
    let server = Server::start(
        Config {
            write_timeout: timeout,
            ..config()
        },
        |exchange| {
            exchange.start(200);
            exchange.end_head(Some(32 << 20));
            let part = vec![b'x'; 1 << 20];
            for _ in 0..32 {
                let mut rest = &part[..];
                while let Ok(taken @ 1..) = exchange.write(rest) {
                    rest = &rest[taken..];
                }
            }
        },
    );
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    // For three timeouts the client takes so little at a time that the poller never finds the socket writable.
    let began = Instant::now();
    let mut taken = 0;
    let mut bytes = [0; 16_384];
    while began.elapsed() < timeout * 3 {
        taken += client.stream.read(&mut bytes).expect("the server continues sending");
        std::thread::sleep(Duration::from_millis(10));
    }
    while let Ok(count @ 1..) = client.stream.read(&mut bytes) {
        taken += count;
        if taken > 32 << 20 {
            break;
        }
    }
    assert!(taken > 32 << 20, "only {taken} bytes came");
}

/// Writes this many bytes, as far as the client takes them.
fn write_much(exchange: &mut Exchange<'_>, bytes: usize) {
    exchange.start(200);
    exchange.end_head(Some(bytes as u64));
    let part = vec![b'x'; 1 << 20];
    for _ in 0..bytes >> 20 {
        let mut rest = &part[..];
        while !rest.is_empty() {
            match exchange.write(rest) {
                Ok(taken) if taken < rest.len() && exchange.wait_for_client().is_err() => return,
                Ok(taken) => rest = &rest[taken..],
                Err(_) => return,
            }
        }
    }
}

/// Reads `bytes` fast and then slowly, until `is_over`.
fn haste_and_sip(stream: &mut std::net::TcpStream, mut bytes: usize, what: &str, is_over: impl Fn() -> bool) {
    // Otherwise the kernel may give a fast client a buffer so large that it holds the whole rest.
    set_socket_recv_buffer_size(&*stream, 256 * 1024).expect("a buffer");
    let mut space = [0; 16_384];
    while bytes > 0 {
        bytes -= stream.read(&mut space).expect("the server sends").min(bytes);
    }
    eventually(&format!("{what} is disconnected"), || {
        let _ = stream.read(&mut space);
        std::thread::sleep(Duration::from_millis(40));
        is_over()
    });
}

#[test]
fn a_client_that_took_much_and_then_sips_is_cut_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("large")).expect("a file");
    file.set_len(48 << 20).expect("room");
    // At the average rate, the bytes that were read fast are worth half a minute.
    let sluggish = Config {
        write_timeout: Duration::from_millis(400),
        write_min_rate: 1 << 20,
        files: FilesConfig {
            public_dir: Some(folder.path().into()),
            ..FilesConfig::default()
        },
        ..config()
    };
    let with_little_room = Config {
        response_disk_bytes: 0,
        ..sluggish.clone()
    };
    for (what, config, path) in [
        ("a response that waits", sluggish.clone(), "/app"),
        ("a file", sluggish, "/large"),
        ("a response for which the app waits", with_little_room, "/app"),
    ] {
        let server = Server::start(config, |exchange| write_much(exchange, 48 << 20));
        let mut client = server.connect();
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let engine = &server.engine;
        haste_and_sip(&mut client.stream, 32 << 20, what, || {
            engine.stats().connections == 0 && engine.stats().busy_threads == 0
        });
    }
}

#[test]
fn a_large_answer_arrives_whole_at_a_slow_reader() {
    let server = Server::start(config(), |exchange| {
        exchange.start(200);
        exchange.end_head(Some(8 << 20));
        for number in 0..8u8 {
            let part = vec![number; 1 << 20];
            let mut rest = &part[..];
            while let Ok(taken @ 1..) = exchange.write(rest) {
                rest = &rest[taken..];
            }
        }
    });
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the app has written all of it", || server.engine.stats().requests == 1);
    let response = client.response();
    let expected: Vec<u8> = (0..8u8).flat_map(|number| vec![number; 1 << 20]).collect();
    assert!(response.body == expected, "the bytes differ");
}

#[test]
fn above_the_limit_a_connection_is_refused_with_an_answer() {
    let server = Server::start(
        Config {
            max_connections: 2,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!((first.get("/").status, second.get("/").status), (200, 200));
    let mut third = server.connect();
    assert_eq!(third.response().status, 503);
    drop(second);
    eventually("there is a place again", || server.connect().get("/").status == 200);
    assert!(server.engine.stats().refused_connections >= 1);
}

#[test]
fn draining_answers_what_has_arrived_and_then_ends() {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let server = Server::start(config(), move |exchange| {
        if path(exchange) == "/hold" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        reply(exchange, "ok");
    });
    let (mut idle, mut held, mut queued) = (server.connect(), server.connect(), server.connect());
    assert_eq!(idle.get("/").status, 200);
    held.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it runs", || server.engine.stats().busy_threads == 1);
    queued.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it waits", || server.engine.stats().queued == 1);
    server.engine.drain();
    assert!(
        !server.engine.wait(Some(Duration::from_millis(50))),
        "a request is still running"
    );
    release.send(()).expect("it waits");
    for client in [&mut held, &mut queued] {
        let response = client.response();
        assert_eq!(response.status, 200);
        assert!(response.head.contains("connection: close\r\n"), "{}", response.head);
    }
    assert!(server.engine.wait(Some(PATIENCE)), "everything is answered");
    assert!(idle.is_closed());
}

#[test]
fn a_request_on_its_way_when_draining_begins_is_answered() {
    let server = Server::start(config(), |exchange| reply(exchange, "ok"));
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    server.engine.drain();
    assert_eq!(client.get("/").text(), "ok");
    assert!(server.engine.wait(Some(PATIENCE)));
}

#[test]
fn stopping_closes_everything_at_once() {
    let server = Server::start(config(), |exchange| reply(exchange, "ok"));
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    server.engine.stop();
    assert!(client.is_closed());
    assert!(server.engine.wait(Some(PATIENCE)));
}

#[test]
fn an_engine_that_leaves_accepts_and_ends_each_connection() {
    let server = Server::start(config(), |exchange| reply(exchange, "ok"));
    let mut kept = server.connect();
    assert!(!kept.get("/").head.contains("connection: close"));
    server.engine.leave();
    for client in [&mut kept, &mut server.connect()] {
        assert!(client.get("/").head.contains("connection: close\r\n"));
        assert!(client.is_closed());
    }
    server.engine.drain();
    assert!(server.engine.wait(Some(PATIENCE)));
}
