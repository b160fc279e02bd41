//! The bytes of a response that the socket has not taken yet: in memory, in a temporary file, or in a file that is served.
//!
//! Whoever owns the connection flushes; no socket blocks here. A thread that runs Ruby writes once and hands the rest to
//! the reactor, so a slow reader never holds a Ruby thread. What is more than a buffer holds is spooled (`spool/`). That, and
//! files that are served, may lie on a slow disk: they are the file sender's (`engine/file_sender.rs`), and whoever has
//! time leaves them alone.

use crate::clock::Millis;
use crate::config::Config;
use crate::limits::descriptors::Counted;
use crate::spool::{Charge, Claim, Slowness, Spool, Spooled};
use crate::transport::Transport;
use rustix::io;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

/// Most bytes of a file that one connection sends before others get their turn.
const FILE_SLICE: u64 = 512 * 1024;

/// Bytes from which on a copy into the buffer costs more than a write of its own; and a buffer that is worth being spooled.
const WRITE_THROUGH: usize = 64 * 1024;

/// A buffer that is sent is kept for what comes next if it is no larger.
const KEPT_CAPACITY: usize = 32 * 1024;

/// Where a response goes when its connection's buffer does not hold it.
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

    /// What may wait for the client, in the buffer and spooled.
    fn bytes(&self) -> u64 {
        self.disk_bytes.saturating_add(self.memory_bytes as u64)
    }
}

/// Fragments of chunked coding and the like: never worth a file of their own.
const SMALL: usize = 64;

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Everything is with the kernel.
    Done,
    /// The socket is full.
    Pending,
    /// The socket may take more, but it is someone else's turn, or the file sender's.
    Turn,
}

/// What a flush does with a file that is served, and with what is spooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileParts {
    Send,
    Leave,
}

#[derive(Debug)]
enum Segment {
    /// Bytes between `offset` and `end` of a file that is served.
    File {
        file: Arc<Counted<File>>,
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
    /// When the socket was first full since then, and the progress at that time.
    full: Option<(Millis, u64)>,
    /// The place in the line for memory of the thread that writes here.
    claim: Option<Claim>,
    /// For what the buffer keeps while the client takes its time.
    counted: Option<Charge>,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.buffer.len() && self.segments.is_empty()
    }

    /// Whether the buffer is all there is and none of it was sent, so that its end can be cut off.
    pub(crate) fn is_unsent(&self) -> bool {
        self.sent == 0 && self.segments.is_empty() && self.progress == 0
    }

    /// Bytes taken by the kernel since the output was last empty.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// Whether what comes next is for the file sender: a file that is served, with what stands right before it, or what is
    /// spooled.
    pub(crate) fn is_at_file(&self) -> bool {
        match self.segments.front() {
            Some(Segment::File { .. }) => true,
            Some(Segment::Spooled(_)) => self.sent == self.buffer.len(),
            _ => false,
        }
    }

    /// Bytes that lie in memory or in a file of ours.
    pub(crate) fn pending(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Spooled(spooled) => spooled.pending(),
            Segment::File { .. } => 0,
            Segment::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
        });
        (self.buffer.len() - self.sent) as u64 + segments.sum::<u64>()
    }

    /// Whether what is added now is spooled.
    pub(crate) fn is_spooling(&self) -> bool {
        matches!(self.segments.back(), Some(Segment::Spooled(_)))
    }

    /// The writer's place in the line for memory, if the last [`Output::push`] was short for want of that.
    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// How slow the client is, if it does not take all at once.
    pub(crate) fn slowness(&self, now: Millis) -> Option<Slowness> {
        let (since, before) = self.full?;
        let taken = self.progress - before;
        Some(Slowness::new(now - since, taken, self.pending()))
    }

    /// Whether it keeps memory that others could use.
    pub(crate) fn holds_memory(&self) -> bool {
        let holds = |segment: &Segment| matches!(segment, Segment::Spooled(spooled) if spooled.holds_memory());
        self.counted.is_some() || self.segments.iter().any(holds)
    }

    /// Nothing will be added until the client has taken more: what there is counts as waiting, and goes to the disk if it has
    /// to.
    pub(crate) fn settle(&mut self, spool: &Arc<Spool>) {
        let unsent = self.buffer.len() - self.sent;
        if unsent >= WRITE_THROUGH && self.segments.is_empty() && spool.is_memory_scarce() {
            let spooled = Spooled::new(spool);
            spooled.adopt(&self.buffer[self.sent..]);
            self.segments.push_back(Segment::Spooled(spooled));
            self.forget_buffer();
        } else if unsent > 0 && self.counted.is_none() {
            self.counted = Some(spool.count_memory(unsent));
        }
        for segment in &self.segments {
            if let Segment::Spooled(spooled) = segment {
                spooled.close();
            }
        }
    }

    /// The buffer to which the head of a response is written.
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

    /// Adds bytes of which there are so few that they need no room among what waits for clients.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self.segments.back() {
            Some(Segment::Spooled(spooled)) => spooled.push_few(bytes),
            _ => self.buffer().extend_from_slice(bytes),
        }
    }

    /// Gives the buffer away when there is nothing in it.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.sent = 0;
        std::mem::take(&mut self.buffer)
    }

    /// Takes what the buffer holds and nobody has sent.
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

    /// Adds body bytes. Large ones go straight to the socket, as far as it takes them. Returns how many were taken: fewer
    /// than all when neither the socket nor the spool has room.
    pub(crate) fn push(
        &mut self,
        transport: &dyn Transport,
        bytes: &[u8],
        spill: Spill<'_>,
        files: FileParts,
    ) -> io::Result<usize> {
        let mut taken = 0;
        let outgrows = self.pending() + bytes.len() as u64 > spill.memory_bytes as u64;
        if (bytes.len() >= WRITE_THROUGH || outgrows) && self.flush_whole(transport, files)? == Flush::Done {
            taken = transport.send_most(bytes, false)?;
            self.progress += taken as u64;
            if taken < bytes.len() {
                self.note_full();
            }
        }
        taken += self.keep(&bytes[taken..], spill);
        if taken == bytes.len() {
            self.claim = None;
        }
        Ok(taken)
    }

    /// Adds a file, to be sent from `offset` to `end` without entering this process.
    pub(crate) fn push_file(&mut self, file: Arc<Counted<File>>, offset: u64, end: u64) {
        if offset < end {
            self.segments.push_back(Segment::File { file, offset, end });
        }
    }

    /// Keeps what has room; returns how many bytes that were.
    fn keep(&mut self, bytes: &[u8], spill: Spill<'_>) -> usize {
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
            self.segments.push_back(Segment::Spooled(Spooled::new(spill.spool)));
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
        if self.full.is_none() {
            self.full = Some((Millis::now(), self.progress));
        }
    }

    fn forget_buffer(&mut self) {
        self.sent = 0;
        self.buffer.clear();
        self.counted = None;
        if self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
    }

    /// Flushes until the socket is full or everything is sent, whosever turn it is.
    pub(crate) fn flush_whole(&mut self, transport: &dyn Transport, files: FileParts) -> io::Result<Flush> {
        loop {
            let flushed = self.flush(transport, files)?;
            if flushed != Flush::Turn || files == FileParts::Leave {
                return Ok(flushed);
            }
        }
    }

    /// Gives the kernel what it takes without blocking; at most one slice of a file. Where files are left alone, so is what
    /// comes right before one: the head of a response and its file go out together.
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
            return Ok(self.done());
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
        Ok(self.done())
    }

    fn done(&mut self) -> Flush {
        self.progress = 0;
        self.full = None;
        self.counted = None;
        Flush::Done
    }
}

impl Segment {
    /// Sends at most `most` bytes; returns how many, and whether the socket took fewer than it was offered.
    fn send(&mut self, transport: &dyn Transport, most: u64) -> io::Result<(u64, bool)> {
        match self {
            Segment::Bytes { bytes, sent } => {
                let taken = transport.send_most(&bytes[*sent..], false)?;
                *sent += taken;
                Ok((taken as u64, *sent < bytes.len()))
            }
            Segment::File { file, offset, end } => transport.send_part(file, offset, *end, most),
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
