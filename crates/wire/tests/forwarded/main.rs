//! The route of a request as proxies report it, and the trusted part of it.

mod check;

use check::{elements, is_proxy, nodes};
use fairlead_wire::forwarded::{member_of_hop, members_from_last, read_elements, trace, Element, Node, MAX_HOPS};
use fairlead_wire::Error;
use std::borrow::Cow;

fn address(node: Node) -> Option<String> {
    match node {
        Node::Address(address) if address.port() == 0 => Some(address.ip().to_string()),
        Node::Address(address) => Some(address.to_string()),
        Node::Unix | Node::Unknown => None,
    }
}

#[test]
fn a_node_is_an_address_with_or_without_a_port() {
    for (text, expected) in [
        ("192.0.2.1", Some("192.0.2.1")),
        ("192.0.2.1:80", Some("192.0.2.1:80")),
        ("192.0.2.1:_port", Some("192.0.2.1")),
        ("2001:db8::1", Some("2001:db8::1")),
        ("[2001:db8::1]", Some("2001:db8::1")),
        ("[2001:db8::1]:65535", Some("[2001:db8::1]:65535")),
        ("[2001:db8::1]:_a.b-c_d", Some("2001:db8::1")),
        ("::ffff:192.0.2.1", Some("::ffff:192.0.2.1")),
        ("", None),
        ("unknown", None),
        ("_hidden", None),
        ("192.0.2.1:", None),
        ("192.0.2.1:65536", None),
        ("192.0.2.1:+1", None),
        ("192.0.2.1:_", None),
        ("192.0.2.1:_a b", None),
        ("192.0.2.01", None),
        ("192.0.2", None),
        ("192.0.2.1.example", None),
        ("3221225985", None),
        ("[192.0.2.1]", None),
        ("[2001:db8::1", None),
        ("2001:db8::1]", None),
        ("[2001:db8::1]80", None),
        ("[2001:db8::1%eth0]", None),
        ("[2001:db8::1]:", None),
        ("example.com", None),
        ("unix:/path", None),
        (" 192.0.2.1", None),
    ] {
        assert_eq!(address(Node::parse(text.as_bytes())).as_deref(), expected, "{text:?}");
    }
    assert_eq!(Node::parse(b"unix:"), Node::Unix);
    assert_eq!(Node::parse(b"\xff"), Node::Unknown);
    assert_eq!(
        Node::parse(b"::ffff:10.0.0.1").address(),
        Some([10, 0, 0, 1].into()),
        "a mapped address is what it maps"
    );
}

/// Hops and client, as text.
fn traced(field: &str) -> Option<(usize, Option<String>)> {
    let lines: Vec<&[u8]> = field.split('\n').map(str::as_bytes).collect();
    trace(nodes(&lines), is_proxy).map(|trace| (trace.hops, address(trace.client)))
}

#[test]
fn the_client_is_the_first_one_from_the_right_that_is_not_trusted() {
    for (field, hops, client) in [
        ("192.0.2.1", 0, Some("192.0.2.1")),
        ("6.6.6.6, 192.0.2.1", 0, Some("192.0.2.1")),
        ("192.0.2.1, 10.0.0.1", 1, Some("192.0.2.1")),
        ("6.6.6.6, 192.0.2.1, 10.0.0.1, 10.0.0.2", 2, Some("192.0.2.1")),
        ("6.6.6.6\n192.0.2.1\n10.0.0.1", 1, Some("192.0.2.1")),
        ("6.6.6.6,192.0.2.1 ,, \t10.0.0.1:80,", 1, Some("192.0.2.1")),
        ("192.0.2.1:4000", 0, Some("192.0.2.1:4000")),
        ("2001:db8::1, ::ffff:10.0.0.1", 1, Some("2001:db8::1")),
        // All are trusted: the farthest node is the client.
        ("10.0.0.3, 10.0.0.2", 1, Some("10.0.0.3")),
        // Members beyond an unknown node are not trusted.
        ("192.0.2.1, unknown", 0, None),
        ("192.0.2.1, _hidden, 10.0.0.1", 1, Some("10.0.0.1")),
        ("192.0.2.1, nonsense\" x, 10.0.0.1", 1, Some("10.0.0.1")),
        ("192.0.2.1, unix:", 0, None),
    ] {
        assert_eq!(traced(field), Some((hops, client.map(Into::into))), "{field:?}");
    }
    assert_eq!(traced(""), None);
    assert_eq!(traced(" ,, \n,"), None);
}

#[test]
fn a_unix_socket_between_two_proxies_can_be_trusted() {
    let lines: [&[u8]; 1] = [b"192.0.2.1, 10.0.0.1, unix:"];
    let is_trusted = |node| node == Node::Unix || is_proxy(node);
    let found = trace(nodes(&lines), is_trusted).expect("nodes");
    assert_eq!((found.hops, address(found.client).as_deref()), (2, Some("192.0.2.1")));
}

#[test]
fn nobody_is_traced_farther_than_the_limit() {
    let field = format!("192.0.2.1{}", ", 10.0.0.1".repeat(100));
    assert_eq!(traced(&field), Some((MAX_HOPS - 1, Some("10.0.0.1".into()))));
}

#[test]
fn another_list_is_read_at_the_same_hop() {
    for (field, hops, expected) in [
        ("https", 0, Some("https")),
        ("https", 3, Some("https")),
        ("https, http", 0, Some("http")),
        ("https, http", 1, Some("https")),
        ("https, http", 2, Some("https")),
        ("forged, https, http", 1, Some("https")),
        ("forged\nhttps ,\nhttp", 1, Some("https")),
        (",", 0, None),
    ] {
        let lines: Vec<&[u8]> = field.split('\n').map(str::as_bytes).collect();
        assert_eq!(
            member_of_hop(&lines, hops),
            expected.map(str::as_bytes),
            "{field:?} {hops}"
        );
    }
    assert_eq!(members_from_last(&[]).count(), 0);
}

fn read(line: &str) -> Result<Vec<Element<'_>>, Error> {
    let mut elements = Vec::new();
    read_elements(line.as_bytes(), &mut elements).map(|()| elements)
}

#[test]
fn an_element_has_parameters_in_any_order_and_case() {
    let elements =
        read("For=\"[2001:db8::1]:80\";PROTO=https;by=_a;host=\"a\\.example:1\" , for=192.0.2.1;;x=y,,proto=http")
            .expect("valid");
    let client = |element: &Element<'_>| element.client.and_then(address);
    assert_eq!(
        elements.iter().map(client).collect::<Vec<_>>(),
        [Some("[2001:db8::1]:80".into()), Some("192.0.2.1".into()), None]
    );
    assert_eq!(elements[0].scheme, Some(Cow::Borrowed(&b"https"[..])));
    assert_eq!(elements[0].host, Some(Cow::Borrowed(&b"a.example:1"[..])));
    assert_eq!((&elements[1].scheme, &elements[1].host), (&None, &None));
    assert_eq!(elements[2].scheme, Some(Cow::Borrowed(&b"http"[..])));
    assert_eq!(read(""), Ok(Vec::new()));
    assert_eq!(
        client(&read("for=2001:db8::1").expect("lenient")[0]).as_deref(),
        Some("2001:db8::1")
    );
}

#[test]
fn only_the_last_elements_are_kept() {
    let line = (0..100)
        .map(|number| format!("for=10.0.0.{number}"))
        .collect::<Vec<_>>()
        .join(",");
    let elements = read(&line).expect("valid");
    assert_eq!(elements.len(), MAX_HOPS);
    assert_eq!(
        elements[MAX_HOPS - 1].client.and_then(address).as_deref(),
        Some("10.0.0.99")
    );
}

#[test]
fn a_malformed_field_is_an_error_whatever_follows_it() {
    for line in [
        "for",
        "for=\"192.0.2.1",
        "for=\"192.0.2.1\\\"",
        "for=\"x, for=192.0.2.1",
        "for=\"x, for=\"[2001:db8::1]\"",
        "for=192.0.2.1;for=192.0.2.2",
        "for=192.0.2.1;For=192.0.2.1",
        "host=a;host=b",
        "=192.0.2.1",
        "fo r=192.0.2.1",
        "for =192.0.2.1",
        "for= 192.0.2.1",
        "for=a b",
        "for=a\"b\"",
        "192.0.2.1",
        "for=\u{fc}",
    ] {
        assert_eq!(read(line), Err(Error::InvalidForwarded), "{line}");
        assert_eq!(elements(&[b"for=192.0.2.7", line.as_bytes(), b"for=10.0.0.1"]), None);
    }
}

#[test]
fn nothing_that_a_client_sends_counts_for_more_than_what_a_trusted_proxy_adds() {
    let parts: [&[u8]; 20] = [
        b"for=",
        b"\"",
        b"\\",
        b",",
        b";",
        b" ",
        b"10.0.0.1",
        b"6.6.6.6",
        b"for=10.0.0.1",
        b"for=6.6.6.6",
        b"[::1]",
        b"=",
        b"proto=https",
        b"host=",
        b"unknown",
        b"_x",
        b":",
        b"unix:",
        b"\xff",
        b"\t",
    ];
    let mut state = 11u64;
    let mut random = |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for _ in 0..20_000 {
        let sent: Vec<u8> = (0..random(9))
            .flat_map(|_| parts[random(parts.len())].to_vec())
            .collect();
        check::nothing_forged_counts(&sent);
    }
}
