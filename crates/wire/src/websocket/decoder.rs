//! [`Decoder`]: turns the bytes of a connection into messages, for any split into frames and reads.
//!
//! ```text
//!         ┌──────────────────────────────┐
//! Header ─┴─► Payload ─► (message, ping) ┘      close frame ─► Closed      violation ─► Failed
//! ```
//!
//! A message that arrives in one frame and one read is unmasked in place and passed on from there. Only a split message
//! is assembled, in memory that exceeds neither the limits nor twice the bytes that have arrived: a compressed message
//! stays compressed until it is complete, and the caller may stop after each message.

use super::close::parse_close;
use super::extension::Deflate;
use super::failure::Failure;
use super::frame::{Opcode, Role};
use super::growth::grow;
use super::header::{Header, Rules, LONGEST_HEADER};
use super::inflater::Inflater;
use super::{mask, utf8};
use std::borrow::Cow;
use std::mem::take;
use std::ops::ControlFlow;

/// The limits of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message, after inflating if it is compressed.
    pub message_bytes: usize,
    /// Frames of a message.
    pub fragments: usize,
}

/// A message or control frame of a peer. A message is owned if it had to be assembled, otherwise borrowed from the
/// input.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A message in UTF-8; its encoding was checked.
    Text(Cow<'a, [u8]>),
    /// A message with any bytes.
    Binary(Cow<'a, [u8]>),
    /// Requires a pong with the same bytes (RFC 6455 §5.5.2).
    Ping(&'a [u8]),
    /// The response to a ping, or an unsolicited pong.
    Pong(&'a [u8]),
    /// The close frame: a code that may be sent, if any, and a reason.
    Close(Option<u16>, &'a str),
}

/// Decodes one direction of a connection. Allocates nothing until a message arrives in pieces or compressed. After the
/// message it keeps only the window of a compression with context.
pub struct Decoder {
    pub(super) rules: Rules,
    /// True if compressed messages may refer to earlier ones.
    pub(super) keep_context: bool,
    pub(super) state: DecoderState,
    /// The beginning of an incomplete header.
    pub(super) header: [u8; LONGEST_HEADER],
    pub(super) header_length: u8,
    pub(super) frame: Frame,
    pub(super) message: Message,
    /// The beginning of an incomplete control frame.
    pub(super) control: Vec<u8>,
    pub(super) inflater: Option<Box<Inflater>>,
}

#[derive(Clone, Copy)]
pub(super) enum DecoderState {
    Header,
    Payload,
    Closed,
    Failed(Failure),
}

/// The frame of the arriving payload.
pub(super) struct Frame {
    pub(super) opcode: Opcode,
    pub(super) fin: bool,
    /// Rotated, so that the next byte is combined with the first byte of the key.
    pub(super) mask: [u8; 4],
    pub(super) left: u64,
}

/// The message of the arriving frames.
#[derive(Default)]
pub(super) struct Message {
    /// The part of an assembled message that has arrived.
    pub(super) bytes: Vec<u8>,
    /// Bytes announced by all its frames so far.
    pub(super) announced: u64,
    /// 0 if there is no message.
    pub(super) frames: u32,
    pub(super) text: bool,
    pub(super) compressed: bool,
    pub(super) utf8: utf8::Validator,
}

impl Decoder {
    /// A decoder for the messages from the peer of `role`, after the handshake has agreed on `deflate`.
    pub fn new(role: Role, deflate: Option<Deflate>) -> Decoder {
        let no_context = |deflate: Deflate| match role {
            Role::Server => deflate.client_no_context,
            Role::Client => deflate.server_no_context,
        };
        Decoder {
            rules: Rules {
                masked: role == Role::Server,
                deflate: deflate.is_some(),
            },
            keep_context: deflate.is_some_and(|deflate| !no_context(deflate)),
            state: DecoderState::Header,
            header: [0; LONGEST_HEADER],
            header_length: 0,
            frame: Frame {
                opcode: Opcode::Continuation,
                fin: true,
                mask: [0; 4],
                left: 0,
            },
            message: Message::default(),
            control: Vec::new(),
            inflater: None,
        }
    }

    /// Bytes of an incomplete message that have arrived, as sent by the peer.
    pub fn unfinished(&self) -> usize {
        self.message.bytes.len()
    }

    /// Memory in use for these bytes.
    pub fn held(&self) -> usize {
        self.message.bytes.capacity()
    }

    /// Decodes the next bytes, which are unmasked in place, and passes everything complete to `on`, in order. Messages
    /// and the failure depend only on the bytes, not on their split. After a failure every call returns the same
    /// failure; bytes after a close frame are ignored (RFC 6455 §5.5.1).
    pub fn feed(&mut self, bytes: &mut [u8], limits: &Limits, on: &mut dyn FnMut(Incoming<'_>)) -> Result<(), Failure> {
        self.feed_while(bytes, limits, &mut |incoming| {
            on(incoming);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Does the same as [`Decoder::feed`], until `on` breaks. Returns the number of bytes taken; the rest is unchanged,
    /// and must be fed before any later bytes.
    pub fn feed_while(
        &mut self,
        bytes: &mut [u8],
        limits: &Limits,
        on: &mut dyn FnMut(Incoming<'_>) -> ControlFlow<()>,
    ) -> Result<usize, Failure> {
        let length = bytes.len();
        let mut rest = bytes;
        let mut flow = ControlFlow::Continue(());
        while !rest.is_empty() {
            match self.step(rest, limits, &mut |incoming| flow = on(incoming)) {
                Ok(taken) => rest = &mut take(&mut rest)[taken..],
                Err(failure) => {
                    self.fail(failure);
                    return Err(failure);
                }
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(length - rest.len())
    }

    /// Decodes a frame, or the part of it that is there. `input` is not empty. Returns the number of bytes taken.
    fn step(&mut self, input: &mut [u8], limits: &Limits, on: &mut dyn FnMut(Incoming<'_>)) -> Result<usize, Failure> {
        let start = match self.state {
            DecoderState::Header => match self.read_header(input)? {
                Some((header, length)) => {
                    self.begin(header, limits)?;
                    length
                }
                None => return Ok(input.len()),
            },
            DecoderState::Payload => 0,
            DecoderState::Closed => return Ok(input.len()),
            DecoderState::Failed(failure) => return Err(failure),
        };
        let available = input.len() - start;
        let length = usize::try_from(self.frame.left).map_or(available, |left| left.min(available));
        let payload = &mut input[start..start + length];
        mask::apply(payload, self.frame.mask);
        self.frame.mask = mask::advanced(self.frame.mask, length);
        self.frame.left -= length as u64;
        self.state = if self.frame.left == 0 {
            DecoderState::Header
        } else {
            DecoderState::Payload
        };
        if self.frame.opcode.is_control() {
            self.control(payload, on)?;
        } else if self.message.compressed {
            self.compressed(payload, limits, on)?;
        } else {
            self.plain(payload, limits, on)?;
        }
        Ok(start + length)
    }

    /// The header that ends in `input`, and the number of its bytes in `input`.
    fn read_header(&mut self, input: &[u8]) -> Result<Option<(Header, usize)>, Failure> {
        let before = usize::from(self.header_length);
        if before == 0 {
            if let Some(found) = Header::parse(input, self.rules)? {
                return Ok(Some(found));
            }
        }
        let more = input.len().min(LONGEST_HEADER - before);
        self.header[before..before + more].copy_from_slice(&input[..more]);
        match Header::parse(&self.header[..before + more], self.rules)? {
            Some((header, length)) => {
                self.header_length = 0;
                Ok(Some((header, length - before)))
            }
            None => {
                self.header_length = (before + more) as u8;
                Ok(None)
            }
        }
    }

    /// Checks a header against earlier frames and the limits, before any of its payload is kept.
    fn begin(&mut self, header: Header, limits: &Limits) -> Result<(), Failure> {
        self.frame = Frame {
            opcode: header.opcode,
            fin: header.fin,
            mask: header.mask,
            left: header.length,
        };
        if header.opcode.is_control() {
            return Ok(());
        }
        let message = &mut self.message;
        match (header.opcode == Opcode::Continuation, message.frames > 0) {
            (true, false) => return Err(Failure::UNEXPECTED_CONTINUATION),
            (false, true) => return Err(Failure::INTERRUPTED_MESSAGE),
            (true, true) => {}
            (false, false) => {
                message.text = header.opcode == Opcode::Text;
                message.compressed = header.compressed;
                message.announced = 0;
            }
        }
        message.frames = message.frames.saturating_add(1);
        if message.frames as usize > limits.fragments {
            return Err(Failure::TOO_MANY_FRAGMENTS);
        }
        message.announced = message.announced.saturating_add(header.length);
        if message.announced > most_announced(limits, message.compressed) {
            return Err(Failure::TOO_LARGE);
        }
        Ok(())
    }

    fn control(&mut self, payload: &[u8], on: &mut dyn FnMut(Incoming<'_>)) -> Result<(), Failure> {
        if self.frame.left > 0 {
            self.control.extend_from_slice(payload);
            return Ok(());
        }
        let mut begun = take(&mut self.control);
        let payload = if begun.is_empty() {
            payload
        } else {
            begun.extend_from_slice(payload);
            &begun
        };
        match self.frame.opcode {
            Opcode::Ping => on(Incoming::Ping(payload)),
            Opcode::Pong => on(Incoming::Pong(payload)),
            _ => {
                let (code, reason) = parse_close(payload)?;
                self.release();
                self.state = DecoderState::Closed;
                on(Incoming::Close(code, reason));
            }
        }
        Ok(())
    }

    fn plain(&mut self, payload: &[u8], limits: &Limits, on: &mut dyn FnMut(Incoming<'_>)) -> Result<(), Failure> {
        if self.message.text && !self.message.utf8.feed(payload) {
            return Err(Failure::INVALID_UTF8);
        }
        match self.assemble(payload, limits) {
            Some(bytes) => self.message.end(bytes, on),
            None => Ok(()),
        }
    }

    fn compressed(&mut self, payload: &[u8], limits: &Limits, on: &mut dyn FnMut(Incoming<'_>)) -> Result<(), Failure> {
        let Some(compressed) = self.assemble(payload, limits) else {
            return Ok(());
        };
        let keep_context = self.keep_context;
        let inflater = self
            .inflater
            .get_or_insert_with(|| Box::new(Inflater::new(keep_context)));
        let mut bytes = Vec::new();
        let inflated = inflater.inflate(&compressed, &mut bytes, limits.message_bytes);
        // A fault in the text before the broken data is reported first, just as if the text had arrived alone.
        if self.message.text && !self.message.utf8.feed(&bytes) {
            return Err(Failure::INVALID_UTF8);
        }
        inflated?;
        inflater.finish(&mut bytes, self.keep_context)?;
        if !self.keep_context {
            self.inflater = None;
        }
        self.message.end(Cow::Owned(bytes), on)
    }

    /// Adds to the message; returns the whole message, as sent, when it is complete.
    fn assemble<'a>(&mut self, payload: &'a [u8], limits: &Limits) -> Option<Cow<'a, [u8]>> {
        let message = &mut self.message;
        let ends = self.frame.fin && self.frame.left == 0;
        if ends && message.bytes.is_empty() {
            return Some(Cow::Borrowed(payload));
        }
        let most = if self.frame.fin {
            payload.len() as u64 + self.frame.left
        } else {
            most_announced(limits, message.compressed).saturating_sub(message.bytes.len() as u64)
        };
        grow(
            &mut message.bytes,
            payload.len(),
            usize::try_from(most).unwrap_or(usize::MAX),
        );
        message.bytes.extend_from_slice(payload);
        ends.then(|| Cow::Owned(take(&mut message.bytes)))
    }

    fn fail(&mut self, failure: Failure) {
        self.state = DecoderState::Failed(failure);
        self.release();
    }

    /// Frees the memory of a message that will not be completed. A control frame needs none: it can only fail or close
    /// when it is complete.
    fn release(&mut self) {
        self.message = Message::default();
        self.inflater = None;
    }
}

impl Message {
    fn end(&mut self, bytes: Cow<'_, [u8]>, on: &mut dyn FnMut(Incoming<'_>)) -> Result<(), Failure> {
        self.frames = 0;
        if !self.text {
            on(Incoming::Binary(bytes));
            return Ok(());
        }
        if !self.utf8.finish() {
            return Err(Failure::INVALID_UTF8);
        }
        on(Incoming::Text(bytes));
        Ok(())
    }
}

/// Number of bytes that the frames of a message may announce together. Incompressible data gets larger: by five bytes
/// for each block, and there may be many small blocks.
fn most_announced(limits: &Limits, compressed: bool) -> u64 {
    let most = limits.message_bytes as u64;
    if compressed {
        most.saturating_add(most / 8).saturating_add(64)
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::{masked_frame, Deflater};

    const LIMITS: Limits = Limits {
        message_bytes: 1_000,
        fragments: 10,
    };

    fn sent(opcode: Opcode, compressed: bool, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        masked_frame(&mut bytes, opcode, compressed, [1, 2, 3, 4], payload);
        bytes
    }

    /// A text, a ping and a compressed message: the decoder keeps the parts of each in a different buffer.
    fn frames() -> [Vec<u8>; 3] {
        let mut compressed = Vec::new();
        Deflater::new(15).message(&[b'a'; 500], false, &mut compressed);
        [
            sent(Opcode::Text, false, &[b'a'; 100]),
            sent(Opcode::Ping, false, &[b'a'; 100]),
            sent(Opcode::Binary, true, &compressed),
        ]
    }

    fn decoder() -> Decoder {
        let deflate = Deflate {
            server_no_context: false,
            client_no_context: true,
            server_bits: 15,
            client_bits: 15,
        };
        Decoder::new(Role::Server, Some(deflate))
    }

    fn holds_something(decoder: &Decoder) -> bool {
        decoder.message.bytes.capacity() + decoder.control.capacity() > 0 || decoder.inflater.is_some()
    }

    fn feed(decoder: &mut Decoder, bytes: &[u8]) -> Result<(), Failure> {
        decoder.feed(&mut bytes.to_vec(), &LIMITS, &mut |_| {})
    }

    #[test]
    fn no_memory_is_held_between_messages() {
        for bytes in frames() {
            let mut decoder = decoder();
            let (beginning, end) = bytes.split_at(bytes.len() - 1);
            assert_eq!(feed(&mut decoder, beginning), Ok(()));
            assert!(holds_something(&decoder));
            assert_eq!(feed(&mut decoder, end), Ok(()));
            assert!(!holds_something(&decoder));
        }
    }

    #[test]
    fn an_incomplete_compressed_message_takes_no_more_than_has_arrived() {
        let mut compressed = Vec::new();
        Deflater::new(15).message(&vec![0; 1 << 20], false, &mut compressed);
        let limits = Limits {
            message_bytes: 1 << 20,
            fragments: 10,
        };
        let bytes = sent(Opcode::Binary, true, &compressed);
        let mut decoder = decoder();
        let mut begun = bytes[..bytes.len() - 1].to_vec();
        assert_eq!(decoder.feed(&mut begun, &limits, &mut |_| {}), Ok(()));
        let held = decoder.message.bytes.capacity();
        assert!((1..bytes.len()).contains(&held) && decoder.inflater.is_none(), "{held}");
    }

    #[test]
    fn no_memory_is_held_after_a_failure_or_a_close_frame() {
        let [text, ping, compressed] = frames();
        for mut bytes in [text, compressed] {
            // A fragment, so that a frame may follow it.
            bytes[0] &= 0x7f;
            let close = [0x88, 0x80, 0, 0, 0, 0];
            for (end, verdict) in [(&close[..], Ok(())), (&[0xff], Err(Failure::RESERVED_BIT))] {
                let mut decoder = decoder();
                assert_eq!(feed(&mut decoder, &bytes), Ok(()));
                assert_eq!(feed(&mut decoder, &ping[..50]), Ok(()));
                assert!(holds_something(&decoder));
                assert_eq!(feed(&mut decoder, &ping[50..]), Ok(()));
                assert_eq!(feed(&mut decoder, end), verdict);
                assert!(!holds_something(&decoder));
            }
        }
    }
}
