//! A request of HTTP/2 as a head of HTTP/1, so that one parser judges both: targets, hosts, fields and limits have the
//! same rules, and a request that moves to another worker has one form.
//!
//! `h2` has checked what is particular to HTTP/2 (RFC 9113 §8.2, §8.3): names in lower case, no fields of the connection,
//! each pseudo-header at most once and before the fields.

use crate::Error;

/// The pseudo-headers of a request (RFC 9113 §8.3.1), and the protocol of an extended CONNECT (RFC 8441 §4).
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `:method`
    pub method: &'a [u8],
    /// `:authority`, if it is there.
    pub authority: Option<&'a [u8]>,
    /// `:path`; empty for a CONNECT without protocol.
    pub path: &'a [u8],
    /// `:protocol`, if it is there.
    pub protocol: Option<&'a [u8]>,
}

/// The key that stands for the one which a WebSocket over HTTP/2 does not have (RFC 8441 §5): 16 zero bytes.
const NO_KEY: &[u8] = b"AAAAAAAAAAAAAAAAAAAAAA==";

/// Writes the head of a request to `out`. `fields`: names and values, in order. An extended CONNECT
/// becomes what asks for the same in HTTP/1: a GET that offers to upgrade. Crumbs of `cookie` become one field (RFC 9113
/// §8.2.3).
///
/// # Errors
/// If `:authority` and Host are not the same (RFC 9113 §8.3.1).
pub fn write_head<'a, I>(head: &RequestHead<'_>, fields: impl Fn() -> I, out: &mut Vec<u8>) -> Result<(), Error>
where
    I: Iterator<Item = (&'a [u8], &'a [u8])>,
{
    let method = if head.protocol.is_some() { b"GET" } else { head.method };
    let target = if head.path.is_empty() {
        head.authority.unwrap_or(b"/")
    } else {
        head.path
    };
    for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    if let Some(authority) = head.authority {
        line(b"host", authority, out);
    }
    if let Some(protocol) = head.protocol {
        line(b"connection", b"upgrade", out);
        line(b"upgrade", protocol, out);
        if protocol == b"websocket" {
            line(b"sec-websocket-key", NO_KEY, out);
        }
    }
    let mut has_cookie = false;
    for (name, value) in fields() {
        match name {
            b"host" => match head.authority {
                Some(authority) if authority.eq_ignore_ascii_case(value) => {}
                Some(_) => return Err(Error::HostContradictsAuthority),
                None => line(name, value, out),
            },
            b"cookie" if has_cookie => {}
            b"cookie" => {
                has_cookie = true;
                cookies(fields(), out);
            }
            b"sec-websocket-key" if head.protocol.is_some() => {}
            _ => line(name, value, out),
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// All cookies as one field.
fn cookies<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"cookie: ");
    let crumbs = fields.filter(|(name, _)| *name == b"cookie");
    for (index, (_, crumb)) in crumbs.enumerate() {
        if index > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(crumb);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Head, HeadLimits};

    const PLAIN: RequestHead<'_> = RequestHead {
        method: b"GET",
        authority: Some(b"shop.example"),
        path: b"/a?b",
        protocol: None,
    };

    fn written(head: RequestHead<'_>, fields: &[(&'static str, &'static str)]) -> Result<String, Error> {
        let mut out = Vec::new();
        let fields = || fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        write_head(&head, fields, &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn a_request_becomes_the_same_in_http1() {
        assert_eq!(
            written(PLAIN, &[("accept", "*/*"), ("te", "trailers")]).as_deref(),
            Ok("GET /a?b HTTP/1.1\r\nhost: shop.example\r\naccept: */*\r\nte: trailers\r\n\r\n")
        );
        let asterisk = RequestHead {
            method: b"OPTIONS",
            path: b"*",
            ..PLAIN
        };
        assert_eq!(
            written(asterisk, &[]).as_deref(),
            Ok("OPTIONS * HTTP/1.1\r\nhost: shop.example\r\n\r\n")
        );
    }

    #[test]
    fn crumbs_of_cookies_become_one_field_where_the_first_one_was() {
        let fields = [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")];
        assert_eq!(
            written(PLAIN, &fields).as_deref(),
            Ok("GET /a?b HTTP/1.1\r\nhost: shop.example\r\ncookie: a=1; b=2; c=3\r\nx: y\r\n\r\n")
        );
    }

    #[test]
    fn host_may_repeat_the_authority_and_not_contradict_it() {
        let fields = [("host", "SHOP.example")];
        assert_eq!(
            written(PLAIN, &fields).as_deref(),
            Ok("GET /a?b HTTP/1.1\r\nhost: shop.example\r\n\r\n")
        );
        assert_eq!(
            written(PLAIN, &[("host", "other")]),
            Err(Error::HostContradictsAuthority)
        );
        let bare = RequestHead {
            authority: None,
            ..PLAIN
        };
        assert_eq!(
            written(bare, &[("host", "a")]).as_deref(),
            Ok("GET /a?b HTTP/1.1\r\nhost: a\r\n\r\n")
        );
    }

    #[test]
    fn an_extended_connect_asks_for_a_web_socket() {
        let connect = RequestHead {
            method: b"CONNECT",
            protocol: Some(b"websocket"),
            ..PLAIN
        };
        let fields = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "x"),
            ("origin", "null"),
        ];
        let text = written(connect, &fields).expect("a head");
        let mut head = Head::default();
        let limits = HeadLimits {
            head_bytes: 1_000,
            fields: 20,
            target_bytes: 100,
        };
        assert_eq!(head.parse(text.as_bytes(), &limits), Ok(true));
        assert!(
            head.upgrade && crate::websocket::handshake(&head, text.as_bytes()).is_ok(),
            "{text}"
        );
        assert!(!text.contains("key: x"));
    }

    #[test]
    fn a_connect_is_refused_as_in_http1() {
        let connect = RequestHead {
            method: b"CONNECT",
            path: b"",
            ..PLAIN
        };
        let text = written(connect, &[]).expect("a head");
        let limits = HeadLimits {
            head_bytes: 1_000,
            fields: 20,
            target_bytes: 100,
        };
        assert_eq!(
            Head::default().parse(text.as_bytes(), &limits),
            Err(Error::UnsupportedMethod)
        );
    }
}
