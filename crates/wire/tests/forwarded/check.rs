//! Properties of every value that a client may send in fields that only a proxy should set; the fuzzer checks them,
//! too.

use fairlead_wire::forwarded::{member_of_hop, members_from_last, read_elements, trace, Node, Trace, MAX_HOPS};
use std::net::IpAddr;

/// The member that a proxy appends: the address of the client.
const CLIENT: &str = "203.0.113.9";

/// Returns true for the address of a proxy: 10.0.0.0/8.
pub(crate) fn is_proxy(node: Node) -> bool {
    matches!(node.address(), Some(IpAddr::V4(address)) if address.octets()[0] == 10)
}

pub(crate) fn nodes<'a>(lines: &'a [&'a [u8]]) -> impl Iterator<Item = Node> + 'a {
    members_from_last(lines).map(Node::parse)
}

/// The nodes of `Forwarded`, the last one first; `None` if it is malformed.
pub(crate) fn elements(lines: &[&[u8]]) -> Option<Vec<Node>> {
    let mut elements = Vec::new();
    for line in lines {
        read_elements(line, &mut elements).ok()?;
    }
    assert!(elements.len() <= MAX_HOPS);
    let client = |element: fairlead_wire::forwarded::Element<'_>| element.client.unwrap_or(Node::Unknown);
    Some(elements.into_iter().rev().map(client).collect())
}

/// No input of a client changes the result for the members that proxies append, in the same line or in another one.
pub(crate) fn nothing_forged_counts(sent: &[u8]) {
    if sent.contains(&b'\n') || sent.contains(&b'\r') {
        return; // never in a field value
    }
    let expected = |hops| {
        let client = Node::parse(CLIENT.as_bytes());
        Some(Trace { hops, client })
    };
    for (hops, appended) in [(0, vec![CLIENT]), (2, vec![CLIENT, "10.0.0.1:80", "10.0.0.2"])] {
        let in_line = [sent, b", ", appended.join(",").as_bytes()].concat();
        let in_lines: Vec<&[u8]> = std::iter::once(sent)
            .chain(appended.iter().map(|text| text.as_bytes()))
            .collect();
        assert_eq!(trace(nodes(&[&in_line]), is_proxy), expected(hops));
        assert_eq!(trace(nodes(&in_lines), is_proxy), expected(hops));
        assert_eq!(member_of_hop(&in_lines, hops), Some(CLIENT.as_bytes()));

        let appended: Vec<String> = appended.iter().map(|text| format!("for=\"{text}\"")).collect();
        let in_line = [sent, b", ", appended.join(", ").as_bytes()].concat();
        let in_lines: Vec<&[u8]> = std::iter::once(sent)
            .chain(appended.iter().map(|text| text.as_bytes()))
            .collect();
        for lines in [&[&in_line[..]][..], &in_lines] {
            if let Some(nodes) = elements(lines) {
                assert_eq!(trace(nodes.into_iter(), is_proxy), expected(hops), "{sent:?}");
            }
        }
    }
    trace(nodes(&[sent]), |_| true);
    trace(elements(&[sent]).into_iter().flatten(), |_| true);
}
