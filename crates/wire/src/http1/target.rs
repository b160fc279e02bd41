//! The request target (RFC 9112 §3.2), and the authority that it or the Host field names (RFC 9110 §7.2).

use crate::{Error, Span};
use std::net::Ipv6Addr;

/// The form of a request target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`, as clients send it to servers.
    #[default]
    Origin,
    /// `http://authority/path?query`, as clients send it to proxies; servers must accept it.
    Absolute,
    /// `*`, with OPTIONS only.
    Asterisk,
}

/// The parts of a request target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The form of the target as sent.
    pub form: TargetForm,
    /// The path as sent, not decoded. Empty for an absolute-form without a path, which means `/`; `*` for
    /// asterisk-form.
    pub path: Span,
    /// The text after the first `?`, if there is one; may be empty.
    pub query: Option<Span>,
    /// Host and port of an absolute-form.
    pub authority: Option<Span>,
}

impl Target {
    /// Splits the target at `span` in `bytes`. The caller has checked that all of its bytes may occur in a target.
    pub(super) fn split(method: &[u8], bytes: &[u8], span: Span) -> Result<Target, Error> {
        let target = span.of(bytes);
        match target {
            [b'/', ..] => Ok(Target::default().with_path(target, span, 0)),
            b"*" if method == b"OPTIONS" => Ok(Target {
                form: TargetForm::Asterisk,
                path: span,
                ..Target::default()
            }),
            _ => Target::split_absolute(target, span),
        }
    }

    fn split_absolute(target: &[u8], span: Span) -> Result<Target, Error> {
        let start = scheme(target).ok_or(Error::InvalidTarget)?;
        let end = target[start..]
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?'))
            .map_or(target.len(), |length| start + length);
        if host_and_port(&target[start..end]).is_none() {
            return Err(Error::InvalidTarget);
        }
        let absolute = Target {
            form: TargetForm::Absolute,
            authority: Some(span.part(start, end)),
            ..Target::default()
        };
        Ok(absolute.with_path(target, span, end))
    }

    #[inline]
    fn with_path(mut self, target: &[u8], span: Span, start: usize) -> Target {
        match memchr::memchr(b'?', &target[start..]) {
            None => self.path = span.part(start, target.len()),
            Some(length) => {
                let mark = start + length;
                self.path = span.part(start, mark);
                self.query = Some(span.part(mark + 1, target.len()));
            }
        }
        self
    }
}

/// Returns true if a target may contain `byte`: visible ASCII except `#`. That is more than RFC 3986 permits, because
/// browsers send `|`, `^`, `{` and others unencoded; but they never send bytes beyond ASCII.
#[inline]
pub(super) fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}

/// The length of `http://` or `https://` at the start of `target`.
fn scheme(target: &[u8]) -> Option<usize> {
    let begins = |scheme: &&[u8]| {
        target
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let schemes: [&[u8]; 2] = [b"http://", b"https://"];
    schemes.into_iter().find(begins).map(<[u8]>::len)
}

/// Splits `uri-host [ ":" port ]` (RFC 9110 §7.2) into the host, with the brackets of an IPv6 address, and the port.
/// `None` for anything else: user information, an empty host, a byte that no host has, a port above 65535.
pub fn host_and_port(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let host_length = match authority {
        [b'[', rest @ ..] => {
            let end = memchr::memchr(b']', rest)?;
            std::str::from_utf8(&rest[..end]).ok()?.parse::<Ipv6Addr>().ok()?;
            end + 2
        }
        _ => {
            let end = memchr::memchr(b':', authority).unwrap_or(authority.len());
            is_registered_name(&authority[..end]).then_some(end)?
        }
    };
    let (host, rest) = authority.split_at(host_length);
    match rest {
        [] | [b':'] => Some((host, None)),
        [b':', digits @ ..] => Some((host, Some(parse_port(digits)?))),
        _ => None,
    }
}

/// `reg-name` of RFC 3986 §3.2.2, which includes IPv4 addresses; at least one byte, and no comma, because some proxies
/// join two Host fields with a comma.
fn is_registered_name(host: &[u8]) -> bool {
    let mut rest = host;
    loop {
        rest = match rest {
            [] => return !host.is_empty(),
            [b'%', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => tail,
            [byte, tail @ ..] if is_host_byte(*byte) => tail,
            _ => return false,
        };
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'='
        )
}

fn parse_port(digits: &[u8]) -> Option<u16> {
    if digits.len() > 5 {
        return None;
    }
    digits.iter().try_fold(0u16, |port, digit| {
        let digit = digit.is_ascii_digit().then(|| u16::from(digit - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Form, path, query and authority.
    type Parts<'a> = (TargetForm, &'a str, Option<&'a str>, Option<&'a str>);

    fn split<'a>(method: &str, target: &'a str) -> Result<Parts<'a>, Error> {
        let bytes = target.as_bytes();
        let span = Span {
            start: 0,
            end: bytes.len() as u32,
        };
        let parts = Target::split(method.as_bytes(), bytes, span)?;
        let text = |span: Span| &target[span.start as usize..span.end as usize];
        Ok((
            parts.form,
            text(parts.path),
            parts.query.map(text),
            parts.authority.map(text),
        ))
    }

    #[test]
    fn origin_form() {
        let origin = TargetForm::Origin;
        assert_eq!(split("GET", "/"), Ok((origin, "/", None, None)));
        assert_eq!(split("GET", "/a?b"), Ok((origin, "/a", Some("b"), None)));
        assert_eq!(split("GET", "/a?"), Ok((origin, "/a", Some(""), None)));
        assert_eq!(split("GET", "/a?b?c"), Ok((origin, "/a", Some("b?c"), None)));
        assert_eq!(split("GET", "//a/../"), Ok((origin, "//a/../", None, None)));
        assert_eq!(split("GET", "/http://a/"), Ok((origin, "/http://a/", None, None)));
    }

    #[test]
    fn absolute_form() {
        let form = TargetForm::Absolute;
        assert_eq!(split("GET", "http://a/b?c"), Ok((form, "/b", Some("c"), Some("a"))));
        assert_eq!(split("GET", "HTTPS://a:1"), Ok((form, "", None, Some("a:1"))));
        assert_eq!(split("GET", "http://a?c/d"), Ok((form, "", Some("c/d"), Some("a"))));
        assert_eq!(
            split("GET", "http://[::1]:80/"),
            Ok((form, "/", None, Some("[::1]:80")))
        );
    }

    #[test]
    fn asterisk_form_is_for_options() {
        assert_eq!(split("OPTIONS", "*"), Ok((TargetForm::Asterisk, "*", None, None)));
        assert_eq!(split("GET", "*"), Err(Error::InvalidTarget));
        assert_eq!(split("OPTIONS", "*?a"), Err(Error::InvalidTarget));
    }

    #[test]
    fn other_targets_are_refused() {
        for bad in [
            "a",
            "a/b",
            "?a",
            "a:80",
            "http:/a/",
            "http:a",
            "http://",
            "http:///a",
            "http://:80/",
            "http://user@a/",
            "http://a:b/",
            "http://a:65536/",
            "ftp://a/",
            "javascript:x",
            "\\a",
            ".",
        ] {
            assert_eq!(split("GET", bad), Err(Error::InvalidTarget), "{bad:?}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        let split = |text: &'static str| host_and_port(text.as_bytes());
        assert_eq!(split("a"), Some((&b"a"[..], None)));
        assert_eq!(split("a:"), Some((&b"a"[..], None)));
        assert_eq!(split("a:65535"), Some((&b"a"[..], Some(65535))));
        assert_eq!(split("127.0.0.1:00080"), Some((&b"127.0.0.1"[..], Some(80))));
        assert_eq!(split("[::1]:8080"), Some((&b"[::1]"[..], Some(8080))));
        assert_eq!(split("a_b-c.d~%41"), Some((&b"a_b-c.d~%41"[..], None)));
        for bad in [
            "",
            ":80",
            "a:65536",
            "a:000080",
            "a:-1",
            "a:+1",
            "a:8o",
            "a:1:2",
            "a b",
            "a/b",
            "a@b",
            "a?b",
            "a\\b",
            "a\tb",
            "<a>",
            "a,b",
            "%",
            "%4",
            "%zz",
            "::1",
            "[::1",
            "[]",
            "[a]",
            "[::1]a",
            "[::1%25eth0]",
            "[v1.x]",
            "[[::1]]",
            "ä",
            "a\"",
        ] {
            assert_eq!(split(bad), None, "{bad:?}");
        }
    }
}
