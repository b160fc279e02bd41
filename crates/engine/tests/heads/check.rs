//! Checks any fields of an HTTP/2 request, from `h2` through the text of a head to the parser. The fuzzer runs this
//! check, too.

use super::head::request_head;
use bytes::Bytes;
use fairlead_wire::{Head, HeadLimits};
use http::Request;
use std::future::Future;
use std::io;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 1 << 16,
    fields: 100,
    target_bytes: 1 << 12,
};

/// A name and a value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Names and values, separated by 0xff, after pseudo-headers that the first byte chooses. The parser's result has
/// exactly the fields that were sent, or the request is refused. Returns true if it is accepted.
pub(crate) fn request(bytes: &[u8]) -> bool {
    let [choice, rest @ ..] = bytes else { return false };
    let parts: Vec<&[u8]> = rest.split(|byte| *byte == 0xff).collect();
    let mut sent: Vec<Pair<'_>> = match choice & 3 {
        0 => Vec::new(),
        1 => vec![(b":method", b"CONNECT"), (b":protocol", b"websocket")],
        2 => vec![(b":method", b"CONNECT")],
        _ => vec![(b":method", b"GET")],
    };
    if choice & 3 != 0 {
        sent.extend([(&b":scheme"[..], &b"https"[..]), (b":authority", b"test")]);
    }
    if choice & 4 != 0 {
        sent.push((b":path", b"/a?b"));
    }
    sent.extend(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])));
    let Some(received) = through_h2(&sent) else {
        return false;
    };
    let mut lines = Vec::new();
    let mut head = Head::default();
    if request_head(&received, &mut lines).is_err() || head.parse(&lines, &LIMITS) != Ok(true) {
        return false;
    }
    assert_eq!(head.len, lines.len(), "nothing follows the head");
    assert_same(&sent, &head, &lines);
    true
}

/// An accepted request has each sent field once, and no other fields.
fn assert_same(sent: &[Pair<'_>], head: &Head, lines: &[u8]) {
    let shown = String::from_utf8_lossy(lines);
    let single = |name: &[u8]| {
        let mut values = sent.iter().filter(|(own, _)| *own == name).map(|(_, value)| *value);
        let first = values.next();
        assert_eq!(values.next(), None, "{shown}");
        first
    };
    let protocol = single(b":protocol");
    let method = if protocol.is_some() {
        Some(&b"GET"[..])
    } else {
        single(b":method")
    };
    assert_eq!(Some(head.method.of(lines)), method, "{shown}");
    // `h2` cuts a fragment off.
    let path = single(b":path").map(|path| path.split(|byte| *byte == b'#').next().unwrap_or_default());
    // A path that is only a query gets a leading slash, as in URIs.
    let target = head.target.of(lines);
    let is_same = path.is_some_and(|path| target == path || target.strip_prefix(b"/") == Some(path));
    assert!(is_same, "{path:?}: {shown}");
    let mut wanted: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    wanted.extend(single(b":authority").map(|value| (b"host".to_vec(), value.to_vec())));
    if let Some(protocol) = protocol {
        assert!(protocol.eq_ignore_ascii_case(b"websocket"), "{shown}");
        let own = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ];
        wanted.extend(own.map(|(name, value)| (name.into(), value.into())));
    }
    let has_authority = !wanted.is_empty() && wanted[0].0 == b"host";
    let is_dropped = |name: &[u8]| {
        name.starts_with(b":") || name == b"host" && has_authority || name == b"sec-websocket-key" && protocol.is_some()
    };
    let cookies: Vec<&[u8]> = sent
        .iter()
        .filter(|(name, _)| *name == b"cookie")
        .map(|pair| pair.1)
        .collect();
    if !cookies.is_empty() {
        wanted.push((b"cookie".to_vec(), cookies.join(&b"; "[..]).trim_ascii_end().to_vec()));
    }
    let others = sent.iter().filter(|(name, _)| *name != b"cookie" && !is_dropped(name));
    wanted.extend(others.map(|(name, value)| (name.to_vec(), value.to_vec())));
    let fields = head.fields.iter();
    let mut found: Vec<_> = fields
        .map(|field| (field.name.of(lines).to_vec(), field.value.of(lines).to_vec()))
        .collect();
    // `h2` only keeps the order of values with the same name.
    found.sort_by(|one, other| one.0.cmp(&other.0));
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, wanted, "{shown}");
}

/// The request that `h2` makes of the fields, if it accepts them.
fn through_h2(fields: &[Pair<'_>]) -> Option<Request<()>> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // Literals without indexing (RFC 7541 §6.2.2).
    let literals = fields
        .iter()
        .flat_map(|(name, value)| [vec![0], text(name), text(value)].concat());
    let block: Vec<u8> = literals.collect();
    bytes.extend_from_slice(&(block.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[1, 5, 0, 0, 0, 1]);
    bytes.extend_from_slice(&block);
    let context = &mut Context::from_waker(Waker::noop());
    let mut builder = h2::server::Builder::new();
    builder.enable_connect_protocol();
    let mut handshake = pin!(builder.handshake::<_, Bytes>(Input(bytes)));
    let Poll::Ready(Ok(mut connection)) = handshake.as_mut().poll(context) else {
        return None;
    };
    match connection.poll_accept(context) {
        Poll::Ready(Some(Ok((request, _)))) => Some(request.map(|_| ())),
        _ => None,
    }
}

/// Text in HPACK without Huffman coding (RFC 7541 §5.2).
fn text(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![bytes.len().min(127) as u8];
    if let Some(mut rest) = bytes.len().checked_sub(127) {
        while rest >= 128 {
            out.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        out.push(rest as u8);
    }
    out.extend_from_slice(bytes);
    out
}

/// Bytes that have all arrived; written bytes are discarded.
struct Input(Vec<u8>);

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let count = self.0.len().min(space.remaining());
        space.put_slice(&self.0[..count]);
        self.0.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
