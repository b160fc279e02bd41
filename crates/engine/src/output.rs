//! The bytes of an answer that the socket has not taken yet: in memory, in a temporary file, or in a file that is served.
//!
//! Whoever owns the connection flushes; no socket blocks here. A thread that runs Ruby writes once and hands the rest to
//! the reactor, so a slow reader never holds a Ruby thread. Files that are served may lie on a slow disk: they are the
//! sender's (`sender.rs`), and everybody else leaves them alone.

use crate::descriptors::{Counted, Descriptors};
use rustix::fs::sendfile;
use rustix::io::{self, Errno};
use rustix::net::{send, SendFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a file that one connection sends before others get their turn.
const FILE_SLICE: u64 = 512 * 1024;

/// Bytes from which on a copy into the buffer costs more than a write of its own.
const WRITE_THROUGH: usize = 64 * 1024;

/// Where an answer goes when memory does not hold it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spill<'a> {
    pub(crate) memory_bytes: usize,
    pub(crate) disk_bytes: u64,
    pub(crate) directory: &'a Path,
    pub(crate) descriptors: &'a Arc<Descriptors>,
}

impl Spill<'_> {
    /// What may wait for the client, in memory and on disk together.
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
    /// The socket may take more, but it is someone else's turn, or the sender's.
    Turn,
}

/// What a flush does with a file that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
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
    /// The same of a temporary file of ours.
    Spill {
        file: Counted<File>,
        offset: u64,
        end: u64,
    },
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

    /// Whether what comes next is for the sender: a file that is served, with what stands right before it.
    pub(crate) fn is_at_file(&self) -> bool {
        matches!(self.segments.front(), Some(Segment::File { .. }))
    }

    /// Bytes that lie in memory or in a file of ours.
    pub(crate) fn pending(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Spill { offset, end, .. } => end - offset,
            Segment::File { .. } => 0,
            Segment::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
        });
        (self.buffer.len() - self.sent) as u64 + segments.sum::<u64>()
    }

    /// The buffer to which the head of an answer is written.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if let Some(Segment::File { .. } | Segment::Spill { .. }) = self.segments.back() {
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

    /// What stands in it now.
    pub(crate) fn tail(&self) -> &[u8] {
        match self.segments.back() {
            None => &self.buffer,
            Some(Segment::Bytes { bytes, .. }) => bytes,
            Some(_) => &[],
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
    /// than all when neither the socket nor the disk has room.
    pub(crate) fn push(&mut self, socket: &OwnedFd, bytes: &[u8], spill: Spill<'_>) -> io::Result<usize> {
        let mut taken = 0;
        let is_too_much = self.pending() + bytes.len() as u64 > spill.bytes();
        if (bytes.len() >= WRITE_THROUGH || is_too_much) && self.flush(socket, Files::Leave)? == Flush::Done {
            taken = write_some(socket, bytes, false)?;
            self.progress += taken as u64;
        }
        let kept = self.keep(&bytes[taken..], spill);
        Ok(if kept { bytes.len() } else { taken })
    }

    /// Adds a file, to be sent from `offset` to `end` without entering this process.
    pub(crate) fn push_file(&mut self, file: Arc<Counted<File>>, offset: u64, end: u64) {
        if offset < end {
            self.segments.push_back(Segment::File { file, offset, end });
        }
    }

    fn keep(&mut self, bytes: &[u8], spill: Spill<'_>) -> bool {
        let pending = self.pending() + bytes.len() as u64;
        if bytes.is_empty() {
            return true;
        }
        if pending > spill.bytes() {
            return false;
        }
        if let Some(Segment::Spill { file, end, .. }) = self.segments.back_mut() {
            // `end` moves only when all was written: what a full disk cut short is written again later.
            let written = file.write_all_at(bytes, *end).is_ok();
            *end += if written { bytes.len() as u64 } else { 0 };
            return written;
        }
        if pending <= spill.memory_bytes as u64 || bytes.len() < SMALL {
            self.buffer().extend_from_slice(bytes);
            return true;
        }
        let Some(permit) = spill.descriptors.for_file() else {
            return false;
        };
        let Ok(file) = tempfile::tempfile_in(spill.directory) else {
            return false;
        };
        let file = Counted::new(file, permit);
        let end = bytes.len() as u64;
        let written = file.write_all_at(bytes, 0).is_ok();
        if written {
            self.segments.push_back(Segment::Spill { file, offset: 0, end });
        }
        written
    }

    /// Gives the kernel what it takes without blocking; at most one slice of a file. Where files are left alone, so is what
    /// comes right before one: the head of an answer and its file go out together.
    pub(crate) fn flush(&mut self, socket: &OwnedFd, files: Files) -> io::Result<Flush> {
        if files == Files::Leave && self.is_at_file() {
            return Ok(Flush::Turn);
        }
        if self.sent < self.buffer.len() {
            let more = !self.segments.is_empty();
            let taken = write_some(socket, &self.buffer[self.sent..], more)?;
            self.sent += taken;
            self.progress += taken as u64;
            if self.sent < self.buffer.len() {
                return Ok(Flush::Pending);
            }
        }
        self.buffer.clear();
        self.sent = 0;
        let mut slice = FILE_SLICE;
        while let Some(segment) = self.segments.front_mut() {
            if files == Files::Leave && matches!(segment, Segment::File { .. }) {
                return Ok(Flush::Turn);
            }
            let (taken, is_full) = segment.send(socket, slice)?;
            self.progress += taken;
            slice = slice.saturating_sub(taken);
            if segment.is_sent() {
                self.segments.pop_front();
            } else if is_full {
                return Ok(Flush::Pending);
            }
            if slice == 0 && !self.segments.is_empty() {
                return Ok(Flush::Turn);
            }
        }
        self.progress = 0;
        Ok(Flush::Done)
    }
}

impl Segment {
    /// Sends at most `most` bytes; returns how many, and whether the socket took fewer than it was offered.
    fn send(&mut self, socket: &OwnedFd, most: u64) -> io::Result<(u64, bool)> {
        match self {
            Segment::Bytes { bytes, sent } => {
                let taken = write_some(socket, &bytes[*sent..], false)?;
                *sent += taken;
                Ok((taken as u64, *sent < bytes.len()))
            }
            Segment::File { file, offset, end } => send_file(socket, file, offset, *end, most),
            Segment::Spill { file, offset, end } => send_file(socket, file, offset, *end, most),
        }
    }

    fn is_sent(&self) -> bool {
        match self {
            Segment::Bytes { bytes, sent } => *sent == bytes.len(),
            Segment::File { offset, end, .. } | Segment::Spill { offset, end, .. } => offset == end,
        }
    }
}

fn send_file(socket: &OwnedFd, file: &File, offset: &mut u64, end: u64, most: u64) -> io::Result<(u64, bool)> {
    let wanted = (end - *offset).min(most);
    let mut taken = 0;
    while taken < wanted {
        match sendfile(socket, file, Some(offset), (wanted - taken) as usize) {
            // The file has become shorter than its announced length: nothing honest can follow.
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => taken += count as u64,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((taken, taken < wanted))
}

fn write_some(socket: &OwnedFd, bytes: &[u8], more: bool) -> io::Result<usize> {
    let flags = if more {
        SendFlags::NOSIGNAL | SendFlags::MORE
    } else {
        SendFlags::NOSIGNAL
    };
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket, &bytes[sent..], flags) {
            Ok(taken) if taken == bytes.len() - sent => return Ok(bytes.len()),
            Ok(taken) => sent += taken,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
