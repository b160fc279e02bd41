//! The bytes of an answer that the socket has not taken yet: in memory, in a temporary file, or in a file of the app.
//!
//! Whoever owns the connection flushes; nothing here blocks. A thread that runs Ruby writes once and hands the rest to
//! the reactor, so a slow reader never holds a Ruby thread.

use rustix::fs::sendfile;
use rustix::io::{self, Errno};
use rustix::net::{send, SendFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    /// The socket is full, or it is someone else's turn.
    Pending,
}

#[derive(Debug)]
enum Segment {
    /// Bytes between `offset` and `end` of a file.
    File {
        file: File,
        offset: u64,
        end: u64,
        ours: bool,
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

    /// Bytes that lie in memory or in a file of ours.
    pub(crate) fn pending(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::File {
                offset,
                end,
                ours: true,
                ..
            } => end - offset,
            Segment::File { .. } => 0,
            Segment::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
        });
        (self.buffer.len() - self.sent) as u64 + segments.sum::<u64>()
    }

    /// The buffer to which the head of an answer is written.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if let Some(Segment::File { .. }) = self.segments.back() {
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
        if (bytes.len() >= WRITE_THROUGH || is_too_much) && self.flush(socket)? == Flush::Done {
            taken = write_some(socket, bytes, false)?;
            self.progress += taken as u64;
        }
        let kept = self.keep(&bytes[taken..], spill);
        Ok(if kept { bytes.len() } else { taken })
    }

    /// Adds a file, to be sent from `offset` to `end` without entering this process.
    pub(crate) fn push_file(&mut self, file: File, offset: u64, end: u64) {
        if offset < end {
            self.segments.push_back(Segment::File {
                file,
                offset,
                end,
                ours: false,
            });
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
        if let Some(Segment::File {
            file, end, ours: true, ..
        }) = self.segments.back_mut()
        {
            // `end` moves only when all was written: what a full disk cut short is written again later.
            let written = file.write_all_at(bytes, *end).is_ok();
            *end += if written { bytes.len() as u64 } else { 0 };
            return written;
        }
        if pending <= spill.memory_bytes as u64 || bytes.len() < SMALL {
            self.buffer().extend_from_slice(bytes);
            return true;
        }
        let Ok(file) = tempfile::tempfile_in(spill.directory) else {
            return false;
        };
        let end = bytes.len() as u64;
        let written = file.write_all_at(bytes, 0).is_ok();
        if written {
            self.segments.push_back(Segment::File {
                file,
                offset: 0,
                end,
                ours: true,
            });
        }
        written
    }

    /// Gives the kernel what it takes without blocking; at most one slice of a file.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> io::Result<Flush> {
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
            let taken = segment.send(socket, slice)?;
            self.progress += taken;
            if segment.is_sent() {
                self.segments.pop_front();
            } else {
                return Ok(Flush::Pending);
            }
            slice = slice.saturating_sub(taken);
            if slice == 0 && !self.segments.is_empty() {
                return Ok(Flush::Pending);
            }
        }
        self.progress = 0;
        Ok(Flush::Done)
    }
}

impl Segment {
    fn send(&mut self, socket: &OwnedFd, most: u64) -> io::Result<u64> {
        match self {
            Segment::Bytes { bytes, sent } => {
                let taken = write_some(socket, &bytes[*sent..], false)?;
                *sent += taken;
                Ok(taken as u64)
            }
            Segment::File { file, offset, end, .. } => {
                let count = (*end - *offset).min(most) as usize;
                match sendfile(socket, &*file, Some(offset), count) {
                    // The file has become shorter than its announced length: nothing honest can follow.
                    Ok(0) => Err(Errno::PIPE),
                    Ok(taken) => Ok(taken as u64),
                    Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                    Err(error) => Err(error),
                }
            }
        }
    }

    fn is_sent(&self) -> bool {
        match self {
            Segment::Bytes { bytes, sent } => *sent == bytes.len(),
            Segment::File { offset, end, .. } => offset == end,
        }
    }
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
