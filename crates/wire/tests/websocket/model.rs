//! A second implementation of RFC 6455 and RFC 7692 to check the decoder: naive, slow, all bytes at once, and written
//! from the RFCs. It returns the messages and the failure that ends them.

use crate::puff::{inflate, End};
use crate::support::{Heard, Outcome, Setup};
use fairlead_wire::websocket::{Failure, Role};

/// The bytes that senders leave out (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// A block without data that ends a stream.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// The meaning of `bytes` in a connection.
pub(crate) fn read(bytes: &[u8], setup: &Setup) -> Outcome {
    let mut model = Model {
        setup,
        rest: bytes,
        heard: Vec::new(),
        message: None,
        stream: Vec::new(),
    };
    let outcome = loop {
        match model.frame() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    (model.heard, outcome)
}

struct Model<'a> {
    setup: &'a Setup,
    rest: &'a [u8],
    heard: Vec<Heard>,
    message: Option<Message>,
    /// All compressed bytes that the current message may refer to, including its own.
    stream: Vec<u8>,
}

struct Message {
    text: bool,
    compressed: bool,
    frames: usize,
    announced: u64,
    /// As sent, unmasked.
    payload: Vec<u8>,
}

impl<'a> Model<'a> {
    /// Reads a frame or the beginning of one. Returns false if nothing is left to read.
    fn frame(&mut self) -> Result<bool, Failure> {
        let Some((first, length)) = self.header()? else {
            return Ok(false);
        };
        if first & 0x0f < 8 {
            self.count(first, length)?;
        }
        let key = match self.setup.role {
            Role::Server => self.take(4),
            Role::Client => &[0; 4],
        };
        let there = usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len());
        let whole = there as u64 == length;
        let payload: Vec<u8> = self
            .take(there)
            .iter()
            .zip(key.iter().cycle())
            .map(|(byte, key)| byte ^ key)
            .collect();
        match first & 0x0f {
            0..=2 => self.data(&payload, whole && first & 0x80 != 0)?,
            _ if !whole => {}
            8 => {
                self.close(&payload)?;
                return Ok(false);
            }
            9 => self.heard.push(Heard::Ping(payload)),
            _ => self.heard.push(Heard::Pong(payload)),
        }
        Ok(whole)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (front, back) = self.rest.split_at(count);
        self.rest = back;
        front
    }

    /// First byte and length; `None` if the header, including the mask, is incomplete.
    fn header(&mut self) -> Result<Option<(u8, u64)>, Failure> {
        let at = |index: usize| self.rest.get(index).copied();
        let Some(first) = at(0) else { return Ok(None) };
        let (rsv, opcode) = (first >> 4 & 7, first & 0x0f);
        if rsv & 3 != 0 || (rsv != 0 && self.setup.deflate.is_none()) {
            return Err(Failure::RESERVED_BIT);
        }
        if !matches!(opcode, 0..=2 | 8..=10) {
            return Err(Failure::RESERVED_OPCODE);
        }
        if rsv != 0 && !matches!(opcode, 1 | 2) {
            return Err(Failure::RESERVED_BIT);
        }
        if opcode >= 8 && first < 0x80 {
            return Err(Failure::FRAGMENTED_CONTROL);
        }
        let Some(second) = at(1) else { return Ok(None) };
        match (self.setup.role, second >= 0x80) {
            (Role::Server, false) => return Err(Failure::UNMASKED),
            (Role::Client, true) => return Err(Failure::MASKED),
            _ => {}
        }
        if opcode >= 8 && second & 0x7f > 125 {
            return Err(Failure::LONG_CONTROL);
        }
        let size = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if size == 8 && at(2).is_some_and(|byte| byte >= 0x80) {
            return Err(Failure::LENGTH_OVERFLOW);
        }
        let Some(digits) = self.rest.get(2..2 + size) else {
            return Ok(None);
        };
        let length = digits.iter().fold(0, |sum, &digit| sum * 256 + u64::from(digit));
        if (size == 2 && length < 126) || (size == 8 && length < 65_536) {
            return Err(Failure::LENGTH_NOT_MINIMAL);
        }
        let key = if self.setup.role == Role::Server { 4 } else { 0 };
        if self.rest.len() < 2 + size + key {
            return Ok(None);
        }
        self.take(2 + size);
        Ok(Some((first, if size == 0 { u64::from(second & 0x7f) } else { length })))
    }

    fn count(&mut self, first: u8, length: u64) -> Result<(), Failure> {
        match (&mut self.message, first & 0x0f) {
            (None, 0) => return Err(Failure::UNEXPECTED_CONTINUATION),
            (Some(_), 1 | 2) => return Err(Failure::INTERRUPTED_MESSAGE),
            (Some(message), _) => {
                message.frames += 1;
                message.announced = message.announced.saturating_add(length);
            }
            (empty, opcode) => {
                *empty = Some(Message {
                    text: opcode == 1,
                    compressed: first & 0x40 != 0,
                    frames: 1,
                    announced: length,
                    payload: Vec::new(),
                });
            }
        }
        let message = self.message.as_ref().expect("begun or continued");
        let most = self.setup.limits.message_bytes as u64;
        if message.frames > self.setup.limits.fragments {
            return Err(Failure::TOO_MANY_FRAGMENTS);
        }
        if message.announced > if message.compressed { most + most / 8 + 64 } else { most } {
            return Err(Failure::TOO_LARGE);
        }
        Ok(())
    }

    fn data(&mut self, payload: &[u8], ends: bool) -> Result<(), Failure> {
        let message = self.message.as_mut().expect("counted");
        message.payload.extend_from_slice(payload);
        let text = message.text;
        let bytes = if message.compressed {
            if !ends {
                return Ok(());
            }
            self.inflated()?
        } else {
            let bytes = message.payload.clone();
            check(&bytes, text, usize::MAX)?;
            bytes
        };
        if ends {
            self.message = None;
            if text && std::str::from_utf8(&bytes).is_err() {
                return Err(Failure::INVALID_UTF8);
            }
            self.heard
                .push(if text { Heard::Text(bytes) } else { Heard::Binary(bytes) });
        }
        Ok(())
    }

    /// The content of the current message, which is complete, without the bytes that its sender left out.
    fn inflated(&mut self) -> Result<Vec<u8>, Failure> {
        let message = self.message.as_ref().expect("there is one");
        let before = inflate(&self.stream).bytes.len();
        let mut stream = [&self.stream[..], &message.payload].concat();
        let inflated = inflate(&stream);
        let bytes = &inflated.bytes[before..];
        check(bytes, message.text, self.setup.limits.message_bytes)?;
        if inflated.end == End::Broken {
            return Err(Failure::BROKEN_DEFLATE);
        }
        let nothing_left_out = message.payload.is_empty() || inflated.complete;
        if !nothing_left_out {
            stream.extend(TAIL);
            let again = inflate(&stream);
            let probe = inflate(&[&stream[..], &LAST_BLOCK].concat());
            let sound = again.end == End::Input && again.bytes == inflated.bytes;
            if !sound || !(self.keeps_context() || (probe.complete && probe.bytes == inflated.bytes)) {
                return Err(Failure::BROKEN_DEFLATE);
            }
        }
        self.stream = if self.keeps_context() { stream } else { Vec::new() };
        Ok(bytes.to_vec())
    }

    fn keeps_context(&self) -> bool {
        self.setup.deflate.is_some_and(|deflate| match self.setup.role {
            Role::Server => !deflate.client_no_context,
            Role::Client => !deflate.server_no_context,
        })
    }

    fn close(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let Some((code, reason)) = payload.split_at_checked(2) else {
            if payload.len() == 1 {
                return Err(Failure::SHORT_CLOSE);
            }
            self.heard.push(Heard::Close(None, String::new()));
            return Ok(());
        };
        let code = u16::from(code[0]) * 256 + u16::from(code[1]);
        // The registry of IANA in November 2026, except for codes that are for local use.
        const REGISTERED: [u16; 12] = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];
        if !REGISTERED.contains(&code) && !(3000..5000).contains(&code) {
            return Err(Failure::INVALID_CLOSE_CODE);
        }
        let reason = String::from_utf8(reason.to_vec()).map_err(|_| Failure::INVALID_UTF8)?;
        self.heard.push(Heard::Close(Some(code), reason));
        Ok(())
    }
}

/// The first fault in the bytes of a message that may continue: a byte that text cannot have there, or a byte beyond
/// the limit.
fn check(bytes: &[u8], text: bool, limit: usize) -> Result<(), Failure> {
    for end in 1..=bytes.len() {
        if end > limit {
            return Err(Failure::TOO_LARGE);
        }
        if text && !begins_text(&bytes[..end]) {
            return Err(Failure::INVALID_UTF8);
        }
    }
    Ok(())
}

/// Returns true if some text in UTF-8 begins with these bytes (RFC 3629 §4). All but the last byte were checked before.
fn begins_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((&lead, tail)) = rest.split_first() {
        let (first, more) = match lead {
            0..=0x7f => (0x80..=0xbf, 0),
            0xc2..=0xdf => (0x80..=0xbf, 1),
            0xe0 => (0xa0..=0xbf, 2),
            0xed => (0x80..=0x9f, 2),
            0xe1..=0xef => (0x80..=0xbf, 2),
            0xf0 => (0x90..=0xbf, 3),
            0xf4 => (0x80..=0x8f, 3),
            0xf1..=0xf3 => (0x80..=0xbf, 3),
            _ => return false,
        };
        let more = &tail[..more.min(tail.len())];
        let sound = |(at, byte): (usize, &u8)| {
            if at == 0 {
                first.contains(byte)
            } else {
                (0x80..=0xbf).contains(byte)
            }
        };
        if !more.iter().enumerate().all(sound) {
            return false;
        }
        rest = &tail[more.len()..];
    }
    true
}
