//! Broadcasts, and servers that deliver messages wrongly.

use crate::frames::{self, accept, close, field, frame, message, whole, Hub, BINARY, PING, PONG, TEXT};
use crate::support::{bench, measure, Peer, Server, PATIENT};
use serde_json::{json, Value};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that sends each client the bytes that `made` makes of a message. Its arguments: member, number of earlier
/// messages, payload.
fn relaying(made: impl Fn(usize, usize, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let (hub, count) = (Hub::default(), AtomicUsize::new(0));
    websocket(move |peer| {
        hub.join(peer);
        accept(peer)?;
        loop {
            let message = message(peer)?;
            let before = count.fetch_add(1, Ordering::SeqCst);
            hub.publish(|member| made(member, before, &message.payload));
        }
    })
}

fn websocket(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Server {
    let mut server = Server::start(serve);
    server.url = server.url.replace("http://", "ws://");
    server
}

fn broadcast(status: i32, server: &Server, options: &[&str]) -> Value {
    measure(status, &[&[server.url.as_str(), "--broadcast"], options].concat())
}

/// Expected, received, lost, duplicated, out of order.
fn counts(report: &Value) -> [u64; 5] {
    ["expected", "received", "lost", "duplicated", "out_of_order"].map(|key| {
        report["deliveries"][key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {report}"))
    })
}

#[test]
fn every_message_reaches_every_subscriber_once() {
    let server = relaying(|_, _, payload| whole(TEXT, payload));
    let report = broadcast(0, &server, &["-c", "5", "--messages", "40", "--size", "90"]);
    assert_eq!(counts(&report), [200, 200, 0, 0, 0]);
    assert_eq!(
        (&report["complete"], &report["messages"]["published"]),
        (&json!(5), &json!(40))
    );
    assert_eq!(report["gave_up"], false);
    let latency = &report["latency_ms"];
    assert!(
        latency["min"].as_f64() > Some(0.0) && latency["p50"].as_f64() <= latency["max"].as_f64(),
        "{report}"
    );
    let per_second = 200.0 / report["seconds"].as_f64().expect("a number");
    let reported = report["deliveries"]["per_second"].as_f64().expect("a number");
    assert!((reported / per_second - 1.0).abs() < 1e-9, "{report}");
    assert_eq!(server.connections(), 6, "and a publisher");
}

#[test]
fn lost_messages_are_counted_where_they_are_missing() {
    let server = relaying(|member, before, payload| match (member, before % 10) {
        (0, 3) => Vec::new(),
        _ => whole(TEXT, payload),
    });
    let report = broadcast(2, &server, &["-c", "3", "--messages", "40", "--timeout", PATIENT]);
    assert_eq!(counts(&report), [120, 116, 4, 0, 0]);
    assert_eq!((&report["complete"], &report["gave_up"]), (&json!(2), &json!(true)));
    let lost: Vec<u64> = each(&report, "lost");
    assert_eq!(lost.iter().filter(|lost| **lost == 4).count(), 1, "{lost:?}");
    assert_eq!(lost.iter().sum::<u64>(), 4);
}

fn each(report: &Value, key: &str) -> Vec<u64> {
    let connections = report["connections"].as_array().expect("a list");
    connections.iter().filter_map(|one| one[key].as_u64()).collect()
}

#[test]
fn messages_that_come_twice_are_counted_even_at_the_end() {
    let server = relaying(|_, before, payload| {
        let copies = if before % 5 == 4 { 3 } else { 1 };
        whole(TEXT, payload).repeat(copies)
    });
    let report = broadcast(2, &server, &["-c", "2", "--messages", "20"]);
    assert_eq!(counts(&report), [40, 40, 0, 16, 0]);
    assert_eq!(each(&report, "duplicated"), [8, 8]);
}

#[test]
fn messages_behind_later_ones_are_out_of_order() {
    let held = Mutex::new(Vec::new());
    let server = relaying(move |member, before, payload| {
        if member > 0 {
            return whole(TEXT, payload);
        }
        // The first message of every four comes after the third.
        let mut held = held.lock().expect("no panic");
        match before % 4 {
            0 => {
                *held = whole(TEXT, payload);
                Vec::new()
            }
            2 => [whole(TEXT, payload), held.clone()].concat(),
            _ => whole(TEXT, payload),
        }
    });
    let report = broadcast(2, &server, &["-c", "2", "--messages", "40"]);
    assert_eq!(counts(&report), [80, 80, 0, 0, 10]);
    assert_eq!(report["complete"], 2);
}

#[test]
fn a_message_may_come_in_parts_or_many_at_once() {
    let parts = relaying(|_, _, payload| {
        let (start, rest) = payload.split_at(30);
        [frame(TEXT, start), frame(0x80, rest)].concat()
    });
    assert_eq!(
        counts(&broadcast(0, &parts, &["-c", "2", "--messages", "20"])),
        [40, 40, 0, 0, 0]
    );
    let gathered = Mutex::new(vec![Vec::new(); 3]);
    let at_once = relaying(move |member, before, payload| {
        let all = &mut gathered.lock().expect("no panic")[member];
        all.extend(whole(BINARY, payload));
        if before == 4_999 {
            std::mem::take(all)
        } else {
            Vec::new()
        }
    });
    let options = ["-c", "2", "--messages", "5000", "--binary", "--size", "3000"];
    assert_eq!(counts(&broadcast(0, &at_once, &options)), [10_000, 10_000, 0, 0, 0]);
}

#[test]
fn messages_cut_short_are_not_delivered() {
    let server = relaying(|_, before, payload| match before {
        2 => whole(TEXT, &payload[..payload.len() - 1]),
        _ => whole(TEXT, payload),
    });
    let report = broadcast(
        2,
        &server,
        &["-c", "2", "--messages", "5", "--size", "70", "--timeout", PATIENT],
    );
    assert_eq!(
        (counts(&report), &report["deliveries"]["truncated"]),
        ([10, 8, 2, 0, 0], &json!(2))
    );
}

#[test]
fn several_publishers_share_the_messages_and_have_an_order_each() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let publishers = Arc::clone(&seen);
    let server = relaying(move |member, _, payload| {
        if member == 0 {
            let text = String::from_utf8_lossy(payload);
            let publisher = text.split('.').nth(2).expect("a marker").to_owned();
            publishers.lock().expect("no panic").push(publisher);
        }
        whole(TEXT, payload)
    });
    let report = broadcast(0, &server, &["-c", "2", "--messages", "10", "--publishers", "3"]);
    assert_eq!(counts(&report), [20, 20, 0, 0, 0]);
    let mut seen = seen.lock().expect("no panic").clone();
    seen.sort();
    let of = |number: &str| seen.iter().filter(|publisher| publisher.as_str() == number).count();
    assert_eq!([of("00000000"), of("00000001"), of("00000002")], [4, 3, 3]);
}

#[test]
fn a_subscriber_that_is_closed_loses_the_rest() {
    let server = relaying(|member, before, payload| match (member, before) {
        (0, 4) => close(1013),
        _ => whole(TEXT, payload),
    });
    let report = broadcast(2, &server, &["-c", "3", "--messages", "10"]);
    assert_eq!(counts(&report), [30, 24, 6, 0, 0]);
    assert_eq!(
        (&report["closed_with"], &report["gave_up"]),
        (&json!({ "1013": 1 }), &json!(false))
    );
    assert_eq!(
        report["sockets"],
        json!({ "asked": 3, "opened": 3, "subscribed": 3, "left": 2 })
    );
}

#[test]
fn a_publisher_that_is_closed_leaves_messages_unsent() {
    let hub = Hub::default();
    let server = websocket(move |peer| {
        hub.join(peer);
        accept(peer)?;
        let message = message(peer)?;
        hub.publish(|_| whole(TEXT, &message.payload));
        peer.send(&close(1009))
    });
    let report = broadcast(2, &server, &["-c", "2", "--messages", "50", "--rate", "20"]);
    let messages = &report["messages"];
    let sum = messages["published"]
        .as_u64()
        .zip(messages["unsent"].as_u64())
        .map(|(a, b)| a + b);
    assert_eq!(
        (sum, &report["closed_with"]),
        (Some(50), &json!({ "1009": 1 })),
        "{report}"
    );
    assert!(messages["unsent"].as_u64() > Some(40), "{report}");
    assert_eq!(report["gave_up"], false, "nothing more can come");
}

#[test]
fn subscribers_that_were_refused_are_not_waited_for() {
    let hub = Hub::default();
    let server = websocket(move |peer| {
        if peer.number == 1 {
            peer.request()?;
            return peer.send(b"HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n");
        }
        hub.join(peer);
        accept(peer)?;
        loop {
            let message = message(peer)?;
            hub.publish(|_| whole(TEXT, &message.payload));
        }
    });
    let report = broadcast(2, &server, &["-c", "3", "--messages", "10"]);
    assert_eq!(
        (counts(&report), &report["refused_with"]),
        ([20, 20, 0, 0, 0], &json!({ "503": 1 }))
    );
}

#[test]
fn a_rate_spreads_the_messages_and_delays_show() {
    let delay = Duration::from_millis(60);
    let server = relaying(move |member, before, payload| {
        if member == 0 && before == 10 {
            std::thread::sleep(delay);
        }
        whole(TEXT, payload)
    });
    let report = broadcast(0, &server, &["-c", "2", "--messages", "21", "--rate", "100"]);
    assert_eq!(counts(&report), [42, 42, 0, 0, 0]);
    assert!(report["seconds"].as_f64() >= Some(0.2), "{report}");
    let latency = &report["latency_ms"];
    assert!(latency["max"].as_f64() >= Some(60.0), "{report}");
    assert!(latency["min"].as_f64() < Some(50.0), "{report}");
}

#[test]
fn a_server_may_want_a_command_and_wrap_what_it_sends() {
    // Like Action Cable.
    let hub = Hub::default();
    let server = websocket(move |peer| {
        let request = accept(peer)?;
        assert_eq!(field(&request.head, "sec-websocket-protocol"), None);
        peer.send(&whole(PING, b""))?;
        assert_eq!(frames::read(peer)?.opcode(), PONG, "nothing is said before the welcome");
        peer.send(&whole(TEXT, b"{\"type\":\"welcome\"}"))?;
        let hello = message(peer)?;
        assert_eq!(hello.payload, b"{\"command\":\"subscribe\"}");
        // Subscribed but not confirmed yet: a message that comes now precedes the measurement.
        hub.join(peer);
        peer.send(
            &[
                whole(TEXT, b"{\"type\":\"ping\"}"),
                whole(TEXT, b"{\"type\":\"confirm\"}"),
            ]
            .concat(),
        )?;
        loop {
            let message = message(peer)?;
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            let inner = text
                .strip_prefix("{\"data\":\"")
                .and_then(|text| text.strip_suffix("\"}"));
            let inner = inner.expect("the template").to_owned();
            assert_eq!(inner.len(), 90);
            let wrapped = format!("{{\"identifier\":\"x\",\"message\":\"{inner}\"}}");
            let ping = whole(TEXT, b"{\"type\":\"ping\"}");
            hub.publish(|_| [whole(TEXT, wrapped.as_bytes()), ping.clone()].concat());
        }
    });
    let options = ["-c", "3", "--messages", "10", "--size", "90"];
    let wrapping = [
        "--welcome",
        "welcome",
        "--hello",
        "{\"command\":\"subscribe\"}",
        "--ready",
        "confirm",
        "--template",
        "{\"data\":\"%s\"}",
    ];
    let report = broadcast(0, &server, &[&options[..], &wrapping].concat());
    assert_eq!(
        (counts(&report), &report["deliveries"]["other"]),
        ([30, 30, 0, 0, 0], &json!(30))
    );
}

#[test]
fn a_connection_that_never_becomes_ready_is_not_subscribed() {
    let server = relaying(|_, _, payload| whole(TEXT, payload));
    let report = broadcast(2, &server, &["-c", "2", "--ready", "welcome", "--timeout", PATIENT]);
    assert_eq!(
        report["sockets"],
        json!({ "asked": 2, "opened": 2, "subscribed": 0, "left": 0 })
    );
    assert_eq!(
        (&report["errors"]["timeout"], &report["messages"]["published"]),
        (&json!(3), &json!(0))
    );
}

#[test]
fn messages_of_another_run_are_not_mistaken_for_ours() {
    let earlier = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&earlier);
    let server = relaying(move |_, _, payload| {
        let mut kept = kept.lock().expect("no panic");
        let first = if kept.is_empty() {
            payload.to_vec()
        } else {
            kept.clone()
        };
        *kept = first.clone();
        [whole(TEXT, &first), whole(TEXT, payload)].concat()
    });
    let first = broadcast(2, &server, &["-c", "1", "--messages", "1"]);
    assert_eq!(counts(&first), [1, 1, 0, 1, 0]);
    let second = broadcast(0, &server, &["-c", "1", "--messages", "5"]);
    assert_eq!(
        (counts(&second), &second["deliveries"]["other"]),
        ([5, 5, 0, 0, 0], &json!(5))
    );
}

#[test]
fn the_report_for_people_names_all_of_it() {
    let server = relaying(|member, before, payload| match (member, before) {
        (0, 3) => Vec::new(),
        (1, 3) => whole(TEXT, payload).repeat(2),
        _ => whole(TEXT, payload),
    });
    let options = ["--broadcast", "-c", "2", "--messages", "10", "--timeout", PATIENT];
    let outcome = bench(&[&[server.url.as_str()], &options[..]].concat());
    assert_eq!(outcome.status, 2, "{outcome:?}");
    for part in [
        ": 2 WebSockets subscribed, 1 publisher, 10 messages of 64 B\n",
        "\npublished  10 of 10\n",
        "\ndelivered  19 of 20 in ",
        "\ncomplete   1 of 2 connections\n",
        "\nmessages   lost: 1, duplicated: 1\n",
        "\ngave up: no more messages came\n",
        "\nerrors     none\n",
        "\nlatency, from when it was sent\n",
        "\n99.9 %",
        "9 received, lost: 1\n",
        "10 received, duplicated: 1\n",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is missing in {}", outcome.stdout);
    }
}
