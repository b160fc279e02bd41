//! Peers that follow the protocol, or nearly, and try to use more than their share.

use crate::support::tls::{client, stream, TlsStream};
use crate::support::*;
use crate::{connect, half_close};
use ring::aead;
use rustls::client::Resumption;
use rustls::ConnectionTrafficSecrets;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

fn server() -> Server {
    Server::start(config(), |exchange| {
        let text = path(exchange);
        reply(exchange, &text);
    })
}

/// Seals records of TLS 1.3 that rustls would not send.
struct Sealer {
    key: aead::LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Sealer {
    /// Continues after `tls`, with its socket.
    fn after(tls: TlsStream) -> (Sealer, TcpStream) {
        let secrets = tls.conn.dangerous_extract_secrets().expect("an open connection");
        let (sequence, ConnectionTrafficSecrets::Aes256Gcm { key, iv }) = secrets.tx else {
            panic!("it is the first suite that is offered");
        };
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, key.as_ref()).expect("a key");
        let sealer = Sealer {
            key: aead::LessSafeKey::new(key),
            iv: iv.as_ref().try_into().expect("twelve bytes"),
            sequence,
        };
        (sealer, tls.sock)
    }

    /// Adds a record with application data (RFC 8446 §5.2) to `flight`.
    fn seal(&mut self, data: &[u8], flight: &mut Vec<u8>) {
        let mut nonce = self.iv;
        let bytes = self.sequence.to_be_bytes();
        nonce[4..]
            .iter_mut()
            .zip(bytes)
            .for_each(|(byte, other)| *byte ^= other);
        self.sequence += 1;
        let mut inner = [data, &[23]].concat();
        let length = (inner.len() + 16) as u16;
        let head = [&[23, 3, 3][..], &length.to_be_bytes()].concat();
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce, aead::Aad::from(&head), &mut inner)
            .expect("a record");
        flight.extend(head.into_iter().chain(inner));
    }
}

fn sealer(server: &Server) -> (Sealer, TcpStream) {
    let mut config = Arc::unwrap_or_clone(client(&[&rustls::version::TLS13]));
    config.enable_secret_extraction = true;
    config.resumption = Resumption::disabled();
    let mut tls = stream(server.address, &Arc::new(config));
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).expect("a handshake");
    }
    Sealer::after(tls)
}

#[test]
fn what_follows_close_notify_is_ignored() {
    let server = server();
    for length in [10, 100_000] {
        let mut tls = stream(server.address, &client(&[&rustls::version::TLS13]));
        tls.write_all(b"GET /asked HTTP/1.1\r\nHost: test\r\n\r\n")
            .expect("it is read");
        tls.read_exact(&mut [0; 9]).expect("a response");
        tls.conn.send_close_notify();
        let mut flight = Vec::new();
        tls.conn.write_tls(&mut flight).expect("memory");
        flight.resize(flight.len() + length, 23);
        tls.sock.write_all(&flight).expect("the server reads");
        eventually("it is closed", || server.engine.stats().connections == 0);
        assert_eq!(connect(&server).get("/other").text(), "/other");
        eventually("that, too", || server.engine.stats().connections == 0);
    }
}

#[test]
fn a_request_before_close_notify_is_answered() {
    let server = server();
    let mut client = connect(&server);
    client.send("GET /last HTTP/1.1\r\nHost: test\r\n\r\n");
    half_close(&mut client);
    assert_eq!(client.response().text(), "/last");
    assert_eq!(client.stream.read(&mut [0]).expect("close_notify"), 0);
}

#[test]
fn a_few_records_without_data_are_no_fault_and_a_flood_of_them_ends_the_connection() {
    let server = server();
    let (mut sealer, mut socket) = sealer(&server);
    let mut flight = Vec::new();
    for byte in b"GET /slowly HTTP/1.1\r\nHost: test\r\n\r\n" {
        (0..10).for_each(|_| sealer.seal(b"", &mut flight));
        sealer.seal(&[*byte], &mut flight);
    }
    socket.write_all(&flight).expect("the server reads");
    eventually("it was answered", || server.engine.stats().requests == 1);
    let flood = std::thread::spawn(move || loop {
        let mut flight = Vec::new();
        (0..1_000).for_each(|_| sealer.seal(b"", &mut flight));
        if socket.write_all(&flight).is_err() {
            return;
        }
    });
    eventually("the flood is over", || flood.is_finished());
    eventually("no connection is left", || server.engine.stats().connections == 0);
    assert_eq!(connect(&server).get("/other").text(), "/other");
}
