//! Bodies that give more than the socket takes, and then work on: the body sender sends meanwhile.

use super::connect;
use crate::support::*;
use fairlead_engine::Config;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Mutex;

/// More than the buffers of both sockets.
const SIZE: usize = 20_000_000;
const PIECE: usize = 10_000;

fn body() -> Vec<u8> {
    let pattern: Vec<u8> = (0..=250).collect();
    let mut bytes = pattern.repeat(SIZE / pattern.len() + 1);
    bytes.truncate(SIZE);
    bytes
}

/// Writes a body of [`SIZE`] bytes, in pieces.
fn give(exchange: &mut fairlead_engine::Exchange<'_>) {
    exchange.start(200);
    exchange.end_head(Some(SIZE as u64 + 3));
    for piece in body().chunks(PIECE) {
        let mut done = 0;
        while done < piece.len() {
            done += exchange.write(&piece[done..]).expect("the client is there");
            if done < piece.len() {
                exchange.wait_for_client().expect("the client reads");
            }
        }
        exchange.flush();
    }
}

/// A server with such a body, which then waits for the sender before it calls `code`.
fn serve(
    config: Config,
    code: impl Fn(&mut fairlead_engine::Exchange<'_>) + Send + Sync + 'static,
) -> (Server, Sender<()>) {
    let (release, hold): (_, Receiver<()>) = mpsc::channel();
    let hold = Mutex::new(hold);
    let server = Server::start(config, move |exchange| {
        give(exchange);
        hold.lock()
            .expect("no panic")
            .recv_timeout(PATIENCE)
            .expect("the client has everything");
        code(exchange);
    });
    (server, release)
}

fn finish(exchange: &mut fairlead_engine::Exchange<'_>) {
    while exchange.write(b"end").expect("the client is there") == 0 {
        exchange.wait_for_client().expect("the client reads");
    }
}

/// Sends a request, and reads its head and [`SIZE`] bytes.
fn take(client: &mut Client) {
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    receive(client);
}

fn receive(client: &mut Client) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.stream.read_exact(&mut byte).expect("the head");
        head.push(byte[0]);
    }
    let mut bytes = vec![0; SIZE];
    client
        .stream
        .read_exact(&mut bytes)
        .expect("all bytes, though the body waits");
    assert!(bytes == body());
}

#[test]
fn all_of_it_is_sent_while_the_body_waits() {
    for response_disk_bytes in [0, 1 << 30] {
        let config = Config {
            response_memory_bytes: if response_disk_bytes == 0 { 1 << 25 } else { 65_536 },
            response_disk_bytes,
            ..config()
        };
        let (server, release) = serve(config, finish);
        let mut client = connect(&server);
        for _ in 0..2 {
            take(&mut client);
            release.send(()).expect("the body waits");
            let mut end = [0; 3];
            client.stream.read_exact(&mut end).expect("the end");
            assert_eq!(&end, b"end");
        }
    }
}

#[test]
fn a_client_that_has_closed_its_half_gets_all_of_it() {
    let (server, release) = serve(config(), finish);
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    receive(&mut client);
    release.send(()).expect("the body waits");
    assert_eq!(client.rest(), b"end");
}

#[test]
fn a_socket_that_is_taken_later_is_the_apps_alone() {
    let (server, release) = serve(config(), |exchange| {
        let socket: OwnedFd = exchange.hijack().expect("a socket");
        // A read and a write need no type of socket.
        let _ = UnixStream::from(socket).write_all(b"own");
    });
    let mut client = connect(&server);
    take(&mut client);
    release.send(()).expect("the body waits");
    assert_eq!(client.rest(), b"own");
}

#[test]
fn a_response_that_is_given_up_ends_its_loan() {
    let (server, release) = serve(config(), |exchange| exchange.abort());
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the body runs", || server.engine.stats().busy_threads == 1);
    release.send(()).expect("the body waits");
    let rest = client.rest();
    assert!(rest.len() < SIZE + 1_000);
    eventually("the connection has ended", || server.engine.stats().connections == 0);
}
