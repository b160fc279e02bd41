//! [`Inflater`]: decompresses messages of permessage-deflate (RFC 7692 §7.2.2), never beyond a limit.

use super::failure::Failure;
use super::growth::grow;
use super::window::Window;
use flate2::{Decompress, FlushDecompress, Status};

/// The bytes that the sender has left out at the end of a message.
const TAIL: &[u8] = &[0, 0, 0xff, 0xff];

/// An empty last block: it ends the stream only between two blocks.
const LAST_BLOCK: &[u8] = &[3, 0];

/// Output is made in pieces of at most this many bytes.
const PIECE: usize = 16 * 1024;

/// Inflates the messages of one connection.
pub(super) struct Inflater {
    stream: Decompress,
    /// True if nothing has arrived since the start of the stream or the end of the last message.
    between_messages: bool,
    /// The end of its output, if later messages may refer to it: the library does not return its own copy.
    window: Option<Window>,
}

impl Inflater {
    /// Always uses the largest window: with a smaller one, the split of the bytes would decide if a reference beyond it
    /// is detected. `keep_context`: later messages may refer to earlier ones.
    pub(super) fn new(keep_context: bool) -> Inflater {
        Inflater {
            stream: Decompress::new(false),
            between_messages: true,
            window: keep_context.then(Window::default),
        }
    }

    /// An inflater between two messages, with this output before it.
    pub(super) fn with_window(window: &[u8]) -> Inflater {
        let mut inflater = Inflater::new(true);
        let mut out = Vec::new();
        for block in Window::stored_blocks(window) {
            // Blocks without compression are always valid.
            let _ = inflater.inflate(&block, &mut out, usize::MAX);
        }
        inflater.between_messages = true;
        inflater
    }

    /// The output that later messages may refer to.
    pub(super) fn window(&self) -> &[u8] {
        self.window.as_ref().map_or(&[], Window::bytes)
    }

    /// Appends the decompressed `input` to `out`. `out` never gets longer than `limit`, and contains everything before
    /// a fault.
    pub(super) fn inflate(&mut self, input: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), Failure> {
        let mut rest = input;
        loop {
            let start = out.len();
            let room = limit.saturating_sub(start);
            let size = room.min((4 * rest.len()).clamp(64, PIECE));
            grow(out, size, room);
            let mut beyond = [0];
            out.resize(start + size, 0);
            let place = if size == 0 { &mut beyond[..] } else { &mut out[start..] };
            let space = place.len();
            let (taken, made) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(rest, place, FlushDecompress::None);
            let taken = (self.stream.total_in() - taken) as usize;
            let made = (self.stream.total_out() - made) as usize;
            out.truncate(start + made.min(size));
            if made > size {
                return Err(Failure::TOO_LARGE);
            }
            if let Some(window) = &mut self.window {
                window.add(&out[start..]);
            }
            rest = &rest[taken..];
            self.between_messages &= taken == 0;
            match status {
                Err(_) => return Err(Failure::BROKEN_DEFLATE),
                // A sender may end the stream and begin another one within a message (RFC 7692 §7.2.3.4).
                Ok(Status::StreamEnd) => {
                    self.stream.reset(false);
                    self.between_messages = true;
                    if let Some(window) = &mut self.window {
                        *window = Window::default();
                    }
                }
                Ok(_) if rest.is_empty() && made < space => return Ok(()),
                Ok(_) if taken == 0 && made == 0 => return Err(Failure::BROKEN_DEFLATE),
                Ok(_) => {}
            }
        }
    }

    /// Ends a message: the bytes that the sender has left out must not add any bytes. Without `keep_context` this also
    /// checks that the message did not end within a block; this inflater cannot be used any more.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>, keep_context: bool) -> Result<(), Failure> {
        if self.between_messages {
            return Ok(());
        }
        let length = out.len();
        self.inflate(TAIL, out, length).map_err(|_| Failure::BROKEN_DEFLATE)?;
        self.between_messages = true;
        if keep_context {
            return Ok(());
        }
        match self.stream.decompress(LAST_BLOCK, &mut [0], FlushDecompress::None) {
            Ok(Status::StreamEnd) => Ok(()),
            _ => Err(Failure::BROKEN_DEFLATE),
        }
    }
}
