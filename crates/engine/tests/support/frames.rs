//! A client that sends HTTP/2 frames which no library sends, and reads the server's frames (RFC 9113 §4, §6).

use super::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Error codes (RFC 9113 §7).
pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const STREAM_CLOSED: u32 = 5;
pub const CANCEL: u32 = 8;
pub const COMPRESSION_ERROR: u32 = 9;
pub const ENHANCE_YOUR_CALM: u32 = 11;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of RST_STREAM or GOAWAY.
    pub fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A field in HPACK without table and compression (RFC 7541 §6.2.2).
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // An integer with a prefix of 7 bits (RFC 7541 §5.1).
        let mut rest = text.len();
        if rest < 127 {
            bytes.push(rest as u8);
        } else {
            bytes.push(127);
            rest -= 127;
            while rest >= 128 {
                bytes.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            bytes.push(rest as u8);
        }
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The fields of a request for `path`, without END_HEADERS.
pub fn block(method: &str, path: &str) -> Vec<u8> {
    [
        field(":method", method),
        field(":scheme", "http"),
        field(":path", path),
        field(":authority", "test"),
    ]
    .concat()
}

/// A request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block("GET", path))
}

/// The head of a request with a body.
pub fn post(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block("POST", path))
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

pub fn setting(number: u16, value: u32) -> Vec<u8> {
    let payload = [&number.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

/// SETTINGS_INITIAL_WINDOW_SIZE
pub const INITIAL_WINDOW: u16 = 4;

/// See the head of this file.
pub struct FrameClient {
    pub socket: TcpStream,
    buffer: Vec<u8>,
}

impl FrameClient {
    /// A connection that has sent the preface and empty SETTINGS.
    pub fn connect(address: SocketAddr) -> FrameClient {
        let mut client = FrameClient::silent(address);
        client.send(&[fairlead_wire::http2::PREFACE, &frame(SETTINGS, 0, 0, &[])[..]].concat());
        client
    }

    /// A connection that has sent nothing.
    pub fn silent(address: SocketAddr) -> FrameClient {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        FrameClient {
            socket,
            buffer: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    /// Sends the same frames again and again until the server closes, or for `time`. Reads meanwhile only if `reads` is
    /// set. Returns the number of repetitions.
    pub fn flood(&mut self, time: Duration, reads: bool, mut next: impl FnMut(usize) -> Vec<u8>) -> usize {
        self.socket
            .set_write_timeout(Some(Duration::from_millis(200)))
            .expect("a time-out");
        let until = Instant::now() + time;
        let mut count = 0;
        while Instant::now() < until {
            if self.socket.write_all(&next(count)).is_err() {
                break;
            }
            count += 1;
            if reads && self.is_closed_now() {
                break;
            }
        }
        count
    }

    /// Reads available bytes without waiting. Returns true if the server has closed.
    fn is_closed_now(&mut self) -> bool {
        self.socket.set_nonblocking(true).expect("a socket");
        let mut bytes = [0; 65_536];
        let closed = loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => break true,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
        };
        self.socket.set_nonblocking(false).expect("a socket");
        closed
    }

    /// Reads available bytes without waiting. Returns true after a GOAWAY or the end.
    pub fn has_goaway(&mut self) -> bool {
        let is_closed = self.is_closed_now();
        let mut rest = &self.buffer[..];
        while let Some(head) = rest.get(..9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if head[3] == GOAWAY {
                return true;
            }
            rest = rest.get(9 + length..).unwrap_or(&[]);
        }
        is_closed
    }

    /// The next frame; `None` if the server has closed.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let mut bytes = [0; 65_536];
            match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no frame in time: {error}"),
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let head = self.buffer.get(..9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes(head[5..9].try_into().expect("four bytes"));
        let payload = self.buffer.get(9..9 + length)?.to_vec();
        self.buffer.drain(..9 + length);
        Some(Frame {
            kind,
            flags,
            stream,
            payload,
        })
    }

    /// The next frame that `is_wanted` accepts.
    pub fn find(&mut self, mut is_wanted: impl FnMut(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().expect("the server has closed");
            if is_wanted(&frame) {
                return frame;
            }
        }
    }

    /// The next frame of this kind for a stream.
    pub fn find_of(&mut self, kind: u8, stream: u32) -> Frame {
        self.find(|frame| (frame.kind, frame.stream) == (kind, stream))
    }

    /// All frames until the server closes.
    pub fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// The code of the GOAWAY before the end.
    pub fn goaway(&mut self) -> Option<u32> {
        let frames = self.rest();
        let last = frames.iter().rfind(|frame| frame.kind == GOAWAY);
        last.map(Frame::code)
    }

    /// Sends a PING and waits for its acknowledgement, so that everything before it was received.
    pub fn ping(&mut self) {
        self.send(&frame(PING, 0, 0, b"fairlead"));
        self.find(|frame| frame.kind == PING && frame.flags == 1);
    }
}
