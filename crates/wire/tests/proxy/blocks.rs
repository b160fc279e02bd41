//! Version 2 of the PROXY protocol.

use super::check;
use super::support::{header, tls, vector, with, with_checksum, ADDRESSES, LOCAL, PROXY, SIGNATURE, TCP4, TCP6, UNIX};
use fairlead_wire::{Error, ProxyHeader, ProxyTls, ProxyVersions, PROXY_HEADER_BYTES};

fn parse(bytes: &[u8]) -> Result<Option<ProxyHeader<'_>>, Error> {
    ProxyHeader::parse(bytes, ProxyVersions::V2)
}

fn whole(bytes: &[u8]) -> ProxyHeader<'_> {
    check::proxy_header(bytes);
    parse(bytes).expect("valid").expect("complete")
}

fn refused(bytes: &[u8]) -> Error {
    check::proxy_header(bytes);
    parse(bytes).expect_err("malformed")
}

/// A header of a proxy with TLS that contains every vector.
fn rich() -> Vec<u8> {
    let about_tls = tls(
        7,
        0,
        &[
            &vector(0x21, b"TLSv1.3"),
            &vector(0x23, b"TLS_AES_128_GCM_SHA256"),
            &vector(0x22, "J\u{f6}rg".as_bytes()),
            &vector(0x24, b"RSA-SHA256"),
            &vector(0x28, b"\x30\x03\x02\x01\x07"),
        ],
    );
    let vectors: [&[u8]; 5] = [
        &vector(0x01, b"h2"),
        &vector(0x02, b"shop.example"),
        &vector(0x05, &[7; 128]),
        &about_tls,
        &vector(0xee, b"of an application"),
    ];
    with_checksum(&with(&vectors))
}

/// One header of each kind, for tests that change them.
pub(super) fn samples() -> Vec<Vec<u8>> {
    vec![
        rich(),
        with(&[]),
        header(LOCAL, 0, &[]),
        header(PROXY, TCP6, &[&[0xfd; 36], &vector(0x04, b"")]),
        header(PROXY, UNIX, &[&[b'x'; 216]]),
        [&with(&[&tls(1, 1, &[])])[..], b"GET / HTTP/1.1\r\n"].concat(),
    ]
}

#[test]
fn a_block_names_the_client_and_what_follows_is_left() {
    for (kind, addresses, expected) in [
        (TCP4, ADDRESSES, "192.0.2.1:40000"),
        (0x12, ADDRESSES, "192.0.2.1:40000"),
        (
            TCP6,
            &[[0xfd; 32], [1; 32]].concat()[..36],
            "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:257",
        ),
        (0x22, &[[0; 16], [1; 16], [0xff; 16]].concat()[..36], "[::]:65535"),
    ] {
        let bytes = [&header(PROXY, kind, &[addresses])[..], b"GET /"].concat();
        let header = whole(&bytes);
        assert_eq!(
            header.client.map(|client| client.to_string()).as_deref(),
            Some(expected)
        );
        assert_eq!((header.len, header.tls), (bytes.len() - 5, None));
    }
}

#[test]
fn a_proxy_may_speak_for_itself_or_for_someone_without_an_address() {
    let nonsense: &[u8] = b"\x20\xff\xff nonsense";
    for bytes in [
        header(LOCAL, 0, &[]),
        header(LOCAL, TCP4, &[ADDRESSES]),
        header(LOCAL, 0xff, &[nonsense]),
        header(PROXY, 0, &[]),
        header(PROXY, 0, &[nonsense]),
        header(PROXY, UNIX, &[&[b'x'; 216]]),
        header(PROXY, 0x32, &[&[0; 216]]),
    ] {
        let header = whole(&bytes);
        assert_eq!((header.len, header.client, header.tls), (bytes.len(), None, None));
    }
}

#[test]
fn a_block_tells_what_the_client_has_agreed_on() {
    let bytes = rich();
    let header = whole(&bytes);
    assert_eq!(header.authority, Some("shop.example"));
    assert_eq!(
        header.tls,
        Some(ProxyTls {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            has_certificate: true,
            is_verified: true,
            is_resumed: false,
            common_name: Some("J\u{f6}rg"),
            certificate: Some(b"\x30\x03\x02\x01\x07"),
        })
    );
}

#[test]
fn a_certificate_counts_only_if_there_is_one_and_is_valid_only_if_the_proxy_says_so() {
    let inner: [&[u8]; 2] = [&vector(0x22, b"ann"), &vector(0x28, b"DER")];
    for (bits, verification, expected) in [
        (0, 0, None),
        (6, 0, None),
        (1, 0, Some((false, false, false, None))),
        (1, 1, Some((false, false, false, None))),
        (3, 0, Some((true, true, false, Some("ann")))),
        (3, 10, Some((true, false, false, Some("ann")))),
        (5, 0, Some((true, true, true, Some("ann")))),
        (7, 0, Some((true, true, false, Some("ann")))),
    ] {
        let bytes = with(&[&tls(bits, verification, &inner)]);
        let found = whole(&bytes).tls.map(|tls| {
            assert_eq!(tls.certificate.is_some(), tls.has_certificate);
            (tls.has_certificate, tls.is_verified, tls.is_resumed, tls.common_name)
        });
        assert_eq!(found, expected, "{bits} {verification}");
    }
}

#[test]
fn a_checksum_is_looked_at_if_there_is_one() {
    let good = with_checksum(&with(&[&vector(0x02, b"a")]));
    assert_eq!(whole(&good).authority, Some("a"));
    for (at, bit) in [(16, 1), (20, 128), (good.len() - 1, 1), (good.len() - 8, 1)] {
        let mut bad = good.clone();
        bad[at] ^= bit;
        assert_eq!(refused(&bad), Error::ProxyChecksumMismatch, "{at}");
    }
    // Not at the end either.
    let mut early = with(&[&vector(0x03, &[0; 4]), &vector(0x04, b"padding")]);
    let sum = crate::model::checksum(&early).to_be_bytes();
    early[31..35].copy_from_slice(&sum);
    assert!(whole(&early).client.is_some());
}

#[test]
fn a_block_that_comes_in_parts_is_waited_for() {
    for sample in samples() {
        let len = whole(&sample).len;
        for length in 0..len {
            assert_eq!(parse(&sample[..length]), Ok(None), "{length} of {len}");
        }
        assert_eq!(parse(&sample[..len]), parse(&sample));
    }
}

#[test]
fn a_block_is_refused_for_what_it_cannot_mean() {
    let cut = |bytes: Vec<u8>, length: usize| {
        let mut bytes = bytes;
        bytes[14..16].copy_from_slice(&(length as u16).to_be_bytes());
        bytes
    };
    for (what, bytes) in [
        ("a request", b"GET / HTTP/1.1\r\n".to_vec()),
        ("a line", b"PROXY UNKNOWN\r\n".to_vec()),
        ("an empty line and a request", b"\r\nGET / HTTP/1.1\r\n".to_vec()),
        ("a signature with a mistake", [&SIGNATURE[..11], b"\r"].concat()),
        ("version 1 in a block", header(0x11, TCP4, &[ADDRESSES])),
        ("version 3", header(0x31, TCP4, &[ADDRESSES])),
        ("an unknown command", header(0x22, TCP4, &[ADDRESSES])),
        ("an unknown family", header(PROXY, 0x41, &[ADDRESSES])),
        ("an unknown transport", header(PROXY, 0x13, &[ADDRESSES])),
        ("a family without transport", header(PROXY, 0x10, &[ADDRESSES])),
        ("a transport without family", header(PROXY, 0x01, &[ADDRESSES])),
        ("addresses that are too short", header(PROXY, TCP4, &[&ADDRESSES[..11]])),
        ("IPv6 with addresses of IPv4", header(PROXY, TCP6, &[ADDRESSES])),
        ("a path that is too short", header(PROXY, UNIX, &[&[0; 215]])),
        ("no addresses", header(PROXY, TCP4, &[])),
        ("half of a vector", with(&[&[0x04]])),
        ("a vector without its length", with(&[&[0x04, 0]])),
        ("a vector beyond the end", with(&[&[0xee, 0, 4, 1, 2, 3]])),
        (
            "a vector cut by the length",
            cut(with(&[&vector(0xee, b"abc")]), 12 + 5),
        ),
        ("a checksum of three bytes", with(&[&vector(0x03, &[0; 3])])),
        ("an empty checksum", with(&[&vector(0x03, &[])])),
        ("two checksums", with_checksum(&with(&[&vector(0x03, &[0; 4])]))),
        ("two hosts", with(&[&vector(0x02, b"a"), &vector(0x02, b"a")])),
        ("a host that is no text", with(&[&vector(0x02, b"\xff")])),
        ("an empty vector about TLS", with(&[&vector(0x20, b"")])),
        ("half of a vector about TLS", with(&[&vector(0x20, &[1, 0, 0, 0])])),
        ("two vectors about TLS", with(&[&tls(1, 0, &[]), &tls(1, 0, &[])])),
        (
            "a vector in it beyond its end",
            with(&[&tls(1, 0, &[&[0x21, 0, 9, b'T']])]),
        ),
        ("half of a vector in it", with(&[&tls(0, 0, &[&[0x21]])])),
        (
            "two versions in it",
            with(&[&tls(1, 0, &[&vector(0x21, b"a"), &vector(0x21, b"b")])]),
        ),
        (
            "two certificates in it",
            with(&[&tls(3, 0, &[&vector(0x28, b"a"), &vector(0x28, b"b")])]),
        ),
        (
            "a name in it that is no text",
            with(&[&tls(3, 0, &[&vector(0x22, b"\xc3")])]),
        ),
    ] {
        assert_eq!(refused(&bytes), Error::InvalidProxyHeader, "{what}");
    }
}

#[test]
fn text_that_would_not_stay_on_its_line_is_refused() {
    for end in [
        "\r\n", "\r", "\n", "\0", "\u{b}", "\x1b", "\x7f", "\u{85}", "\u{2028}", "\u{2029}",
    ] {
        let text = format!("admin{end}X: y");
        let [authority, version, cipher, name] = [0x02, 0x21, 0x23, 0x22].map(|kind| vector(kind, text.as_bytes()));
        let headers = [
            with(&[&authority]),
            with(&[&tls(1, 0, &[&version])]),
            with(&[&tls(1, 0, &[&cipher])]),
            with(&[&tls(3, 0, &[&name])]),
        ];
        for header in headers {
            assert_eq!(refused(&header), Error::InvalidProxyHeader, "{text:?}");
        }
    }
}

#[test]
fn a_block_that_would_be_too_long_is_refused_before_it_arrives() {
    let room = PROXY_HEADER_BYTES - with(&[]).len() - 3;
    let largest = with(&[&vector(0xee, &vec![0; room])]);
    assert_eq!(whole(&largest).len, PROXY_HEADER_BYTES);
    for command in [LOCAL, PROXY] {
        let start = [SIGNATURE, &[command, TCP4], &[0x40, 0x00]].concat();
        assert_eq!(refused(&start), Error::ProxyHeaderTooLong);
    }
}

#[test]
fn what_cannot_become_a_header_is_refused_with_its_first_wrong_byte() {
    let good = with(&[]);
    for (at, byte) in [(0, b'G'), (4, b'\r'), (11, b'\r'), (12, 0x1f), (13, 0x33)] {
        let mut bytes = good[..=at].to_vec();
        bytes[at] = byte;
        assert_eq!(refused(&bytes), Error::InvalidProxyHeader, "{at}");
    }
}

#[test]
fn both_versions_can_be_told_apart() {
    let any =
        |bytes: &[u8]| ProxyHeader::parse(bytes, ProxyVersions::Any).map(|header| header.map(|header| header.len));
    assert_eq!(any(b""), Ok(None));
    assert_eq!(any(b"PROXY UNKNOWN\r\nGET"), Ok(Some(15)));
    assert_eq!(any(&with(&[])), Ok(Some(28)));
    assert_eq!(any(b"P"), Ok(None));
    assert_eq!(any(b"\r\n"), Ok(None));
    assert_eq!(any(b"PUT"), Err(Error::InvalidProxyLine));
    assert_eq!(any(b"G"), Err(Error::InvalidProxyHeader));
    assert_eq!(any(b"\x16\x03\x01"), Err(Error::InvalidProxyHeader));
}
