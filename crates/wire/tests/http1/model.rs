//! A second implementation: reads heads and chunked bodies in the most naive way from complete input, written from the
//! RFCs and not from the parser. It is slow and copies everything; it only has to be obviously right.

use fairlead_wire::{Framing, HeadLimits};

/// A head that the model accepts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) len: usize,
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) minor: u8,
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
}

/// The head at the start of `bytes`, or nothing if it is incomplete or has a fault.
pub(crate) fn head(bytes: &[u8], limits: &HeadLimits) -> Option<Head> {
    let rest = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    let end = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
    let len = bytes.len() - rest.len() + end + 4;
    let lines = lines(&rest[..end])?;
    let (request_line, field_lines) = lines.split_first()?;
    let [method, target, version]: [&[u8]; 3] = split(request_line, b' ').try_into().ok()?;
    let minor = match version.strip_prefix(b"HTTP/1.")? {
        [digit] if digit.is_ascii_digit() => (digit - b'0').min(1),
        _ => return None,
    };
    let target_is_clean = target.iter().all(|byte| (0x21..=0x7e).contains(byte) && *byte != b'#');
    let fields = field_lines.iter().map(|line| field(line)).collect::<Option<Vec<_>>>()?;
    let fits = len <= limits.head_bytes
        && fields.len() <= limits.fields
        && target.len() <= limits.target_bytes
        && method.len() <= 64;
    let head = Head {
        len,
        method: method.to_vec(),
        target: target.to_vec(),
        minor,
        framing: framing(&fields, minor)?,
        keep_alive: keep_alive(&fields, minor),
        fields,
    };
    (fits && is_token(method) && target_is_clean && may_be_served(&head)).then_some(head)
}

fn lines(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines.push(rest);
    let clean = |line: &&[u8]| line.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    lines.iter().all(clean).then_some(lines)
}

fn split(bytes: &[u8], mark: u8) -> Vec<&[u8]> {
    bytes.split(|byte| *byte == mark).collect()
}

fn field(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = &line[..colon];
    is_token(name).then(|| (name.to_vec(), trim(&line[colon + 1..])))
}

fn trim(bytes: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = bytes.iter().position(|byte| !blank(byte)).unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    bytes[start..end].to_vec()
}

fn is_token(bytes: &[u8]) -> bool {
    let marks = b"!#$%&'*+-.^_`|~";
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || marks.contains(byte))
}

fn values(fields: &[(Vec<u8>, Vec<u8>)], name: &str) -> Vec<Vec<u8>> {
    let named = fields
        .iter()
        .filter(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
    named.map(|(_, value)| value.to_ascii_lowercase()).collect()
}

fn framing(fields: &[(Vec<u8>, Vec<u8>)], minor: u8) -> Option<Framing> {
    for lookalike in ["content_length", "transfer_encoding"] {
        if !values(fields, lookalike).is_empty() {
            return None;
        }
    }
    match (
        &values(fields, "content-length")[..],
        &values(fields, "transfer-encoding")[..],
    ) {
        ([], []) => Some(Framing::Empty),
        ([digits], []) => {
            let text = std::str::from_utf8(digits).ok()?;
            let length: i64 = text.parse().ok()?;
            (length.to_string() == text && length >= 0).then_some(Framing::Length(length as u64))
        }
        ([], [coding]) if coding == b"chunked" && minor == 1 => Some(Framing::Chunked),
        _ => None,
    }
}

fn keep_alive(fields: &[(Vec<u8>, Vec<u8>)], minor: u8) -> bool {
    let listed = values(fields, "connection").join(&b","[..]);
    let options: Vec<Vec<u8>> = split(&listed, b',').into_iter().map(trim).collect();
    let has = |option: &[u8]| options.iter().any(|found| found == option);
    !has(b"close") && (minor == 1 || has(b"keep-alive"))
}

/// Returns true if this server serves the well-formed head: checks method, target, Host and Expect.
fn may_be_served(head: &Head) -> bool {
    let expectations = values(&head.fields, "expect").join(&b","[..]);
    let expected = split(&expectations, b',').into_iter().map(trim);
    let hosts = values(&head.fields, "host");
    let host_is_fine = match &hosts[..] {
        [] => head.minor == 0,
        [host] => is_authority(host),
        _ => false,
    };
    let target = head.target.to_ascii_lowercase();
    let target_is_fine = if let Some(rest) = target.strip_prefix(b"http://") {
        absolute(rest)
    } else if let Some(rest) = target.strip_prefix(b"https://") {
        absolute(rest)
    } else {
        target.starts_with(b"/") || (target == b"*" && head.method == b"OPTIONS")
    };
    head.method != b"CONNECT"
        && host_is_fine
        && target_is_fine
        && expected.into_iter().all(|one| one.is_empty() || one == b"100-continue")
}

fn absolute(rest: &[u8]) -> bool {
    let named = rest.split(|byte| *byte == b'/' || *byte == b'?').next();
    named.is_some_and(is_authority)
}

/// Returns true for host and port, in lower case.
fn is_authority(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let (host, port) = match text.rfind(':').filter(|colon| !text[*colon..].contains(']')) {
        Some(colon) => (&text[..colon], &text[colon + 1..]),
        None => (text, ""),
    };
    let port_is_fine = port.is_empty()
        || (port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok());
    let host_is_fine = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_registered_name(host),
    };
    port_is_fine && host_is_fine
}

fn is_registered_name(host: &str) -> bool {
    let mut pieces = host.split('%');
    let plain = |piece: &str| {
        piece
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(&byte))
    };
    let escaped = |piece: &str| piece.len() >= 2 && piece.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    !host.is_empty() && pieces.next().is_some_and(plain) && pieces.all(|piece| escaped(piece) && plain(&piece[2..]))
}

/// The data of the chunked body at the start of `bytes` and its length, or nothing if it is incomplete or has a fault.
/// Ignores the limits on extensions and trailers.
pub(crate) fn chunked(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut data = Vec::new();
    let mut rest = bytes;
    loop {
        let line = line(&mut rest)?;
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, extensions) = line.split_at(digits);
        let size = i64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if digits.len() > 16 || !extensions_are_fine(extensions) {
            return None;
        }
        if size == 0 {
            break;
        }
        let chunk = rest.get(..usize::try_from(size).ok()?)?;
        data.extend_from_slice(chunk);
        rest = rest[chunk.len()..].strip_prefix(b"\r\n")?;
    }
    loop {
        let line = line(&mut rest)?;
        if line.is_empty() {
            return Some((data, bytes.len() - rest.len()));
        }
        let (name, _) = field(line)?;
        let clean = line.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
        let cgi = String::from_utf8(name).ok()?.to_lowercase().replace('_', "-");
        if !clean || FRAMING_OR_ROUTING.contains(&cgi.as_str()) {
            return None;
        }
    }
}

const FRAMING_OR_ROUTING: [&str; 22] = [
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "proxy-connection",
    "max-forwards",
    "content-encoding",
    "content-type",
    "content-range",
    "authorization",
    "proxy-authorization",
    "cookie",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
];

/// Removes a line from `rest`; it must end with CRLF, which is left out.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = rest[..end].strip_suffix(b"\r")?;
    *rest = &rest[end + 1..];
    (!line.contains(&b'\r')).then_some(line)
}

/// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`, by recursion.
fn extensions_are_fine(bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let Some(rest) = skip_blank(bytes).strip_prefix(b";") else {
        return false;
    };
    let Some(rest) = skip_token(skip_blank(rest)) else {
        return false;
    };
    let Some(value) = skip_blank(rest).strip_prefix(b"=") else {
        return extensions_are_fine(rest);
    };
    let value = skip_blank(value);
    match value.strip_prefix(b"\"") {
        Some(quoted) => skip_quoted(quoted).is_some_and(extensions_are_fine),
        None => skip_token(value).is_some_and(extensions_are_fine),
    }
}

fn skip_blank(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &bytes[length..]
}

fn skip_token(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.iter().take_while(|byte| is_token(&[**byte])).count();
    (length > 0).then(|| &bytes[length..])
}

fn skip_quoted(bytes: &[u8]) -> Option<&[u8]> {
    let text = |byte: u8| byte == b'\t' || !byte.is_ascii_control();
    match bytes {
        [b'"', rest @ ..] => Some(rest),
        [b'\\', escaped, rest @ ..] if text(*escaped) => skip_quoted(rest),
        [byte, rest @ ..] if *byte != b'\\' && text(*byte) => skip_quoted(rest),
        _ => None,
    }
}
