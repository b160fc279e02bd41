//! The server's side of WebSockets, for these tests only, and a group of clients.

use crate::support::{Output, Peer, Request};
use data_encoding::BASE64;
use std::io;
use std::sync::Mutex;

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// A frame as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) first: u8,
    pub(crate) mask: [u8; 4],
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn opcode(&self) -> u8 {
        self.first & 0x0f
    }
}

/// Sends the correct response to the handshake.
pub(crate) fn accept(peer: &mut Peer) -> io::Result<Request> {
    accept_with(peer, "")
}

/// The same with additional fields in the response; each ends with a line break.
pub(crate) fn accept_with(peer: &mut Peer, fields: &str) -> io::Result<Request> {
    let request = peer.request()?;
    let key = field(&request.head, "sec-websocket-key").expect("the tool sends a key");
    let digest = sha1_smol::Sha1::from(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest();
    let accept = BASE64.encode(&digest.bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{fields}\r\n"
    );
    peer.send(head.as_bytes())?;
    Ok(request)
}

/// The value of a field in a head.
pub(crate) fn field(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.to_owned())
        .next()
}

/// The next frame, unmasked; it must be masked.
pub(crate) fn read(peer: &mut Peer) -> io::Result<Frame> {
    let mut start = [0; 2];
    peer.read_exact(&mut start)?;
    assert_eq!(start[1] & 0x80, 0x80, "clients mask (RFC 6455 §5.1)");
    let length = match start[1] & 0x7f {
        126 => number(peer, 2)?,
        127 => number(peer, 8)?,
        length => u64::from(length),
    };
    let mut mask = [0; 4];
    peer.read_exact(&mut mask)?;
    let mut payload = vec![0; length as usize];
    peer.read_exact(&mut payload)?;
    for (index, byte) in payload.iter_mut().enumerate() {
        *byte ^= mask[index % 4];
    }
    Ok(Frame {
        first: start[0],
        mask,
        payload,
    })
}

fn number(peer: &mut Peer, bytes: usize) -> io::Result<u64> {
    let mut digits = [0; 8];
    peer.read_exact(&mut digits[8 - bytes..])?;
    Ok(u64::from_be_bytes(digits))
}

/// The next message; skips control frames.
pub(crate) fn message(peer: &mut Peer) -> io::Result<Frame> {
    loop {
        let frame = read(peer)?;
        match frame.opcode() {
            TEXT | BINARY => return Ok(frame),
            CLOSE => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
    }
}

/// A frame for a client; `first` is FIN, the reserved bits and the opcode.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(length as u8),
        length @ 126..=65_535 => bytes.extend([&[126][..], &(length as u16).to_be_bytes()].concat()),
        length => bytes.extend([&[127][..], &(length as u64).to_be_bytes()].concat()),
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// A message in one frame.
pub(crate) fn whole(opcode: u8, payload: &[u8]) -> Vec<u8> {
    frame(0x80 | opcode, payload)
}

/// A close frame with a code.
pub(crate) fn close(code: u16) -> Vec<u8> {
    whole(CLOSE, &code.to_be_bytes())
}

/// All clients of a server, so that the server can send each of them a message from one of them.
#[derive(Default)]
pub(crate) struct Hub {
    members: Mutex<Vec<(usize, Output)>>,
}

impl Hub {
    /// Adds a client before it gets its handshake response, so that it misses nothing.
    pub(crate) fn join(&self, peer: &Peer) {
        let mut members = self.members.lock().expect("no panic");
        members.push((peer.number, peer.output()));
    }

    /// Sends each member the bytes that `made` makes for it, by its number in the order of connecting. Members that are
    /// gone are ignored.
    pub(crate) fn publish(&self, made: impl Fn(usize) -> Vec<u8>) {
        let members = self.members.lock().expect("no panic");
        for (number, output) in &*members {
            let _ = output.lock().expect("no panic").write_all(&made(*number));
        }
    }
}
