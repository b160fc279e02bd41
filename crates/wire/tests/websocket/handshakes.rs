//! Requests that open a WebSocket (RFC 6455 §4.2.1).

use crate::support::{get, request};
use fairlead_wire::websocket::{accept_key, handshake, HandshakeError};

const UPGRADE: &str = "Upgrade: websocket";
const CONNECTION: &str = "Connection: Upgrade";
const VERSION: &str = "Sec-WebSocket-Version: 13";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

fn outcome(lines: &[&str]) -> Result<String, HandshakeError> {
    of(get(lines))
}

fn of((head, bytes): (fairlead_wire::Head, Vec<u8>)) -> Result<String, HandshakeError> {
    handshake(&head, &bytes).map(|accepted| String::from_utf8_lossy(&accepted.accept).into_owned())
}

/// RFC 6455 §1.3.
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[test]
fn the_example_of_the_rfc() {
    assert_eq!(outcome(&[UPGRADE, CONNECTION, KEY, VERSION]), Ok(ACCEPT.into()));
    assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), ACCEPT.as_bytes());
    // A pair that is often quoted.
    assert_eq!(
        &accept_key(b"x3JJHMbDL1EzLkh9GBhXDw=="),
        b"HSmrc0sMlYUkAGmm5OPpG2HaGWk="
    );
}

#[test]
fn case_order_and_lists_do_not_matter() {
    for (upgrade, connection) in [
        ("UPGRADE: WebSocket", "connection: upgrade"),
        ("Upgrade: h2c, websocket", "Connection: keep-alive, UPGRADE"),
        ("Upgrade: websocket,", "Connection: keep-alive\r\nConnection: upgrade"),
        ("Upgrade: other\r\nUpgrade: websocket", "Connection: ,Upgrade"),
    ] {
        assert_eq!(
            outcome(&["sec-websocket-version: 13", connection, KEY, upgrade]),
            Ok(ACCEPT.into())
        );
    }
}

#[test]
fn other_requests_are_ordinary() {
    use HandshakeError::NotWebSocket;
    for lines in [
        &[][..],
        &[CONNECTION, KEY, VERSION],
        &[UPGRADE, KEY, VERSION],
        &[UPGRADE, "Connection: keep-alive", KEY, VERSION],
        &["Upgrade: h2c", CONNECTION, KEY, VERSION],
        &["Upgrade: websocket2", CONNECTION, KEY, VERSION],
        &["Upgrade: websocket/13", CONNECTION, KEY, VERSION],
        &["Upgrade: web socket", CONNECTION, KEY, VERSION],
    ] {
        assert_eq!(outcome(lines), Err(NotWebSocket), "{lines:?}");
    }
    let lines = [UPGRADE, CONNECTION, KEY, VERSION];
    for line in ["POST / HTTP/1.1", "HEAD / HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/1.0"] {
        assert_eq!(of(request(line, &lines)), Err(NotWebSocket), "{line}");
    }
}

#[test]
fn another_version_is_said_so_whatever_its_key() {
    for version in ["8", "0", "14", "013", "13, 8", "", "x"] {
        let version = format!("Sec-WebSocket-Version: {version}");
        assert_eq!(
            outcome(&[UPGRADE, CONNECTION, KEY, &version]),
            Err(HandshakeError::Version),
            "{version}"
        );
        assert_eq!(
            outcome(&[UPGRADE, CONNECTION, &version]),
            Err(HandshakeError::Version),
            "{version}"
        );
    }
}

#[test]
fn a_field_that_is_missing_repeated_or_misspelt_is_refused() {
    for lines in [
        &[UPGRADE, CONNECTION, KEY][..],
        &[UPGRADE, CONNECTION, VERSION],
        &[UPGRADE, CONNECTION, KEY, VERSION, VERSION],
        &[UPGRADE, CONNECTION, KEY, KEY, VERSION],
        &[UPGRADE, CONNECTION, "Sec-WebSocket-Key1: 4 @1  46546xW%0l 1 5", VERSION],
    ] {
        assert_eq!(outcome(lines), Err(HandshakeError::Malformed), "{lines:?}");
    }
    for key in [
        "",
        "==",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZQ===",
        "dGhlIHNhbXBsZSBub25jZQA=",
        "dGhlIHNhbXBsZSBub25jZQAA",
        "dGhlIHNhbXBsZSBub25jZ==",
        "dGhlIHNhbXBsZSBub25jZQAA==",
        "dGhl HNhbXBsZSBub25jZQ==",
        "dGhlIHNhbXBsZS-_b25jZQ==",
    ] {
        let key = format!("Sec-WebSocket-Key: {key}");
        assert_eq!(
            outcome(&[UPGRADE, CONNECTION, &key, VERSION]),
            Err(HandshakeError::Malformed),
            "{key}"
        );
    }
}

#[test]
fn a_body_is_refused_because_frames_could_be_taken_for_it() {
    let lines = [UPGRADE, CONNECTION, KEY, VERSION];
    let with = |line| outcome(&[&lines[..], &[line]].concat());
    assert_eq!(with("Content-Length: 5"), Err(HandshakeError::Malformed));
    assert_eq!(with("Transfer-Encoding: chunked"), Err(HandshakeError::Malformed));
    assert_eq!(with("Content-Length: 0"), Ok(ACCEPT.into()));
}
