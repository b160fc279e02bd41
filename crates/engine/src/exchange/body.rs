//! The body of a response: frames and counts it, and gives the kernel as much as it takes.

use super::state::{OutputState, ResponsePhase};
use super::{Exchange, Gone};
use crate::http::http1::BodyFraming;
use crate::http::own_chunks::TOO_LONG;
use crate::limits::descriptors::Counted;
use crate::stream::output::{FileParts, Flush};
use std::fs::File;
use std::sync::Arc;

/// A write of at least this size may take so long that it is done apart; see [`Exchange::write_apart`].
pub const LONG_BYTES: usize = 256 * 1024;

impl Exchange<'_> {
    /// Adds body bytes. Returns the number of bytes taken: fewer than all if neither the client nor memory nor disk
    /// takes more. Then call [`Exchange::wait_for_client`], and offer the rest again.
    ///
    /// # Errors
    /// If the client is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        if self.is_away() {
            return Ok(0);
        }
        if self.own_chunks.is_some() {
            return self.write_own_chunks(bytes);
        }
        self.write_data(bytes)
    }

    fn write_data(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let Some(wanted) = self.begin_write(bytes.len())? else {
            return Ok(bytes.len());
        };
        let pushed = self.stream.push(&bytes[..wanted], self.services.spill());
        let taken = pushed.map_err(|_| self.lost())?;
        self.end_write(taken);
        Ok(if taken == wanted { bytes.len() } else { taken })
    }

    /// Adds the data of a body that the app frames itself.
    fn write_own_chunks(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let mut done = 0;
        while done < bytes.len() && self.wants_body() {
            let Some(chunks) = &mut self.own_chunks else { break };
            let (framing, data) = match chunks.next(&bytes[done..]) {
                Ok(found) => found,
                Err(fault) => {
                    self.blame(fault);
                    self.abort();
                    return Err(Gone);
                }
            };
            if (framing, data) == (0, 0) {
                self.blame(TOO_LONG);
                break;
            }
            done += framing;
            let taken = self.write_data(&bytes[done..done + data])?;
            done += taken;
            if let Some(chunks) = &mut self.own_chunks {
                chunks.took(taken);
            }
            if taken < data {
                return Ok(done);
            }
        }
        if self.is_gone() {
            return Err(Gone);
        }
        Ok(bytes.len())
    }

    /// Frames the next `length` bytes. Returns the number of bytes that belong to the body; `None` if the client gets
    /// no body.
    pub(super) fn begin_write(&mut self, length: usize) -> Result<Option<usize>, Gone> {
        let is_gone = self.is_gone();
        let ResponsePhase::Body(framing) = &mut self.phase else {
            return Ok(None);
        };
        if is_gone {
            return Err(Gone);
        }
        let has_length = matches!(framing, BodyFraming::Length(_));
        let wanted = framing.begin(length, &mut self.stream.output);
        if has_length && wanted.is_some_and(|wanted| wanted < length) {
            self.faulty = Some("the body is longer than the announced content-length; the rest was left out");
        }
        Ok(wanted)
    }

    /// Counts the bytes that were added.
    pub(super) fn end_write(&mut self, taken: usize) {
        self.body_bytes += taken as u64;
        if let ResponsePhase::Body(framing) = &mut self.phase {
            framing.took(taken, &mut self.stream.output);
        }
    }

    /// Adds a few bytes of a body with a known length, regardless of the limits.
    pub(crate) fn write_few(&mut self, bytes: &[u8]) {
        if let ResponsePhase::Body(BodyFraming::Length(_)) = self.phase {
            let Ok(Some(wanted)) = self.begin_write(bytes.len()) else {
                return;
            };
            self.stream.output.add(&bytes[..wanted]);
            self.end_write(wanted);
        }
    }

    /// Adds `length` bytes of a file, from `offset`, as the body. They are not copied to user space. `device`: the
    /// device of the file.
    pub(crate) fn write_file(&mut self, file: Arc<Counted<File>>, device: u64, offset: u64, length: u64) {
        if let ResponsePhase::Body(BodyFraming::Length(left)) = self.phase {
            let length = length.min(left);
            self.stream.output.push_file(file, device, offset, offset + length);
            self.body_bytes += length;
            self.phase = ResponsePhase::Body(BodyFraming::Length(left - length));
        }
    }

    /// Sends written bytes, as far as the socket takes them at once: for bodies that arrive piece by piece. The body
    /// sender sends the rest while the app works on (`loan.rs`), or [`Exchange::flush_apart`] sends spooled bytes.
    /// Returns false if the client is gone.
    pub fn flush(&mut self) -> bool {
        if self.is_away_for_flush() {
            return !self.is_gone();
        }
        match self.flush_now() {
            Some(Flush::Done) => true,
            Some(Flush::Pending | Flush::Turn) => {
                self.lend();
                true
            }
            None => false,
        }
    }

    /// Returns true if another thread sends the written bytes, or none of them may be sent.
    pub(super) fn is_away_for_flush(&self) -> bool {
        matches!(self.output, OutputState::InWait | OutputState::Lent) || self.is_expired
    }

    /// Sends written bytes, and keeps the rest. Returns `None` if the client is gone.
    pub(super) fn flush_now(&mut self) -> Option<Flush> {
        self.output = OutputState::Sent;
        let flushed = self.stream.flush(FileParts::Leave);
        flushed.map_err(|_| self.lost()).ok()
    }

    /// Sends written bytes, and keeps the rest. Returns true if it has the output, and the client is there.
    fn is_here_after_flush(&mut self) -> bool {
        if self.is_away() || self.is_away_for_flush() {
            return false;
        }
        self.flush_now().is_some()
    }

    /// Sends as much as the client takes. Returns true if [`Exchange::detach`] may follow: no thread is writing.
    pub fn is_detachable(&mut self) -> bool {
        self.is_here_after_flush()
    }

    /// Returns true if the kernel has everything that was written.
    pub fn is_flushed(&mut self) -> bool {
        self.is_here_after_flush() && self.stream.output.is_empty()
    }

    /// Returns true if the rest of the body is framed in chunks; `None` if nothing can follow.
    pub(crate) fn stream_framing(&self) -> Option<bool> {
        match self.phase {
            ResponsePhase::Body(BodyFraming::Chunked) if !self.is_gone() => Some(true),
            ResponsePhase::Body(BodyFraming::Raw | BodyFraming::Length(1..)) if !self.is_gone() => Some(false),
            _ => None,
        }
    }
}
