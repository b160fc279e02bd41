//! A second implementation: an HTTP/2 request as a head of HTTP/1, written from the RFCs and not from the code. A
//! request that it refuses must not be accepted in any form.

use fairlead_wire::http2::RequestHead;

/// A name and a value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The lines of a request, the first one in three parts; `None` if the request is malformed (RFC 9113 §8.2, §8.3, RFC
/// 8441 §4), or for a protocol other than WebSocket.
pub(crate) fn lines(head: &RequestHead<'_>, fields: &[Pair]) -> Option<(Vec<u8>, Vec<u8>, Vec<Pair>)> {
    let is_tunnel = match head.protocol {
        None => false,
        Some(protocol) => {
            let is_known = String::from_utf8_lossy(protocol).eq_ignore_ascii_case("websocket");
            is_known.then_some(true)?
        }
    };
    if let Some(scheme) = head.scheme {
        let scheme = String::from_utf8_lossy(scheme).to_lowercase();
        ["http", "https"].contains(&scheme.as_str()).then_some(())?;
    }
    let mut lines: Vec<Pair> = Vec::new();
    let pair = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    lines.extend(head.authority.map(|authority| pair("host", authority)));
    if is_tunnel {
        lines.push(pair("connection", b"upgrade"));
        lines.push(pair("upgrade", b"websocket"));
        lines.push(pair("sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="));
    }
    for (name, value) in fields {
        match (name.as_slice(), head.authority) {
            (b"host", Some(authority)) => authority.eq_ignore_ascii_case(value).then_some(())?,
            (b"content-length", _) if is_tunnel => return None,
            (b"sec-websocket-key", _) if is_tunnel => {}
            (b"cookie", _) => match lines.iter_mut().find(|(name, _)| name == b"cookie") {
                Some((_, cookies)) => {
                    is_plain(value).then_some(())?;
                    cookies.extend_from_slice(b"; ");
                    cookies.extend_from_slice(value);
                }
                None => lines.push((name.clone(), value.clone())),
            },
            _ => lines.push((name.clone(), value.clone())),
        }
    }
    // An empty `cookie` value at the end leaves a space at the end of the line, which is no fault.
    let are_plain = |(name, value): &Pair| is_token(name) && (is_plain(value) || name == b"cookie");
    lines.iter().all(are_plain).then_some(())?;
    let first_cookie = fields.iter().find(|(name, _)| name == b"cookie");
    first_cookie.is_none_or(|(_, value)| is_plain(value)).then_some(())?;
    let method = if is_tunnel {
        b"GET".to_vec()
    } else {
        head.method.to_vec()
    };
    let target = match head.path {
        b"" if method == b"CONNECT" => head.authority?,
        b"" => return None,
        path => path,
    };
    let has_space = target
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
    (is_token(&method) && !has_space).then_some((method, target.to_vec(), lines))
}

/// The lines as text.
pub(crate) fn text((method, target, lines): &(Vec<u8>, Vec<u8>, Vec<Pair>)) -> Vec<u8> {
    let mut text = [method, &b" "[..], target, b" HTTP/1.1\r\n"].concat();
    for (name, value) in lines {
        text.extend([name, &b": "[..], value, b"\r\n"].concat());
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn is_token(bytes: &[u8]) -> bool {
    let is_mark = |byte: &u8| b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Returns true for a value on one line that trimming does not change.
fn is_plain(value: &[u8]) -> bool {
    let ends = [value.first(), value.last()];
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) && !ends.into_iter().any(is_space)
}
