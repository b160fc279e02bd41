//! The state of a [`Decoder`] as bytes, so that another process continues in the middle of a frame.
//!
//! ```text
//!   state · header (length, bytes) · frame (opcode, fin, mask, left) · message (announced, frames, text, compressed,
//!   begun character) · control (length, bytes) · message (length, bytes) · window (length, bytes)
//! ```
//! Numbers are little-endian. The bytes have no version: they are part of a format that has one.

use super::decoder::{Decoder, DecoderState, Frame, Message};
use super::extension::Deflate;
use super::frame::{Opcode, Role};
use super::header::LONGEST_HEADER;
use super::inflater::Inflater;
use super::utf8::Validator;

/// Longest begun control frame (RFC 6455 §5.5).
const MOST_CONTROL: usize = 125;

/// The largest window.
const MOST_WINDOW: usize = 32 * 1024;

impl Decoder {
    /// Its state; `None` after a close frame or a failure, when there is nothing to continue.
    pub fn save(&self) -> Option<Vec<u8>> {
        let state = match self.state {
            DecoderState::Header => 0,
            DecoderState::Payload => 1,
            DecoderState::Closed | DecoderState::Failed(_) => return None,
        };
        let (frame, message) = (&self.frame, &self.message);
        let mut out = vec![state, self.header_length];
        out.extend_from_slice(&self.header[..usize::from(self.header_length)]);
        out.extend_from_slice(&[frame.opcode as u8, u8::from(frame.fin)]);
        out.extend_from_slice(&frame.mask);
        out.extend_from_slice(&frame.left.to_le_bytes());
        out.extend_from_slice(&message.announced.to_le_bytes());
        out.extend_from_slice(&message.frames.to_le_bytes());
        out.extend_from_slice(&[u8::from(message.text), u8::from(message.compressed)]);
        let begun = message.utf8.begun();
        out.push(begun.len() as u8);
        out.extend_from_slice(begun);
        let window = self.inflater.as_ref().map_or(&[][..], |inflater| inflater.window());
        for part in [&self.control, &message.bytes, window] {
            out.extend_from_slice(&(part.len() as u64).to_le_bytes());
            out.extend_from_slice(part);
        }
        Some(out)
    }

    /// A decoder that continues from [`Decoder::save`] in another process; the other parameters are the same there.
    /// `None` if the bytes are not such a state.
    pub fn restore(role: Role, deflate: Option<Deflate>, saved: &[u8]) -> Option<Decoder> {
        let mut rest = Saved(saved);
        let mut decoder = Decoder::new(role, deflate);
        decoder.state = match rest.byte()? {
            0 => DecoderState::Header,
            1 => DecoderState::Payload,
            _ => return None,
        };
        let header = rest.short(LONGEST_HEADER - 1)?;
        decoder.header[..header.len()].copy_from_slice(header);
        decoder.header_length = header.len() as u8;
        decoder.frame = Frame {
            opcode: Opcode::of(rest.byte()?)?,
            fin: rest.flag()?,
            mask: rest.array()?,
            left: u64::from_le_bytes(rest.array()?),
        };
        decoder.message = Message {
            bytes: Vec::new(),
            announced: u64::from_le_bytes(rest.array()?),
            frames: u32::from_le_bytes(rest.array()?),
            text: rest.flag()?,
            compressed: rest.flag()?,
            utf8: Validator::with_begun(rest.short(3)?)?,
        };
        decoder.control = rest.part(MOST_CONTROL)?.to_vec();
        decoder.message.bytes = rest.part(usize::MAX)?.to_vec();
        let window = rest.part(MOST_WINDOW)?;
        let is_complete = rest.0.is_empty() && (!decoder.message.compressed || decoder.rules.deflate);
        if !window.is_empty() {
            if !decoder.keep_context {
                return None;
            }
            decoder.inflater = Some(Box::new(Inflater::with_window(window)));
        }
        is_complete.then_some(decoder)
    }
}

/// The bytes that were not read yet.
struct Saved<'a>(&'a [u8]);

impl<'a> Saved<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        self.take(COUNT)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// At most `most` bytes, after a byte with their number.
    fn short(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?);
        self.take(length).filter(|part| part.len() <= most)
    }

    /// The same, after eight bytes with their number.
    fn part(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(u64::from_le_bytes(self.array()?)).ok()?;
        self.take(length).filter(|part| part.len() <= most)
    }
}
