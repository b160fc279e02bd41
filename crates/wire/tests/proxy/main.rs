//! Version 1 of the PROXY protocol; version 2 is in `blocks.rs`.

mod blocks;
mod check;
mod model;
mod support;

use fairlead_wire::{Error, ProxyHeader, ProxyVersions, PROXY_LINE_BYTES};

const LONGEST: &str =
    "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";

fn parse(text: &str) -> Result<Option<ProxyHeader<'_>>, Error> {
    ProxyHeader::parse(text.as_bytes(), ProxyVersions::V1)
}

fn client(text: &str) -> Option<String> {
    let line = parse(text).expect("valid").expect("complete");
    assert_eq!(line.len, text.find('\n').expect("a line end") + 1);
    line.client.map(|client| client.to_string())
}

#[test]
fn a_line_names_the_client_and_what_follows_is_left() {
    for (line, expected) in [
        ("PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\nGET /", "192.0.2.1:40000"),
        ("PROXY TCP4 255.255.255.255 0.0.0.0 0 65535\r\n", "255.255.255.255:0"),
        ("PROXY TCP6 2001:db8::1 ::1 1 2\r\n\r\n", "[2001:db8::1]:1"),
    ] {
        assert_eq!(client(line).as_deref(), Some(expected), "{line}");
    }
    assert_eq!(
        client(LONGEST).as_deref(),
        Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535")
    );
}

#[test]
fn a_proxy_may_not_know_the_client() {
    for line in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 what ever\r\nGET"] {
        assert_eq!(client(line), None, "{line}");
    }
}

#[test]
fn a_line_that_comes_in_parts_is_waited_for() {
    for length in 0..LONGEST.len() {
        assert_eq!(parse(&LONGEST[..length]), Ok(None), "{length}");
    }
    assert!(LONGEST.len() <= PROXY_LINE_BYTES);
}

#[test]
fn whatever_else_comes_is_refused() {
    for line in [
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n",
        "PROXY TCP4 ::1 ::2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n",
        "PROXY TCP4 192.0.2.1\r 192.0.2.2 1 2\r\n",
    ] {
        assert_eq!(parse(line), Err(Error::InvalidProxyLine), "{line:?}");
    }
    let no_text = ProxyHeader::parse(b"PROXY TCP4 \xff\r\n", ProxyVersions::V1);
    assert_eq!(no_text, Err(Error::InvalidProxyLine));
    let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
    assert_eq!(parse(&endless[..PROXY_LINE_BYTES - 1]), Ok(None));
    assert_eq!(parse(&endless), Err(Error::InvalidProxyLine));
}

#[test]
fn a_naive_reading_agrees_about_headers_that_are_almost_right() {
    let alphabet = b"PROXY TCP46UNKNWabcdef:.0123456789 \r\n\xff+\0\x03\x20\x21\x22\x28";
    let mut state = 7u64;
    let mut random = |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let lines = [
        LONGEST,
        "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\nGET /",
        "PROXY UNKNOWN x\r\n",
    ];
    let headers: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| line.as_bytes().to_vec())
        .chain(blocks::samples())
        .collect();
    for _ in 0..15_000 {
        let mut bytes = headers[random(headers.len())].clone();
        for _ in 0..random(4) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = alphabet[random(alphabet.len())],
                1 => bytes[at] ^= 1 << random(8),
                2 => _ = bytes.remove(at),
                _ => bytes.insert(at, alphabet[random(alphabet.len())]),
            }
        }
        check::proxy_header(&bytes);
    }
}
