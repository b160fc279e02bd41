//! Handshakes, and the ends of connections with TLS.

use crate::connect;
use crate::support::tls::{client, stream};
use crate::support::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn server() -> Server {
    Server::start(config(), |exchange| {
        let session = exchange.session().map(|session| session.version.clone());
        let text = format!("{} {}", exchange.is_secure(), session.unwrap_or_default());
        reply(exchange, &text);
    })
}

#[test]
fn both_versions_are_spoken_and_sessions_resumed() {
    let server = server();
    for (version, name) in [
        (&rustls::version::TLS12, "TLSv1.2"),
        (&rustls::version::TLS13, "TLSv1.3"),
    ] {
        let config = client(&[version]);
        for _ in 0..2 {
            let mut client = Client::over(stream(server.address, &config));
            assert_eq!(client.get("/").text(), format!("true {name}"));
        }
    }
    let stats = server.engine.stats();
    assert_eq!((stats.handshakes, stats.failed_handshakes), (4, 0));
}

#[test]
fn a_client_that_agrees_on_http1_cannot_begin_with_http2() {
    let server = server();
    let begin = |protocols: &[&[u8]]| {
        let mut config = (*client(&[&rustls::version::TLS13])).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let mut tls = stream(server.address, &std::sync::Arc::new(config));
        tls.write_all(fairlead_wire::http2::PREFACE).expect("the server reads");
        tls.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).expect("the server reads");
        let mut answer = [0; 9];
        tls.read_exact(&mut answer).expect("an answer");
        answer
    };
    assert_eq!(&begin(&[b"http/1.1"]), b"HTTP/1.1 ");
    // A client without ALPN may begin with HTTP/2: SETTINGS come back.
    assert_eq!(begin(&[])[3], 4);
    assert_eq!(server.engine.stats().http2_connections, 1);
}

#[test]
fn a_handshake_may_arrive_byte_by_byte() {
    let server = server();
    let mut tls = stream(server.address, &client(&[&rustls::version::TLS13]));
    while tls.conn.is_handshaking() {
        let mut flight = Vec::new();
        while tls.conn.wants_write() {
            tls.conn.write_tls(&mut flight).expect("memory");
        }
        for byte in flight {
            tls.sock.write_all(&[byte]).expect("the server reads");
        }
        if tls.conn.is_handshaking() {
            tls.conn.read_tls(&mut tls.sock).expect("the server answers");
            tls.conn.process_new_packets().expect("a valid flight");
        }
    }
    assert_eq!(Client::over(tls).get("/").text(), "true TLSv1.3");
}

#[test]
fn plain_http_gets_one_sentence_and_garbage_nothing() {
    let server = server();
    let ask = |bytes: &[u8]| {
        let mut socket = TcpStream::connect(server.address).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket.write_all(bytes).expect("the server reads");
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let answer = ask(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("Use https://\n"),
        "{answer}"
    );
    assert_eq!(ask(b"\0\0\0"), "");
    // A record that is not a ClientHello gets an alert.
    let answer = ask(&[22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3]);
    assert!(answer.starts_with("\u{15}"), "{answer:?}");
    eventually("no connection is left", || server.engine.stats().connections == 0);
    // Neither does a record of another kind, which rustls ignores.
    assert_eq!(ask(&[22, 3, 1, 0, 4, 20, 0, 0, 0]).as_bytes(), [21, 3, 3, 0, 2, 2, 10]);
    eventually("no connection is left", || server.engine.stats().connections == 0);
    assert_eq!(server.engine.stats().failed_handshakes, 4);
    assert_eq!(connect(&server).get("/").text(), "true TLSv1.3");
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up() {
    let mut config = config();
    config.handshake_timeout = Duration::from_millis(200);
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    for beginning in [&b""[..], &[22, 3, 1]] {
        let mut socket = TcpStream::connect(server.address).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket.write_all(beginning).expect("the server reads");
        assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    }
    assert_eq!(server.engine.stats().failed_handshakes, 2);
}

#[test]
fn the_oldest_of_too_many_handshakes_is_given_up() {
    let mut config = config();
    config.max_handshakes = 3;
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    // None of them sends a byte, so the thread for handshakes has none when the last one arrives.
    let begin = || {
        let socket = TcpStream::connect(server.address).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket
    };
    let mut begun = Vec::new();
    for count in 1..=3 {
        begun.push(begin());
        eventually("it is there", || server.engine.stats().connections == count);
        // Ages are in milliseconds.
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(connect(&server).get("/").text(), "ok");
    assert_eq!(begun[0].read(&mut [0]).expect("it is closed in time"), 0);
    begun[1].set_nonblocking(true).expect("a socket");
    assert!(begun[1].read(&mut [0]).is_err(), "the next one waits");
    assert_eq!(server.engine.stats().failed_handshakes, 1);
}

#[test]
fn a_response_ends_with_close_notify() {
    let server = Server::start(config(), |exchange| reply(exchange, "ok"));
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().text(), "ok");
    // Without close_notify this is an error of the kind UnexpectedEof.
    assert_eq!(client.stream.read(&mut [0]).expect("a proper end"), 0);
}

#[test]
fn large_bodies_go_both_ways() {
    let mut config = config();
    config.body_max_bytes = 1 << 30;
    let server = Server::start(config, crate::cases::echo_body);
    let body: Vec<u8> = (0..500_000u32).flat_map(u32::to_le_bytes).collect();
    let mut client = connect(&server);
    client.send(&format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.stream.write_all(&body).expect("the server reads");
    assert!(client.response().body == body);
}

#[test]
fn a_hijacked_connection_is_relayed() {
    let server = Server::start(config(), |exchange| {
        let mut socket = std::os::unix::net::UnixStream::from(exchange.hijack().expect("a relay"));
        std::thread::spawn(move || {
            socket.set_nonblocking(false).expect("a socket");
            let mut space = vec![0; 300_000];
            socket.read_exact(&mut space).expect("what follows the request");
            socket.write_all(&space).expect("an open relay");
        });
    });
    let mut client = connect(&server);
    let bytes: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.stream.write_all(&bytes).expect("the server reads");
    assert!(client.rest() == bytes);
}

#[test]
fn a_peer_that_is_still_sending_hears_what_was_wrong() {
    let server = server();
    let mut socket = TcpStream::connect(server.address).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let mut flight = vec![22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3];
    flight.resize(100_000, 0);
    socket.write_all(&flight).expect("the server reads");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("no reset");
    assert_eq!(answer.first(), Some(&21), "an alert");
    drop(socket);
    eventually("it is gone", || server.engine.stats().connections == 0);
}

#[test]
fn a_record_that_cannot_be_decrypted_gets_an_alert_and_nothing_of_it_is_read() {
    let server = server();
    let mut tls = stream(server.address, &client(&[&rustls::version::TLS13]));
    tls.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        .expect("the server reads");
    tls.read_exact(&mut [0; 9]).expect("a response");
    let mut forged = vec![23, 3, 3, 0, 40];
    forged.extend_from_slice(b"GET /forged HTTP/1.1\r\nHost: test\r\n\r\n1234");
    forged.extend_from_slice(b"GET /behind HTTP/1.1\r\nHost: test\r\n\r\n");
    tls.sock.write_all(&forged).expect("the server reads");
    let error = tls.read_to_end(&mut Vec::new()).expect_err("an alert");
    assert!(error.to_string().contains("BadRecordMac"), "{error}");
    assert_eq!(server.engine.stats().requests, 1);
}

#[test]
fn a_response_that_breaks_off_has_no_proper_end() {
    let server = Server::start(config(), |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        exchange.write(b"half of it").expect("the client is there");
        exchange.flush();
        exchange.abort();
    });
    let mut client = connect(&server);
    // Only the end of the connection shows the end of this response.
    client.send("GET / HTTP/1.0\r\n\r\n");
    let mut received = Vec::new();
    client.stream.read_to_end(&mut received).expect_err("no close_notify");
    assert!(
        received.ends_with(b"half of it"),
        "{}",
        String::from_utf8_lossy(&received)
    );
}
