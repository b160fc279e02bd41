//! Writes an HTTP/2 request as a head of HTTP/1, so that one parser checks both: targets, hosts, fields and limits have
//! the same rules, and a request that migrates to another worker has one form.
//!
//! `h2` has checked most rules that are specific to HTTP/2 (RFC 9113 §8.2, §8.3): names in lower case, no
//! connection-specific fields, each pseudo-header at most once and before the fields. It does not check text: h2 lets
//! any UTF-8 pass in `:protocol`, even line breaks. So no value is written here that could end its line, whatever its
//! source.

use crate::http1::fields::{is_token_byte, is_valid_field_name, is_valid_field_value, trim};
use crate::Error;

/// The pseudo-headers of a request (RFC 9113 §8.3.1), and the protocol of an extended CONNECT (RFC 8441 §4).
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `:method`
    pub method: &'a [u8],
    /// `:scheme`, if it is present.
    pub scheme: Option<&'a [u8]>,
    /// `:authority`, if it is present.
    pub authority: Option<&'a [u8]>,
    /// `:path`; empty if it is missing, as in a CONNECT without protocol.
    pub path: &'a [u8],
    /// `:protocol`, if it is present.
    pub protocol: Option<&'a [u8]>,
}

/// A placeholder for the key, which a WebSocket over HTTP/2 does not have (RFC 8441 §5): 16 zero bytes.
const NO_KEY: &[u8] = b"AAAAAAAAAAAAAAAAAAAAAA==";

/// The only protocol of an extended CONNECT that this server supports (RFC 8441 §5).
const WEBSOCKET: &[u8] = b"websocket";

/// Writes the head of a request to `out`. `fields`: names and values, in order. An extended CONNECT becomes the
/// equivalent of HTTP/1: a GET that offers to upgrade. Several `cookie` fields become one (RFC 9113 §8.2.3).
///
/// # Errors
/// If the request is malformed in a way that the text would not show, or that the parser does not know. `out` may then
/// contain a part of the head.
pub fn write_head<'a, I>(head: &RequestHead<'_>, fields: impl Fn() -> I, out: &mut Vec<u8>) -> Result<(), Error>
where
    I: Iterator<Item = (&'a [u8], &'a [u8])>,
{
    let is_tunnel = head.check_protocol()?;
    head.check_scheme()?;
    let method = if is_tunnel { b"GET" } else { head.method };
    let target = match head.path {
        b"" if method == b"CONNECT" => head.authority.unwrap_or_default(),
        b"" => return Err(Error::MissingPath),
        path => path,
    };
    request_line(method, target, out)?;
    if let Some(authority) = head.authority {
        line(b"host", authority, out)?;
    }
    if is_tunnel {
        line(b"connection", b"upgrade", out)?;
        line(b"upgrade", WEBSOCKET, out)?;
        line(b"sec-websocket-key", NO_KEY, out)?;
    }
    let mut has_cookie = false;
    for (name, value) in fields() {
        match name {
            b"host" => match head.authority {
                Some(authority) if authority.eq_ignore_ascii_case(value) => {}
                Some(_) => return Err(Error::HostContradictsAuthority),
                None => line(name, value, out)?,
            },
            b"cookie" if has_cookie => {}
            b"cookie" => {
                has_cookie = true;
                cookies(fields(), out)?;
            }
            b"sec-websocket-key" if is_tunnel => {}
            // The bytes of a tunnel are no content (RFC 9110 §9.3.6), and h2 would end the stream after that many of
            // them.
            b"content-length" if is_tunnel => return Err(Error::ContentLengthOfTunnel),
            _ => line(name, value, out)?,
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

impl RequestHead<'_> {
    /// Returns true for an extended CONNECT. The case of a protocol makes no difference (RFC 9110 §7.8).
    fn check_protocol(&self) -> Result<bool, Error> {
        match self.protocol {
            None => Ok(false),
            Some(protocol) if protocol.eq_ignore_ascii_case(WEBSOCKET) => Ok(true),
            Some([]) => Err(Error::InvalidProtocol),
            Some(protocol) if protocol.iter().all(|byte| is_token_byte(*byte)) => Err(Error::UnsupportedProtocol),
            Some(_) => Err(Error::InvalidProtocol),
        }
    }

    /// A proxy in front may have used TLS or not, so a connection may carry either scheme of HTTP.
    fn check_scheme(&self) -> Result<(), Error> {
        let is = |own: &[u8]| self.scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case(own));
        match is(b"http") || is(b"https") {
            true => Ok(()),
            false => Err(Error::UnsupportedScheme),
        }
    }
}

/// The first line. Single spaces separate its parts.
fn request_line(method: &[u8], target: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if !is_valid_field_name(method) {
        return Err(Error::InvalidMethod);
    }
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ') {
        return Err(Error::InvalidTarget);
    }
    for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    Ok(())
}

fn line(name: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if !is_valid_field_name(name) {
        return Err(Error::InvalidFieldName);
    }
    check_value(value)?;
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Accepts a value that stays on its line and that the parser does not trim (RFC 9113 §8.2.1).
fn check_value(value: &[u8]) -> Result<(), Error> {
    if !is_valid_field_value(value) {
        return Err(Error::LineBreakInValue);
    }
    match trim(value).len() == value.len() {
        true => Ok(()),
        false => Err(Error::SpaceAroundValue),
    }
}

/// All cookies as one field.
fn cookies<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(b"cookie: ");
    let crumbs = fields.filter(|(name, _)| *name == b"cookie");
    for (index, (_, crumb)) in crumbs.enumerate() {
        if index > 0 {
            out.extend_from_slice(b"; ");
        }
        check_value(crumb)?;
        out.extend_from_slice(crumb);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Head, HeadLimits};

    const PLAIN: RequestHead<'_> = RequestHead {
        method: b"GET",
        scheme: Some(b"https"),
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
    fn nothing_that_ends_its_line_is_written_wherever_it_comes_from() {
        for end in ["\r\n", "\r", "\n", "\0"] {
            let text = format!("a{end}x: y");
            let bytes = text.as_bytes();
            for (head, error) in [
                (RequestHead { method: bytes, ..PLAIN }, Error::InvalidMethod),
                (RequestHead { path: bytes, ..PLAIN }, Error::InvalidTarget),
                (
                    RequestHead {
                        scheme: Some(bytes),
                        ..PLAIN
                    },
                    Error::UnsupportedScheme,
                ),
                (
                    RequestHead {
                        authority: Some(bytes),
                        ..PLAIN
                    },
                    Error::LineBreakInValue,
                ),
                (
                    RequestHead {
                        protocol: Some(bytes),
                        ..PLAIN
                    },
                    Error::InvalidProtocol,
                ),
            ] {
                assert_eq!(written(head, &[]), Err(error), "{text:?}");
            }
            for (name, error) in [
                ("x", Error::LineBreakInValue),
                ("cookie", Error::LineBreakInValue),
                ("host", Error::HostContradictsAuthority),
            ] {
                let fields = || [(name.as_bytes(), bytes)].into_iter();
                assert_eq!(write_head(&PLAIN, fields, &mut Vec::new()), Err(error), "{name}");
            }
            let fields = || [(bytes, &b"value"[..])].into_iter();
            assert_eq!(
                write_head(&PLAIN, fields, &mut Vec::new()),
                Err(Error::InvalidFieldName)
            );
        }
    }

    #[test]
    fn white_space_around_a_value_and_schemes_of_others_are_refused() {
        for value in [" a", "a ", "\ta", "a\t", " ", "\t"] {
            let fields = || [(&b"x"[..], value.as_bytes())].into_iter();
            assert_eq!(
                write_head(&PLAIN, fields, &mut Vec::new()),
                Err(Error::SpaceAroundValue),
                "{value:?}"
            );
        }
        assert!(written(PLAIN, &[("x", "a b\tc"), ("empty", "")]).is_ok());
        for (scheme, is_known) in [
            ("http", true),
            ("HTTPS", true),
            ("ftp", false),
            ("wss", false),
            ("", false),
        ] {
            let head = RequestHead {
                scheme: Some(scheme.as_bytes()),
                ..PLAIN
            };
            assert_eq!(written(head, &[]).is_ok(), is_known, "{scheme}");
        }
    }

    #[test]
    fn only_a_connect_may_have_no_path() {
        for method in ["GET", "POST", "OPTIONS", "connect"] {
            let head = RequestHead {
                method: method.as_bytes(),
                path: b"",
                ..PLAIN
            };
            assert_eq!(written(head, &[]), Err(Error::MissingPath), "{method}");
        }
    }

    #[test]
    fn a_tunnel_is_for_a_web_socket_and_has_no_content() {
        let connect = |protocol| RequestHead {
            method: b"CONNECT",
            protocol: Some(protocol),
            ..PLAIN
        };
        let upper = written(connect(b"WebSocket"), &[]).expect("a head");
        assert!(upper.contains("\r\nupgrade: websocket\r\n"), "{upper}");
        for protocol in [&b"connect-udp"[..], b"websockets", b"h2c"] {
            assert_eq!(written(connect(protocol), &[]), Err(Error::UnsupportedProtocol));
        }
        for protocol in [&b""[..], b"web socket", b"websocket,h2c", b"\xff"] {
            assert_eq!(written(connect(protocol), &[]), Err(Error::InvalidProtocol));
        }
        assert_eq!(
            written(connect(b"websocket"), &[("content-length", "0")]),
            Err(Error::ContentLengthOfTunnel)
        );
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
