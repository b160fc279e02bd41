//! Accepted heads, and their parsed values.

use crate::support::{accept, parse, post};
use fairlead_wire::{Framing, Head, TargetForm, Version};

fn with_connection(version: &str, lines: &str) -> Head {
    accept(format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n"))
}

#[test]
fn the_parts_of_a_request() {
    let request = b"POST /a/b?c=d&e HTTP/1.1\r\nHost: example.org:8080\r\nX-Empty:\r\nX-Spaced: \t b  c \t\r\n\r\nbody";
    let (complete, head) = parse(request).expect("accepted");
    assert!(complete);
    assert_eq!(&request[head.len..], b"body");
    assert_eq!(head.method.of(request), b"POST");
    assert_eq!(head.target.of(request), b"/a/b?c=d&e");
    assert_eq!(head.version, Version::Http11);
    assert_eq!(head.parts.form, TargetForm::Origin);
    assert_eq!(head.parts.path.of(request), b"/a/b");
    assert_eq!(head.parts.query.expect("query").of(request), b"c=d&e");
    assert_eq!(head.host.expect("host").of(request), b"example.org:8080");
    let fields: Vec<_> = head
        .fields
        .iter()
        .map(|field| (field.name.of(request), field.value.of(request)))
        .collect();
    let expected: [(&[u8], &[u8]); 3] = [
        (b"Host", b"example.org:8080"),
        (b"X-Empty", b""),
        (b"X-Spaced", b"b  c"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_head_is_reused_without_a_trace_of_the_request_before() {
    let mut head = Head::default();
    let first = b"POST http://a/x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: upgrade, close\r\nUpgrade: b\r\n\r\n";
    assert_eq!(head.parse(first, &crate::support::LIMITS), Ok(true));
    assert!(head.upgrade && head.expect_continue && !head.keep_alive);
    let memory = head.fields.as_ptr();
    let second = b"GET / HTTP/1.0\r\n\r\n";
    assert_eq!(head.parse(second, &crate::support::LIMITS), Ok(true));
    let fresh = accept(second);
    assert_eq!(format!("{head:?}"), format!("{fresh:?}"));
    assert_eq!(head.fields.as_ptr(), memory);
}

#[test]
fn one_empty_line_may_come_first() {
    let request = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = accept(request);
    assert_eq!(head.method.of(request), b"GET");
    assert_eq!(head.len, request.len());
}

#[test]
fn framing_follows_the_fields_and_not_the_method() {
    assert_eq!(accept(post(&[])).framing, Framing::Empty);
    assert_eq!(accept(post(&["Content-Length: 0"])).framing, Framing::Length(0));
    assert_eq!(accept(post(&["Content-Length:\t5 "])).framing, Framing::Length(5));
    assert_eq!(accept(post(&["TRANSFER-ENCODING: Chunked"])).framing, Framing::Chunked);
    let get = accept("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(get.framing, Framing::Length(5));
    let largest = accept(post(&["Content-Length: 9223372036854775807"]));
    assert_eq!(largest.framing, Framing::Length(i64::MAX as u64));
}

#[test]
fn connections_persist_by_version_and_option() {
    assert!(with_connection("1.1", "").keep_alive);
    assert!(with_connection("1.1", "Connection: keep-alive\r\n").keep_alive);
    assert!(with_connection("1.1", "Connection: closed\r\n").keep_alive);
    assert!(!with_connection("1.1", "Connection: Close\r\n").keep_alive);
    assert!(!with_connection("1.1", "Connection: keep-alive, x ,close\r\n").keep_alive);
    assert!(!with_connection("1.1", "Connection: close\r\nConnection: keep-alive\r\n").keep_alive);
    assert!(!with_connection("1.0", "").keep_alive);
    assert!(with_connection("1.0", "Connection: Keep-Alive\r\n").keep_alive);
    assert!(with_connection("1.0", "Connection: x, keep-alive\r\n").keep_alive);
    assert!(!with_connection("1.0", "Connection: keep-alive, close\r\n").keep_alive);
}

#[test]
fn an_upgrade_needs_both_fields_and_the_version() {
    assert!(with_connection("1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n").upgrade);
    assert!(!with_connection("1.1", "Upgrade: websocket\r\n").upgrade);
    assert!(!with_connection("1.1", "Connection: Upgrade\r\n").upgrade);
    assert!(!with_connection("1.1", "Connection: Upgrade\r\nUpgrade:\r\n").upgrade);
    assert!(!with_connection("1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n").upgrade);
}

#[test]
fn continue_is_expected_only_where_a_body_is_to_come() {
    assert!(accept(post(&["Content-Length: 5", "Expect: 100-Continue"])).expect_continue);
    assert!(accept(post(&["Transfer-Encoding: chunked", "Expect: 100-continue"])).expect_continue);
    assert!(!accept(post(&["Content-Length: 0", "Expect: 100-continue"])).expect_continue);
    assert!(!accept(post(&["Expect: 100-continue"])).expect_continue);
    assert!(!accept(post(&["Content-Length: 5", "Expect:"])).expect_continue);
    let old = accept("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert!(!old.expect_continue);
}

#[test]
fn continue_is_expected_of_a_body_that_something_else_delimits() {
    let mut asking = accept(post(&["Expect: 100-continue"]));
    asking.reframe(Framing::Stream);
    assert!(asking.expect_continue && asking.framing == Framing::Stream);
    asking.reframe(Framing::Empty);
    assert!(!asking.expect_continue);
    let mut silent = accept(post(&[]));
    silent.reframe(Framing::Stream);
    assert!(!silent.expect_continue);
}

#[test]
fn the_authority_of_an_absolute_form_is_the_host() {
    let request = b"GET HTTP://Example.org:80?q HTTP/1.1\r\nHost: example.ORG\r\n\r\n";
    let head = accept(request);
    assert_eq!(head.host, head.parts.authority);
    assert_eq!(head.host.expect("host").of(request), b"Example.org:80");
    assert!(head.parts.path.is_empty());
    let old = accept(b"GET http://a/ HTTP/1.0\r\n\r\n");
    assert_eq!(old.host, old.parts.authority);
    assert_eq!(accept(b"GET / HTTP/1.0\r\n\r\n").host, None);
}

#[test]
fn beside_an_absolute_form_the_host_field_is_ignored() {
    for host in ["b", "a:81", "a", "[::1]:0"] {
        let request = format!("GET http://a/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(accept(&request).host.expect("host").of(request.as_bytes()), b"a");
    }
}

#[test]
fn a_later_minor_version_is_treated_as_the_latest_that_is_known() {
    for minor in 2..=9 {
        let request = format!(
            "\r\nPOST / HTTP/1.{minor}\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        );
        let head = accept(&request);
        assert_eq!(head.version, Version::Http11);
        assert_eq!(head.framing, Framing::Chunked);
        assert!(head.keep_alive && head.expect_continue);
        assert_eq!(head.target.of(request.as_bytes()), b"/");
    }
}

#[test]
fn asterisk_form() {
    let request = b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = accept(request);
    assert_eq!(head.parts.form, TargetForm::Asterisk);
    assert_eq!(head.parts.path.of(request), b"*");
}

#[test]
fn any_token_is_a_method_and_any_visible_byte_a_value() {
    accept(b"get / HTTP/1.1\r\nHost: a\r\n\r\n");
    accept(b"!#$%&'*+-.^_`|~09Az / HTTP/1.1\r\nHost: a\r\n\r\n");
    accept(b"GET /a|b^c{d}?[e]=\"f\"\\`<> HTTP/1.1\r\nHost: a\r\n\r\n");
    accept(b"GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09: \t\xff\x80 : ;\xa0\r\n\r\n");
    accept(b"GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: b\r\n\r\n");
}
