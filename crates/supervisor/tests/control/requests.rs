//! Heads and bodies of requests.

use crate::support::{answer, Builder, Client};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

#[test]
fn one_request_of_a_connection_is_answered() {
    let server = Builder::default().start();
    let mut client = server.send("/live");

    assert_eq!(answer(200, "application/json", r#"{"status":"live"}"#), client.answer());
    assert!(client.is_dropped());
}

#[test]
fn a_body_is_thrown_away() {
    let server = Builder::default().start();
    let mut client = server.connect();
    client.write(format!(
        "POST /live HTTP/1.1\r\ncontent-length: 300000\r\n\r\n{}",
        "x".repeat(300_000)
    ));

    assert_eq!(200, client.answer().status);
}

#[test]
fn a_text_that_is_not_http_is_refused() {
    let server = Builder::default().start();
    let mut client = server.connect();
    client.write("hello\r\n\r\n");

    assert_eq!(answer(400, "text/plain", "Malformed request"), client.answer());
}

#[test]
fn a_large_head_is_refused() {
    let server = Builder::default().start();
    let mut client = server.connect();
    client.write(format!("GET /live HTTP/1.1\r\nx: {}", "y".repeat(9000)));

    assert_eq!(
        answer(431, "text/plain", "The request head is too large"),
        client.answer()
    );
}

#[test]
fn a_slow_head_is_refused() {
    let mut builder = Builder::default();
    builder.limits.peer = Duration::from_millis(50);
    let server = builder.start();
    let mut client = server.connect();
    client.write("GET /live HTTP/1.1\r\n");

    assert_eq!(
        answer(408, "text/plain", "The request head did not arrive in time"),
        client.answer()
    );
}

#[test]
fn it_listens_on_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let _server = Builder::default().start_on(listener.into(), SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET /ready HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();

    assert!(text.ends_with(r#"{"status":"ready"}"#), "{text}");
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let server = Builder::default().start();
    drop(server.connect());
    drop(server.send("/live"));
    let half = TcpStream::connect(server.address).unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();

    assert!(Client(half).is_dropped());
    assert_eq!(200, server.get("/live").status);
}
