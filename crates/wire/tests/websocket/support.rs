//! Shared by the tests: frames made byte by byte as RFC 6455 §5.2 draws them, and reading with usual limits.

use fairlead_wire::websocket::{Decoder, Deflate, Failure, Incoming, Limits, Role};
use fairlead_wire::{Head, HeadLimits};
use std::ops::ControlFlow;

pub(crate) const FIN: u8 = 0x80;
pub(crate) const RSV1: u8 = 0x40;
pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// Limits that no usual test reaches.
pub(crate) const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    fragments: 1_000,
};

/// No context is kept, in either direction.
pub(crate) const ALONE: Deflate = Deflate {
    server_no_context: true,
    client_no_context: true,
    server_bits: 15,
    client_bits: 15,
};

/// Both sides keep their context.
pub(crate) const KEPT: Deflate = Deflate {
    server_no_context: false,
    client_no_context: false,
    server_bits: 15,
    client_bits: 15,
};

/// An item that a decoder has returned, as an owned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

impl From<Incoming<'_>> for Heard {
    fn from(incoming: Incoming<'_>) -> Heard {
        match incoming {
            Incoming::Text(bytes) => Heard::Text(bytes.into_owned()),
            Incoming::Binary(bytes) => Heard::Binary(bytes.into_owned()),
            Incoming::Ping(bytes) => Heard::Ping(bytes.to_vec()),
            Incoming::Pong(bytes) => Heard::Pong(bytes.to_vec()),
            Incoming::Close(code, reason) => Heard::Close(code, reason.to_owned()),
        }
    }
}

/// The result of reading the bytes of a connection.
pub(crate) type Outcome = (Vec<Heard>, Result<(), Failure>);

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) role: Role,
    pub(crate) deflate: Option<Deflate>,
    pub(crate) limits: Limits,
}

/// A server without compression.
pub(crate) const SERVER: Setup = Setup {
    role: Role::Server,
    deflate: None,
    limits: LIMITS,
};

impl Setup {
    pub(crate) fn with(self, deflate: Deflate) -> Setup {
        let deflate = Some(deflate);
        Setup { deflate, ..self }
    }

    /// Feeds a new decoder with these pieces, one after the other.
    pub(crate) fn read<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let mut decoder = Decoder::new(self.role, self.deflate);
        let mut heard = Vec::new();
        for piece in pieces {
            let fed = decoder.feed(&mut piece.to_vec(), &self.limits, &mut |incoming| {
                heard.push(incoming.into())
            });
            if fed.is_err() {
                return (heard, fed);
            }
        }
        (heard, Ok(()))
    }

    /// Does the same with a stop after each item.
    pub(crate) fn read_one_by_one(&self, bytes: &[u8]) -> Outcome {
        let mut decoder = Decoder::new(self.role, self.deflate);
        let mut heard = Vec::new();
        let mut rest = &mut bytes.to_vec()[..];
        while !rest.is_empty() {
            let before = heard.len();
            let fed = decoder.feed_while(rest, &self.limits, &mut |incoming| {
                heard.push(incoming.into());
                ControlFlow::Break(())
            });
            match fed {
                Ok(taken) => {
                    assert!(heard.len() - before == 1 || (heard.len() == before && taken == rest.len()));
                    rest = &mut rest[taken..];
                }
                Err(failure) => return (heard, Err(failure)),
            }
        }
        (heard, Ok(()))
    }

    /// The result for `bytes`, which must be the same for every split.
    pub(crate) fn read_all(&self, bytes: &[u8]) -> Outcome {
        let outcome = self.read([bytes]);
        assert_eq!(
            self.read(bytes.chunks(1)),
            outcome,
            "byte by byte: {}",
            bytes.escape_ascii()
        );
        outcome
    }

    /// The items in the bytes, which must have no fault.
    pub(crate) fn accept(&self, bytes: &[u8]) -> Vec<Heard> {
        let (heard, outcome) = self.read_all(bytes);
        assert_eq!(outcome, Ok(()), "{}", bytes.escape_ascii());
        heard
    }

    /// The violation in the bytes.
    pub(crate) fn refuse(&self, bytes: &[u8]) -> Failure {
        match self.read_all(bytes) {
            (_, Err(failure)) => failure,
            (heard, Ok(())) => panic!("{} is not refused: {heard:?}", bytes.escape_ascii()),
        }
    }
}

/// A frame with this first byte; masked if there is a key.
pub(crate) fn raw(first: u8, key: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let masked = if key.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload.len() {
        short @ ..=125 => bytes.push(masked + short as u8),
        medium @ ..=0xffff => bytes.extend([masked + 126, (medium >> 8) as u8, medium as u8]),
        long => {
            bytes.push(masked + 127);
            bytes.extend((0..8).rev().map(|digit| (long as u64 >> (8 * digit)) as u8));
        }
    }
    bytes.extend(key.into_iter().flatten());
    let key = key.unwrap_or_default();
    bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]));
    bytes
}

/// A frame as a client sends it.
pub(crate) fn sent(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    raw(first, Some([0x37, 0xfa, 0x21, 0x3d]), payload.as_ref())
}

/// A GET with Host and these field lines, parsed.
pub(crate) fn get(lines: &[&str]) -> (Head, Vec<u8>) {
    request("GET / HTTP/1.1", lines)
}

/// A request with this request line.
pub(crate) fn request(line: &str, lines: &[&str]) -> (Head, Vec<u8>) {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let bytes = format!("{line}\r\nHost: a\r\n{lines}\r\n").into_bytes();
    let limits = HeadLimits {
        head_bytes: 65_536,
        fields: 100,
        target_bytes: 100,
    };
    let mut head = Head::default();
    assert_eq!(head.parse(&bytes, &limits), Ok(true), "{}", bytes.escape_ascii());
    (head, bytes)
}
