//! Clients that send frames which cost the server more than them (RFC 9113 §10.5). Each gets ENHANCE_YOUR_CALM, is
//! counted by the kind of attack, and is disconnected; other clients are served meanwhile.

use crate::support::frames::*;
use crate::support::http2::Http2Client;
use crate::support::*;
use fairlead_engine::{Config, Stats};
use std::io::Write;
use std::time::{Duration, Instant};

fn server() -> Server {
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        ..config()
    };
    Server::start(config, |exchange| {
        let text = path(exchange);
        reply(exchange, &text);
    })
}

/// Sends the result of `next` again and again. The server must send GOAWAY with `code` and count the client.
fn is_ended(what: &str, code: u32, counter: fn(&Stats) -> u64, next: impl FnMut(usize) -> Vec<u8>) {
    let server = server();
    let mut good = Http2Client::connect(server.address);
    assert_eq!(good.get("/before").text(), "/before", "{what}");
    let mut attacker = FrameClient::connect(server.address);
    let sent = attacker.flood(PATIENCE, true, next);
    assert_eq!(attacker.goaway(), Some(code), "{what}, after {sent}");
    eventually(what, || counter(&server.engine.stats()) == 1);
    assert_eq!(good.get("/after").text(), "/after", "{what}");
    assert_eq!(server.connect().get("/http1").text(), "/http1", "{what}");
    drop((good, attacker));
    eventually("all are gone", || server.engine.stats().connections == 0);
    let stats = server.engine.stats();
    let all = stats.http2_reset_floods
        + stats.http2_provoked_reset_floods
        + stats.http2_settings_floods
        + stats.http2_ping_floods
        + stats.http2_priority_floods
        + stats.http2_window_floods
        + stats.http2_continuation_floods
        + stats.http2_empty_data_floods
        + stats.http2_violations
        + stats.http2_slow;
    assert_eq!(all, 1, "{what} is counted once");
}

/// The name of an attack, and a function that makes its frames from a number.
type Way<N> = (&'static str, fn(N) -> Vec<u8>);

/// The number of the client's stream.
fn stream(count: usize) -> u32 {
    2 * count as u32 + 1
}

#[test]
fn streams_that_are_reset_again_and_again() {
    is_ended(
        "a reset each",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_reset_floods,
        |count| [get(stream(count), "/"), reset(stream(count), CANCEL)].concat(),
    );
    // In one piece: all of them are reset before the server handles any.
    is_ended(
        "many at once",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_reset_floods,
        |count| {
            let all = (count * 500..(count + 1) * 500).map(stream);
            all.flat_map(|stream| [get(stream, "/"), reset(stream, CANCEL)].concat())
                .collect()
        },
    );
}

#[test]
fn a_server_that_is_made_to_reset_streams() {
    let ways: [Way<u32>; 4] = [
        ("a window that overflows", |stream| window_update(stream, 0x7fff_ffff)),
        ("a stream that depends on itself", |stream| {
            frame(HEADERS, END_HEADERS | END_STREAM | 0x20, stream, &{
                let mut payload = stream.to_be_bytes().to_vec();
                payload.push(0);
                payload.extend_from_slice(&block("GET", "/"));
                payload
            })
        }),
        ("more content than announced", |stream| {
            frame(DATA, END_STREAM, stream, b"too much")
        }),
        ("less content than announced", |stream| {
            frame(DATA, END_STREAM, stream, b"")
        }),
    ];
    for (what, way) in ways {
        is_ended(
            what,
            ENHANCE_YOUR_CALM,
            |stats| stats.http2_provoked_reset_floods,
            |count| {
                let stream = stream(count);
                let fields = [block("POST", "/"), field("content-length", "4")].concat();
                match what {
                    "a stream that depends on itself" => way(stream),
                    _ => [frame(HEADERS, END_HEADERS, stream, &fields), way(stream)].concat(),
                }
            },
        );
    }
}

#[test]
fn requests_that_are_malformed_again_and_again() {
    let fields = [
        field("connection", "close"),
        field(":path", "/again"),
        field("te", "gzip"),
    ];
    for wrong in fields {
        let what = String::from_utf8_lossy(&wrong).into_owned();
        is_ended(
            &what,
            ENHANCE_YOUR_CALM,
            |stats| stats.http2_provoked_reset_floods,
            |count| {
                let block = [block("GET", "/"), wrong.clone()].concat();
                frame(HEADERS, END_HEADERS | END_STREAM, stream(count), &block)
            },
        );
    }
}

#[test]
fn frames_that_cost_an_answer_or_nothing_but_time() {
    is_ended(
        "SETTINGS",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_settings_floods,
        |_| setting(3, 7),
    );
    is_ended(
        "PING",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_ping_floods,
        |_| frame(PING, 0, 0, &[7; 8]),
    );
    for kind in [PRIORITY, 16, 200] {
        is_ended(
            "PRIORITY",
            ENHANCE_YOUR_CALM,
            |stats| stats.http2_priority_floods,
            |_| frame(kind, 0, 3, &[0, 0, 0, 0, 1]),
        );
    }
    is_ended(
        "WINDOW_UPDATE",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_window_floods,
        |_| window_update(0, 1),
    );
    is_ended(
        "PING acknowledgement without a PING",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_ping_floods,
        |_| frame(PING, 1, 0, &[7; 8]),
    );
    is_ended(
        "GOAWAY",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_priority_floods,
        |count| match count {
            // A connection without a request would just end.
            0 => post(1, "/"),
            _ => frame(GOAWAY, 0, 0, &[0; 8]),
        },
    );
}

#[test]
fn a_response_that_is_taken_a_few_bytes_at_a_time() {
    // Each turn has fewer updates than a frame of content could earn, but more in a second than the server allows on a slow machine.
    for (bytes, updates) in [(1, 9), (50, 5)] {
        let server = Server::start(config(), |exchange| reply(exchange, &"x".repeat(1_000_000)));
        let mut attacker = FrameClient::connect(server.address);
        attacker.send(&[setting(INITIAL_WINDOW, 0), get(1, "/")].concat());
        attacker.find_of(HEADERS, 1);
        // Each turn makes the server send a small frame. This must not earn the next updates.
        let until = Instant::now() + PATIENCE;
        let end = loop {
            assert!(Instant::now() < until, "it continues with {bytes}");
            // The server may have closed already.
            let _ = attacker.socket.write_all(&window_update(1, bytes).repeat(updates));
            let frame = attacker.find(|frame| matches!(frame.kind, DATA | GOAWAY));
            if frame.kind == GOAWAY {
                break frame;
            }
        };
        assert_eq!(end.code(), ENHANCE_YOUR_CALM, "{bytes}");
        eventually("it is counted", || server.engine.stats().http2_window_floods == 1);
    }
}

#[test]
fn content_without_content() {
    is_ended(
        "empty DATA",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_empty_data_floods,
        |count| match count {
            0 => post(1, "/"),
            _ => frame(DATA, 0, 1, b""),
        },
    );
    // Padding only (RFC 9113 §6.1).
    is_ended(
        "padded DATA",
        ENHANCE_YOUR_CALM,
        |stats| stats.http2_empty_data_floods,
        |count| match count {
            0 => post(1, "/"),
            _ => frame(DATA, 8, 1, &[4, 0, 0, 0, 0]),
        },
    );
}

#[test]
fn blocks_of_fields_that_never_end() {
    for piece in [&b""[..], &field("x", "y"), &field("x", &"y".repeat(4_000))] {
        is_ended(
            "CONTINUATION",
            ENHANCE_YOUR_CALM,
            |stats| stats.http2_continuation_floods,
            |count| match count {
                0 => frame(HEADERS, END_STREAM, 1, &block("GET", "/")),
                _ => frame(CONTINUATION, 0, 1, piece),
            },
        );
    }
}

#[test]
fn a_bomb_of_fields_is_refused_or_ends_the_session() {
    // One entry of 4,000 bytes in the table, and then one byte for each reference to it.
    let server = server();
    let mut attacker = FrameClient::connect(server.address);
    let mut entry = field("x", &"y".repeat(3_900));
    entry[0] = 0x40;
    let first = [block("GET", "/"), entry].concat();
    attacker.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &first));
    attacker.find_of(HEADERS, 1);
    let bomb = [block("GET", "/"), vec![0x80 | 62; 16_000]].concat();
    attacker.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &bomb));
    assert_eq!(attacker.goaway(), Some(ENHANCE_YOUR_CALM));
    eventually("it is counted", || server.engine.stats().http2_violations == 1);
    // If the head is only a little too large, its stream gets a response, and the other streams continue.
    let mut client = FrameClient::connect(server.address);
    let much = (0..3).flat_map(|_| field("x", &"y".repeat(5_000)));
    let much: Vec<u8> = block("GET", "/").into_iter().chain(much).collect();
    client.send(&[frame(HEADERS, END_HEADERS | END_STREAM, 1, &much), get(3, "/next")].concat());
    let mut much = frame(HEADERS, END_STREAM, 5, &much);
    much.extend(frame(CONTINUATION, END_HEADERS, 5, &field("x", &"y".repeat(5_000))));
    client.send(&[much, get(7, "/next")].concat());
    let heads = (0..4).map(|_| client.find(|frame| frame.kind == HEADERS));
    // Indexed fields of the static table: `:status: 200`, and `:status` with another value (RFC 7541, appendix A).
    let mut heads: Vec<_> = heads.map(|head| (head.stream, head.payload[0])).collect();
    heads.sort_unstable();
    assert_eq!(heads, [(1, 0x88), (3, 0x88), (5, 0x48), (7, 0x88)]);
}

#[test]
fn a_client_that_makes_the_server_send_and_never_reads() {
    let ways: [Way<usize>; 4] = [
        ("PING", |count| match count % 2 {
            0 => get(stream(count / 2), "/large"),
            _ => frame(PING, 0, 0, &[7; 8]),
        }),
        ("RST_STREAM", |count| {
            [post(stream(count), "/"), window_update(stream(count), 0x7fff_ffff)].concat()
        }),
        ("responses", |count| get(stream(count), "/large")),
        ("refusals", |count| {
            frame(HEADERS, END_HEADERS | END_STREAM, stream(count), &block("GET", "/x"))
        }),
    ];
    for (what, way) in ways {
        let config = Config {
            write_timeout: Duration::from_millis(500),
            ..config()
        };
        let server = Server::start(config, |exchange| {
            exchange.start(200);
            exchange.end_head(Some(100_000));
            let _ = exchange.write(&[b'x'; 100_000]);
        });
        let mut attacker = FrameClient::connect(server.address);
        attacker.send(&[setting(INITIAL_WINDOW, 1 << 30), window_update(0, 1 << 30)].concat());
        attacker.flood(PATIENCE, false, way);
        eventually(what, || server.engine.stats().connections == 0);
        let stats = server.engine.stats();
        let ends = stats.http2_slow + stats.http2_provoked_reset_floods + stats.http2_ping_floods;
        assert_eq!(ends, 1, "{what}: {stats:?}");
        assert_eq!(server.connect().get("/").status, 200, "{what}");
    }
}

#[test]
fn half_a_preface_and_garbage_after_it() {
    let config = Config {
        head_timeout: Duration::from_millis(300),
        ..config()
    };
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    for length in [1, 10, 23] {
        let mut client = FrameClient::silent(server.address);
        client.send(&fairlead_wire::http2::PREFACE[..length]);
        // The connection is not known as HTTP/2 yet, so the response is HTTP/1.
        client.socket.set_nonblocking(false).expect("a socket");
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut client.socket, &mut answer).expect("an end");
        assert!(answer.starts_with(b"HTTP/1.1 408 "), "{length}");
    }
    // The preface without SETTINGS, and a block that stalls.
    let stalls = [
        [
            frame(SETTINGS, 0, 0, &[]),
            frame(HEADERS, END_STREAM, 1, &block("GET", "/")),
        ]
        .concat(),
        [frame(SETTINGS, 0, 0, &[]), get(1, "/")[..12].to_vec()].concat(),
    ];
    for (count, stall) in stalls.iter().enumerate() {
        let mut client = FrameClient::silent(server.address);
        client.send(&[&fairlead_wire::http2::PREFACE[..], stall].concat());
        let code = client.goaway();
        assert_eq!(code, Some(ENHANCE_YOUR_CALM), "{count}");
        eventually("it is counted", || server.engine.stats().http2_slow == count as u64 + 1);
    }
    let mut garbage = FrameClient::connect(server.address);
    garbage.send(&frame(DATA, 0, 0, b"on the connection"));
    assert_eq!(garbage.goaway(), Some(PROTOCOL_ERROR));
    eventually("it is counted", || server.engine.stats().http2_violations == 1);
    eventually("all are gone", || server.engine.stats().connections == 0);
}
