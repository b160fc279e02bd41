//! An HTTP/2 server that a test controls frame by frame (RFC 9113 §4, §6). Of header compression it knows only enough
//! to send a status. So the library that the tool uses for sending does not check its own output.

use crate::support::{Peer, Server};
use serde_json::Value;
use std::collections::HashMap;
use std::io;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `SETTINGS_MAX_CONCURRENT_STREAMS`.
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;

/// Error codes (RFC 9113 §7).
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// Default window of a client (RFC 9113 §6.9.2), and the setting that changes it.
const INITIAL_WINDOW: u32 = 65_535;
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
const MAX_FRAME_BYTES: u32 = 16_384;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The server's end of an HTTP/2 connection.
pub(crate) struct Http2<'p> {
    peer: &'p mut Peer,
    /// Flow-control windows of the client in bytes, by stream, and of the connection (stream 0).
    room: HashMap<u32, u32>,
    /// Initial window of a stream that is not in `room`.
    initial_room: u32,
}

impl<'p> Http2<'p> {
    /// Sends settings at once, as servers may, and reads the client's preface.
    pub(crate) fn greet(peer: &'p mut Peer, settings: &[(u16, u32)]) -> io::Result<Http2<'p>> {
        let mut http2 = Http2 {
            peer,
            room: HashMap::from([(0, INITIAL_WINDOW)]),
            initial_room: INITIAL_WINDOW,
        };
        let settings = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        http2.send(SETTINGS, 0, 0, &settings.collect::<Vec<u8>>())?;
        let mut preface = [0; PREFACE.len()];
        http2.peer.read_exact(&mut preface)?;
        if preface != PREFACE {
            return Err(io::Error::other("no preface of HTTP/2"));
        }
        Ok(http2)
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.peer.send(&[&head, payload].concat())
    }

    fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.peer.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.peer.read_exact(&mut payload)?;
        let frame = Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        };
        self.note_room(&frame);
        Ok(frame)
    }

    fn note_room(&mut self, frame: &Frame) {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        match frame.kind {
            WINDOW_UPDATE => *self.room_of(frame.stream) += number(&frame.payload),
            SETTINGS => {
                let mut settings = frame.payload.chunks(6);
                if let Some(setting) = settings.find(|setting| setting[..2] == INITIAL_WINDOW_SIZE) {
                    self.initial_room = number(&setting[2..]);
                }
            }
            _ => {}
        }
    }

    fn room_of(&mut self, stream: u32) -> &mut u32 {
        self.room.entry(stream).or_insert(self.initial_room)
    }

    /// The next frame. Handles frames that concern the connection and skips them.
    pub(crate) fn frame(&mut self) -> io::Result<Frame> {
        loop {
            let frame = self.read()?;
            match (frame.kind, frame.flags & ACK) {
                (SETTINGS | PING, ACK) | (WINDOW_UPDATE, _) => {}
                (kind @ (SETTINGS | PING), _) => {
                    let echo = if kind == PING { &frame.payload[..] } else { &[] };
                    self.send(kind, ACK, 0, echo)?;
                }
                _ => return Ok(frame),
            }
        }
    }

    /// Sends content and the end of a stream, as far as the client has room, and waits if it has none.
    pub(crate) fn content(&mut self, stream: u32, bytes: u32) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let length = left.min(MAX_FRAME_BYTES);
            if *self.room_of(0) < length || *self.room_of(stream) < length {
                self.read()?;
                continue;
            }
            *self.room_of(0) -= length;
            *self.room_of(stream) -= length;
            left -= length;
            let flags = if left == 0 { END_STREAM } else { 0 };
            self.send(DATA, flags, stream, &vec![b'x'; length as usize])?;
        }
        Ok(())
    }

    /// Waits until a request is complete; returns its stream. Skips streams that are reset in the meantime.
    pub(crate) fn request(&mut self) -> io::Result<u32> {
        loop {
            let frame = self.frame()?;
            if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
                self.peer.count_request();
                return Ok(frame.stream);
            }
        }
    }

    /// Waits for that many requests, and returns their streams.
    pub(crate) fn requests(&mut self, count: usize) -> io::Result<Vec<u32>> {
        (0..count).map(|_| self.request()).collect()
    }

    /// Responds with 200 and two bytes.
    pub(crate) fn answer(&mut self, stream: u32) -> io::Result<()> {
        self.begin(stream)?;
        self.send(DATA, END_STREAM, stream, b"ok")
    }

    /// The head of that response: `:status: 200` is the eighth entry of HPACK's table (RFC 7541 §6.1, appendix A).
    pub(crate) fn begin(&mut self, stream: u32) -> io::Result<()> {
        self.send(HEADERS, END_HEADERS, stream, &[0x80 | 8])
    }

    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> io::Result<()> {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    /// Announces the end of the connection: streams up to `last` still get their responses.
    pub(crate) fn go_away(&mut self, last: u32, code: u32) -> io::Result<()> {
        self.send(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }

    /// Grants that many more bytes, on a stream and on the connection.
    pub(crate) fn allow(&mut self, stream: u32, bytes: u32) -> io::Result<()> {
        self.send(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes())?;
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// Waits for the acknowledgement of a PING; returns `true` if a request came before it.
    pub(crate) fn ping(&mut self) -> io::Result<bool> {
        self.send(PING, 0, 0, &[0; 8])?;
        let mut any = false;
        loop {
            let frame = self.read()?;
            match (frame.kind, frame.flags & ACK) {
                (PING, ACK) => return Ok(any),
                (HEADERS, _) => any = true,
                _ => {}
            }
        }
    }

    /// Number of this connection, counted by the server from 0.
    pub(crate) fn number(&self) -> usize {
        self.peer.number
    }

    /// Holds the connection without a response until the client closes it.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        self.peer.hold()
    }
}

/// An HTTP/2 server with prior knowledge.
pub(crate) fn serving(serve: impl Fn(&mut Http2<'_>) -> io::Result<()> + Send + Sync + 'static) -> Server {
    limiting(&[], serve)
}

pub(crate) fn limiting(
    settings: &'static [(u16, u32)],
    serve: impl Fn(&mut Http2<'_>) -> io::Result<()> + Send + Sync + 'static,
) -> Server {
    Server::start(move |peer| serve(&mut Http2::greet(peer, settings)?))
}

/// A server that responds to every request at once.
pub(crate) fn answering() -> Server {
    serving(answer_all)
}

pub(crate) fn answer_all(http2: &mut Http2<'_>) -> io::Result<()> {
    loop {
        let stream = http2.request()?;
        http2.answer(stream)?;
    }
}

/// A server that waits for `count` requests, then responds to all of them.
pub(crate) fn in_batches(settings: &'static [(u16, u32)], count: usize) -> Server {
    limiting(settings, move |http2| loop {
        for stream in http2.requests(count)? {
            http2.answer(stream)?;
        }
    })
}

pub(crate) fn errors(report: &Value) -> Vec<(String, u64)> {
    let kinds = report["errors"].as_object().into_iter().flatten();
    let counts = kinds.filter_map(|(kind, count)| Some((kind.clone(), count.as_u64()?)));
    counts.filter(|(_, count)| *count > 0).collect()
}

pub(crate) fn answered(report: &Value) -> u64 {
    report["requests"]["answered"].as_u64().unwrap_or(0)
}

/// Number of responses of each stream of a connection.
pub(crate) fn streams(report: &Value, connection: usize) -> Vec<u64> {
    let counts = report["connections"][connection]["streams"].as_array();
    counts.into_iter().flatten().filter_map(Value::as_u64).collect()
}
