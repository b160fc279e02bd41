//! Bytes of a response that the socket has not taken yet: in memory, in a temporary file, or in a served file.
//!
//! The owner of the connection flushes, and no flush blocks. A thread of the app writes once and leaves the rest to the
//! reactor, or, while the app works on the response, to the body sender (`exchange/loan.rs`). So a slow reader never
//! blocks such a thread. Bytes that the buffer cannot hold are spooled (`spool/`).
//! Spooled bytes and served files may be on a slow disk, so only the file sender sends them
//! (`engine/native/file_sender.rs`), the body sender, or a thread that may wait.

mod saved;

pub(crate) use saved::{SavedOutput, SavedPiece};

use crate::clock::Millis;
use crate::config::Config;
use crate::limits::budget::{Budget, Kind, Share};
use crate::limits::descriptors::Counted;
use crate::spool::{Charge, Claim, ReadRate, Slowness, Spool, Spooled};
use crate::transport::Transport;
use rustix::io::{self, Errno};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

/// Most bytes of a file that one connection sends in one turn.
const FILE_SLICE: u64 = 512 * 1024;

/// From this size on, a copy to the buffer costs more than a separate write, and a buffer is worth spooling.
const WRITE_THROUGH: usize = 64 * 1024;

/// Capacity up to which an empty buffer is kept.
pub(crate) const KEPT_CAPACITY: usize = 32 * 1024;

/// Destination of a response that exceeds its connection's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spill<'a> {
    pub(crate) memory_bytes: usize,
    pub(crate) disk_bytes: u64,
    pub(crate) spool: &'a Arc<Spool>,
}

impl<'a> Spill<'a> {
    pub(crate) fn new(config: &Config, spool: &'a Arc<Spool>) -> Spill<'a> {
        Spill {
            memory_bytes: config.response_memory_bytes,
            disk_bytes: config.response_disk_bytes,
            spool,
        }
    }

    /// Most bytes that may wait for the client, in the buffer and spooled.
    fn bytes(&self) -> u64 {
        self.disk_bytes.saturating_add(self.memory_bytes as u64)
    }
}

/// Fewer bytes than this (such as the framing of a chunk) are not worth spooling by themselves.
const SMALL: usize = 64;

/// Result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// The kernel has everything.
    Done,
    /// The socket is full.
    Pending,
    /// The socket may take more, but the turn is over, or the file sender has to continue.
    Turn,
}

/// Decides if a flush sends served files and spooled bytes, or leaves both to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileParts {
    Send,
    Leave,
}

#[derive(Debug)]
enum Segment {
    /// Bytes from `offset` to `end` of a served file.
    File {
        file: Arc<Counted<File>>,
        /// Number of the device with the file.
        device: u64,
        offset: u64,
        end: u64,
    },
    Spooled(Arc<Spooled>),
    Bytes {
        bytes: Vec<u8>,
        sent: usize,
    },
}

/// Unsent bytes, in order: first the buffer, then the segments.
#[derive(Debug, Default)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    sent: usize,
    segments: VecDeque<Segment>,
    /// Bytes that the kernel has taken since the output was last empty.
    progress: u64,
    read_rate: ReadRate,
    /// Slot of the writing thread in the queue for memory.
    claim: Option<Claim>,
    /// Counts the bytes in the buffer while they wait for the client.
    counted: Option<Charge>,
    /// Memory of the whole output, for the rank of an HTTP/1 connection. An HTTP/2 connection has a budget for all its
    /// streams.
    held: Option<Share>,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.buffer.len() && self.segments.is_empty()
    }

    /// True if nothing was sent and everything is in the buffer, so that its end can be removed.
    pub(crate) fn is_unsent(&self) -> bool {
        self.sent == 0 && self.segments.is_empty() && self.progress == 0
    }

    /// Bytes that the kernel has taken since the output was last empty.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// True if the next bytes are for the file sender: a served file, with the bytes right before it, or spooled bytes.
    pub(crate) fn is_at_file(&self) -> bool {
        match self.segments.front() {
            Some(Segment::File { .. }) => true,
            Some(Segment::Spooled(_)) => self.sent == self.buffer.len(),
            _ => false,
        }
    }

    /// True if it has bytes of a served file.
    pub(crate) fn has_file(&self) -> bool {
        let is_file = |segment: &Segment| matches!(segment, Segment::File { .. });
        self.segments.iter().any(is_file)
    }

    /// Device of the next file, if that is a served one.
    pub(crate) fn disk(&self) -> Option<u64> {
        match self.segments.front() {
            Some(Segment::File { device, .. }) => Some(*device),
            _ => None,
        }
    }

    /// Bytes that are in memory or in a temporary file.
    pub(crate) fn pending(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Spooled(spooled) => spooled.pending(),
            Segment::File { .. } => 0,
            Segment::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
        });
        (self.buffer.len() - self.sent) as u64 + segments.sum::<u64>()
    }

    /// True if bytes that are added now are spooled.
    pub(crate) fn is_spooling(&self) -> bool {
        matches!(self.segments.back(), Some(Segment::Spooled(_)))
    }

    /// Slot of the writer in the queue for memory, if the last [`Output::push`] was short for lack of memory.
    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// Slowness of the client; `None` if it takes everything at once.
    pub(crate) fn slowness(&self, now: Millis) -> Option<Slowness> {
        self.read_rate.slowness(now, self.progress, self.pending())
    }

    /// True if this holds memory that others could use.
    pub(crate) fn holds_memory(&self) -> bool {
        let holds = |segment: &Segment| matches!(segment, Segment::Spooled(spooled) if spooled.holds_memory());
        self.counted.is_some() || self.segments.iter().any(holds)
    }

    /// Called when nothing will be added until the client has taken more: counts the waiting bytes, and moves them to
    /// the disk if memory is scarce. `own`: a budget for an HTTP/1 connection.
    pub(crate) fn settle(&mut self, spool: &Arc<Spool>, transport: &dyn Transport, own: impl FnOnce() -> Arc<Budget>) {
        let session = transport.budget();
        let unsent = self.buffer.len() - self.sent;
        if unsent >= WRITE_THROUGH && self.segments.is_empty() && spool.is_memory_scarce() {
            let spooled = Spooled::new(spool, session);
            spooled.adopt(&self.buffer[self.sent..]);
            self.segments.push_back(Segment::Spooled(spooled));
            self.forget_buffer();
        } else if unsent > 0 && self.counted.is_none() {
            self.counted = Some(spool.count_memory(self.buffer.capacity(), session));
        }
        for segment in &self.segments {
            if let Segment::Spooled(spooled) = segment {
                spooled.close();
            }
        }
        if session.is_none() {
            let held = self.held();
            match &mut self.held {
                Some(share) => share.set(held),
                None if held > 0 => self.held = Some(own().count(Kind::Responses, held)),
                None => {}
            }
        }
    }

    /// Bytes of memory that this takes from the total.
    fn held(&self) -> u64 {
        let spooled = self.segments.iter().map(|segment| match segment {
            Segment::Spooled(spooled) => spooled.memory(),
            _ => 0,
        });
        self.counted.as_ref().map_or(0, Charge::bytes) + spooled.sum::<u64>()
    }

    /// Buffer for the head of a response.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if let Some(Segment::File { .. } | Segment::Spooled(_)) = self.segments.back() {
            self.segments.push_back(Segment::Bytes {
                bytes: Vec::new(),
                sent: 0,
            });
        }
        match self.segments.back_mut() {
            Some(Segment::Bytes { bytes, .. }) => bytes,
            _ => &mut self.buffer,
        }
    }

    /// Adds a few bytes, regardless of the limits.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self.segments.back() {
            Some(Segment::Spooled(spooled)) => spooled.push_few(bytes),
            _ => self.buffer().extend_from_slice(bytes),
        }
    }

    /// Takes the buffer; only if it is empty.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.sent = 0;
        std::mem::take(&mut self.buffer)
    }

    /// Takes the unsent bytes of the buffer.
    pub(crate) fn take_unsent(&mut self) -> Vec<u8> {
        let unsent = self.buffer.split_off(self.sent);
        self.buffer.clear();
        self.sent = 0;
        unsent
    }

    pub(crate) fn set_buffer(&mut self, buffer: Vec<u8>) {
        if self.buffer.capacity() == 0 {
            self.buffer = buffer;
        }
    }

    /// Adds body bytes. Large ones go directly to the socket, as far as it takes them. Returns the number of bytes
    /// taken: fewer than all if neither the socket nor the spool has room.
    pub(crate) fn push(
        &mut self,
        transport: &dyn Transport,
        bytes: &[u8],
        spill: Spill<'_>,
        files: FileParts,
    ) -> io::Result<usize> {
        if self.segments.is_empty() && bytes.len() < WRITE_THROUGH {
            // The usual response: few bytes, after a head that is still in the buffer.
            if self.buffer.len() - self.sent + bytes.len() <= spill.memory_bytes {
                self.buffer.extend_from_slice(bytes);
                self.claim = None;
                return Ok(bytes.len());
            }
        }
        let mut taken = 0;
        let outgrows = self.pending() + bytes.len() as u64 > spill.memory_bytes as u64;
        if (bytes.len() >= WRITE_THROUGH || outgrows) && self.flush_whole(transport, files)? == Flush::Done {
            taken = transport.send_most(bytes, false)?;
            self.progress += taken as u64;
            if taken < bytes.len() {
                self.note_full();
            }
        }
        taken += self.keep(&bytes[taken..], spill, transport.budget());
        if taken == bytes.len() {
            self.claim = None;
        }
        Ok(taken)
    }

    /// Adds a file on `device`, to be sent from `offset` to `end` without being copied to user space.
    pub(crate) fn push_file(&mut self, file: Arc<Counted<File>>, device: u64, offset: u64, end: u64) {
        if offset < end {
            self.segments.push_back(Segment::File {
                file,
                device,
                offset,
                end,
            });
        }
    }

    /// Keeps as many bytes as there is room for; returns their number.
    fn keep(&mut self, bytes: &[u8], spill: Spill<'_>, session: Option<&Arc<Budget>>) -> usize {
        let pending = self.pending();
        let room = spill.bytes().saturating_sub(pending);
        let bytes = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        if bytes.is_empty() {
            return 0;
        }
        let fits = pending + bytes.len() as u64 <= spill.memory_bytes as u64;
        if !self.is_spooling() {
            if fits || bytes.len() < SMALL {
                self.buffer().extend_from_slice(bytes);
                return bytes.len();
            }
            self.segments
                .push_back(Segment::Spooled(Spooled::new(spill.spool, session)));
        }
        let Some(Segment::Spooled(spooled)) = self.segments.back() else {
            return 0;
        };
        let taken = spooled.push(bytes, &mut self.claim);
        if taken < bytes.len() && self.claim.is_none() {
            self.claim = Some(spill.spool.wait_for_memory());
        }
        taken
    }

    fn note_full(&mut self) {
        self.read_rate.note_full(Millis::now(), self.progress);
    }

    fn forget_buffer(&mut self) {
        self.sent = 0;
        self.buffer.clear();
        self.counted = None;
        if self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
    }

    /// Flushes until the socket is full or everything is sent, in a single turn.
    pub(crate) fn flush_whole(&mut self, transport: &dyn Transport, files: FileParts) -> io::Result<Flush> {
        loop {
            let flushed = self.flush(transport, files)?;
            if flushed != Flush::Turn || files == FileParts::Leave {
                return Ok(flushed);
            }
        }
    }

    /// Gives the kernel as much as it takes without blocking; at most one slice of a file. If files are left to others,
    /// so are the bytes right before one: the head of a response and its file are sent together.
    pub(crate) fn flush(&mut self, transport: &dyn Transport, files: FileParts) -> io::Result<Flush> {
        if files == FileParts::Leave && self.is_at_file() {
            return Ok(Flush::Turn);
        }
        if self.sent < self.buffer.len() {
            let more = !self.segments.is_empty();
            let taken = transport.send_most(&self.buffer[self.sent..], more)?;
            self.sent += taken;
            self.progress += taken as u64;
            if self.sent < self.buffer.len() {
                self.note_full();
                return Ok(Flush::Pending);
            }
        }
        if self.segments.is_empty() {
            self.sent = 0;
            self.buffer.clear();
            return self.finish(transport);
        }
        self.forget_buffer();
        let mut slice = FILE_SLICE;
        while let Some(segment) = self.segments.front_mut() {
            if files == FileParts::Leave && !matches!(segment, Segment::Bytes { .. }) {
                return Ok(Flush::Turn);
            }
            let (taken, is_full) = segment.send(transport, slice)?;
            self.progress += taken;
            slice = slice.saturating_sub(taken);
            if segment.is_sent() {
                self.segments.pop_front();
            } else if is_full {
                self.note_full();
                return Ok(Flush::Pending);
            }
            if slice == 0 && !self.segments.is_empty() {
                return Ok(Flush::Turn);
            }
        }
        self.finish(transport)
    }

    /// The transport has taken everything; the kernel may not have.
    fn finish(&mut self, transport: &dyn Transport) -> io::Result<Flush> {
        if transport.send_rest() == Err(Errno::AGAIN) {
            self.note_full();
            return Ok(Flush::Pending);
        }
        self.progress = 0;
        self.read_rate = ReadRate::default();
        self.counted = None;
        self.held = None;
        Ok(Flush::Done)
    }
}

impl Segment {
    /// Sends at most `most` bytes; returns their number, and true if the socket took fewer than it was offered.
    fn send(&mut self, transport: &dyn Transport, most: u64) -> io::Result<(u64, bool)> {
        match self {
            Segment::Bytes { bytes, sent } => {
                let taken = transport.send_most(&bytes[*sent..], false)?;
                *sent += taken;
                Ok((taken as u64, *sent < bytes.len()))
            }
            Segment::File { file, offset, end, .. } => transport.send_part(file, offset, *end, most),
            Segment::Spooled(spooled) => spooled.send(transport, most),
        }
    }

    fn is_sent(&self) -> bool {
        match self {
            Segment::Bytes { bytes, sent } => *sent == bytes.len(),
            Segment::File { offset, end, .. } => offset == end,
            Segment::Spooled(spooled) => spooled.pending() == 0,
        }
    }
}
