//! WebSocket echoes, and servers that echo wrongly.

use crate::frames::{self, accept, accept_with, close, field, frame, message, whole, BINARY, CLOSE, PING, TEXT};
use crate::support::{bench, measure, Peer, Server, PATIENT};
use serde_json::{json, Value};
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A WebSocket server that responds to each message with the result of `answer`.
fn answering(answer: impl Fn(&mut Peer, u8, &[u8]) -> io::Result<()> + Send + Sync + 'static) -> Server {
    websocket(move |peer| {
        accept(peer)?;
        loop {
            let message = message(peer)?;
            answer(peer, message.opcode(), &message.payload)?;
        }
    })
}

fn websocket(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Server {
    let mut server = Server::start(serve);
    server.url = server.url.replace("http://", "ws://");
    server
}

fn echoing() -> Server {
    answering(|peer, opcode, payload| peer.send(&whole(opcode, payload)))
}

/// Errors that occurred, by kind.
fn errors(report: &Value) -> Vec<(&str, u64)> {
    let kinds = report["errors"].as_object().expect("an object").iter();
    kinds
        .map(|(kind, count)| (kind.as_str(), count.as_u64().expect("a number")))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[test]
fn echoes_are_counted_for_every_connection() {
    let server = echoing();
    let report = measure(0, &[&server.url, "-n", "200", "-c", "4"]);
    assert_eq!(
        (&report["requests"]["answered"], errors(&report)),
        (&json!(200), vec![])
    );
    assert_eq!(
        report["sockets"],
        json!({ "asked": 4, "opened": 4, "subscribed": 4, "left": 4 })
    );
    let connections = report["connections"].as_array().expect("a list");
    let sum: u64 = connections.iter().filter_map(|one| one["answered"].as_u64()).sum();
    assert_eq!((connections.len(), sum, server.connections()), (4, 200, 4));
    assert!(report["latency_ms"]["raw"]["p50"].as_f64() > Some(0.0), "{report}");
    assert_eq!(report["bytes"]["read"], 200 * 66);
}

#[test]
fn messages_have_the_size_and_the_type_asked_for() {
    for (option, opcode, size) in [
        ("--text", TEXT, 1),
        ("--binary", BINARY, 300),
        ("--binary", BINARY, 70_000),
    ] {
        let server = answering(move |peer, found, payload| {
            assert_eq!((found, payload.len()), (opcode, size));
            peer.send(&whole(opcode, payload))
        });
        let report = measure(
            0,
            &[&server.url, "-n", "6", "-c", "2", option, "--size", &size.to_string()],
        );
        assert_eq!(report["requests"]["answered"], 6);
    }
}

#[test]
fn an_echo_may_come_in_parts_with_pings_between_them() {
    let server = answering(|peer, opcode, payload| {
        let (start, rest) = payload.split_at(payload.len() / 2);
        let parts = [
            frame(opcode, start),
            frame(0, b""),
            whole(PING, b"!"),
            frame(0x80, rest),
        ]
        .concat();
        parts.iter().try_for_each(|byte| peer.send(&[*byte]))
    });
    let report = measure(0, &[&server.url, "-n", "8", "-c", "2", "--size", "200"]);
    assert_eq!(report["requests"]["answered"], 8);
}

#[test]
fn pings_are_answered_with_what_they_carried() {
    let server = websocket(|peer| {
        accept(peer)?;
        let first = message(peer)?;
        peer.send(&whole(PING, b"are you there?"))?;
        let pong = frames::read(peer)?;
        assert_eq!((pong.first, &pong.payload[..]), (0x8a, &b"are you there?"[..]));
        peer.send(&whole(TEXT, &first.payload))?;
        peer.hold()
    });
    let report = measure(0, &[&server.url, "-n", "1", "-c", "1"]);
    assert_eq!(report["requests"]["answered"], 1, "{report}");
}

#[test]
fn the_handshake_says_what_was_asked_for_and_every_connection_is_another() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let server = websocket(move |peer| {
        let request = accept_with(peer, "Sec-WebSocket-Protocol: chat\r\n")?;
        let field = |name| field(&request.head, name);
        assert!(request.head.starts_with("GET / HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(field("upgrade").as_deref(), Some("websocket"));
        assert_eq!(field("sec-websocket-version").as_deref(), Some("13"));
        assert_eq!(field("sec-websocket-protocol").as_deref(), Some("chat"));
        assert_eq!(field("origin").as_deref(), Some("http://here"));
        assert_eq!(field("sec-websocket-extensions"), None);
        let first = message(peer)?;
        assert_ne!(first.mask, [0; 4]);
        seen.lock()
            .expect("no panic")
            .push((field("sec-websocket-key"), first.mask));
        peer.send(&whole(TEXT, &first.payload))?;
        peer.hold()
    });
    let options = ["-n", "3", "-c", "3", "--protocol", "chat", "-H", "Origin: http://here"];
    let report = measure(0, &[&[server.url.as_str()][..], &options].concat());
    assert_eq!(report["requests"]["answered"], 3, "{report}");
    let mut keys = keys.lock().expect("no panic").clone();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
}

#[test]
fn compression_is_used_where_it_is_agreed_upon() {
    // A message that was deflated without context can be sent back unchanged.
    let server = websocket(|peer| {
        let request = accept_with(peer, "Sec-WebSocket-Extensions: permessage-deflate\r\n")?;
        let offered = field(&request.head, "sec-websocket-extensions");
        assert_eq!(offered.as_deref(), Some("permessage-deflate"));
        loop {
            let message = message(peer)?;
            assert_eq!(message.first, 0xc1);
            assert!(message.payload.len() < 200, "{}", message.payload.len());
            peer.send(&frame(0xc1, &message.payload))?;
        }
    });
    let report = measure(0, &[&server.url, "-n", "20", "-c", "2", "--size", "1000", "--deflate"]);
    assert_eq!(report["requests"]["answered"], 20);
    let report = measure(0, &[&echoing().url, "-n", "20", "--deflate"]);
    assert_eq!(report["requests"]["answered"], 20, "a server need not agree");
}

#[test]
fn a_refused_handshake_is_counted_with_its_status() {
    let server = websocket(|peer| {
        if peer.number > 0 {
            peer.request()?;
            return peer.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
        accept(peer)?;
        loop {
            let message = message(peer)?;
            peer.send(&whole(TEXT, &message.payload))?;
        }
    });
    let report = measure(2, &[&server.url, "-n", "9", "-c", "3"]);
    assert_eq!(errors(&report), [("refused", 2)]);
    assert_eq!(report["refused_with"], json!({ "403": 2 }));
    assert_eq!(
        (&report["requests"]["answered"], &report["sockets"]["opened"]),
        (&json!(9), &json!(1))
    );
}

#[test]
fn a_handshake_that_proves_nothing_is_not_believed() {
    let server = websocket(|peer| {
        peer.request()?;
        peer.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        )
    });
    let report = measure(2, &[&server.url, "-c", "2"]);
    assert_eq!(errors(&report), [("handshake", 2)]);
    assert_eq!(report["reasons"], json!({ "Sec-WebSocket-Accept is wrong": 2 }));
}

#[test]
fn a_close_is_counted_with_its_code_and_answered() {
    let server = answering(|peer, opcode, payload| {
        peer.send(&[whole(opcode, payload), close(1008)].concat())?;
        loop {
            let reply = frames::read(peer)?;
            if reply.opcode() == CLOSE {
                assert_eq!(reply.payload, 1008u16.to_be_bytes());
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    });
    let report = measure(2, &[&server.url, "-n", "9", "-c", "3"]);
    assert_eq!(errors(&report), [("closed", 3)]);
    assert_eq!(report["closed_with"], json!({ "1008": 3 }));
    let requests = &report["requests"];
    assert_eq!(
        (&requests["answered"], &requests["failed"], &requests["unsent"]),
        (&json!(3), &json!(3), &json!(3))
    );
}

#[test]
fn a_close_without_a_code_and_one_without_a_frame_are_told_apart() {
    let server = websocket(|peer| {
        accept(peer)?;
        message(peer)?;
        if peer.number == 0 {
            peer.send(&whole(CLOSE, b""))?;
        }
        Ok(())
    });
    let report = measure(2, &[&server.url, "-c", "3"]);
    assert_eq!(report["closed_with"], json!({ "1005": 1, "1006": 2 }));
}

#[test]
fn another_message_than_the_one_that_was_sent_is_a_wrong_echo() {
    type Answer = fn(u8, &[u8]) -> Vec<u8>;
    let wrong: [Answer; 4] = [
        |opcode, payload| whole(opcode, &payload[1..]),
        |opcode, payload| whole(opcode, &[&payload[..payload.len() - 1], b"!"].concat()),
        |_, payload| whole(BINARY, payload),
        |opcode, payload| [whole(opcode, payload), whole(opcode, payload)].concat(),
    ];
    for make in wrong {
        let server = answering(move |peer, opcode, payload| peer.send(&make(opcode, payload)));
        let report = measure(2, &[&server.url, "-n", "50", "-c", "2"]);
        assert_eq!(errors(&report), [("wrong_echo", 2)], "{report}");
    }
}

#[test]
fn the_echo_of_another_connection_is_wrong() {
    let last = Mutex::new(Vec::new());
    let server = answering(move |peer, opcode, payload| {
        let before = std::mem::replace(&mut *last.lock().expect("no panic"), payload.to_vec());
        peer.send(&whole(opcode, if before.is_empty() { payload } else { &before }))
    });
    let report = measure(2, &[&server.url, "-n", "2", "-c", "2"]);
    assert_eq!(errors(&report), [("wrong_echo", 1)], "{report}");
}

#[test]
fn what_breaks_the_rules_is_malformed() {
    let table: [(&[u8], &str); 4] = [
        (b"\x81\x81\x00\x00\x00\x00x", "a masked frame"),
        (b"\xc1\x01x", "an unexpected compressed frame"),
        (b"\x80\x01x", "a continuation frame without a message"),
        (b"\x88\x02\x03\xee", "a close code that must not be sent"),
    ];
    for (bytes, reason) in table {
        let server = answering(|peer, _, _| peer.send(bytes));
        let report = measure(2, &[&server.url, "-c", "2"]);
        assert_eq!(
            (errors(&report), &report["reasons"]),
            (vec![("malformed", 2)], &json!({ reason: 2 }))
        );
    }
}

#[test]
fn an_echo_that_does_not_come_times_out() {
    let server = answering(|peer, opcode, payload| {
        if peer.number == 0 {
            return peer.hold();
        }
        peer.send(&whole(opcode, payload))
    });
    let report = measure(2, &[&server.url, "-n", "5", "-c", "2", "--timeout", PATIENT]);
    assert_eq!(errors(&report), [("timeout", 1)]);
    assert_eq!(report["requests"]["failed"], 1);
    assert_eq!(report["fairness"]["never_served"], json!([1]), "{report}");
}

#[test]
fn a_handshake_without_answer_times_out() {
    let server = websocket(|peer| {
        peer.request()?;
        peer.hold()
    });
    let report = measure(2, &[&server.url, "-c", "2", "--timeout", "0.1"]);
    assert_eq!(
        (errors(&report), &report["sockets"]["opened"]),
        (vec![("timeout", 2)], &json!(0))
    );
}

#[test]
fn the_warm_up_is_not_counted() {
    let server = echoing();
    let report = measure(0, &[&server.url, "-n", "5", "-c", "1", "--warmup", "0.2"]);
    assert_eq!(report["requests"]["answered"], 5);
    assert!(report["seconds"].as_f64() < Some(0.2), "{report}");
}

#[test]
fn an_unreachable_server_is_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("ws://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let outcome = bench(&[&url]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    let expected = format!("fairlead-load: cannot connect to {url}: Connection refused\n");
    assert_eq!(outcome.stderr, expected);
}

#[test]
fn the_report_for_people_names_all_of_it() {
    let server = answering(|peer, opcode, payload| {
        if peer.number == 1 {
            return peer.send(&close(1011));
        }
        peer.send(&whole(opcode, payload))
    });
    let outcome = bench(&[&server.url, "-n", "20", "-c", "2"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    for part in [
        ": 2 WebSockets, text messages of 64 B with their echoes\n",
        "\nechoes     ",
        "\nsockets    2 of 2 opened, 1 open at the end\n",
        "\nerrors     closed by the server: 1\n",
        "\nclosed with 1011: 1\n",
        "\n99.9 %",
        "\nconnection 1: ",
        "\nfairness   ",
        "never served while others were: 1 of 2 connections (2)",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is missing in {}", outcome.stdout);
    }
}
