//! The part of a response that waits for its client and does not fit into its connection's buffer: parts, in order,
//! each in memory or in a temporary file.
//!
//! The writer adds parts and never touches the disk. The spooler moves parts to the file, starting with the last one,
//! which is sent last. The owner of the connection sends from both. The lock is held only briefly, and during no system
//! call.

mod saved;

pub(crate) use saved::{SavedPart, SavedSpool};

use super::totals::{Charge, Claim};
use super::Spool;
use crate::limits::budget::Budget;
use crate::limits::descriptors::Counted;
use crate::sync::Mutex;
use crate::transport::Transport;
use fairlead_system::files;
use rustix::io;
use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The size of a part; the last one may be shorter.
pub(crate) const PART_BYTES: usize = 256 * 1024;

/// The space of this many sent parts of a file is freed together.
const PARTS_TO_GIVE_UP: usize = 16;

#[derive(Debug)]
pub(crate) struct Spooled {
    spool: Arc<Spool>,
    /// The budget of the HTTP/2 connection, if this is for one of its streams.
    budget: Option<Arc<Budget>>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    parts: VecDeque<Part>,
    /// The part that is being filled.
    tail: Option<Block>,
    /// Bytes that are not sent.
    pending: u64,
    file: Option<Arc<Counted<File>>>,
    /// Length of the file.
    end: u64,
    /// Disk space that the file takes.
    on_disk: u64,
    /// Offsets of parts that were sent completely. Their space is freed and not used again: the kernel sends from the
    /// file's pages, and may still need them.
    sent: Vec<u64>,
    /// Parts begun so far: the number of the next one.
    begun: u64,
    /// The spooler has it in its queue.
    is_queued: bool,
    /// A write to disk has failed: the rest stays in memory.
    stays: bool,
}

#[derive(Debug)]
struct Part {
    number: u64,
    place: Location,
    length: usize,
    sent: usize,
}

#[derive(Debug)]
enum Location {
    Memory(Arc<Block>),
    /// The offset in the file.
    Disk(u64),
}

#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    _charge: Charge,
}

/// The result of the spooler's attempt to move a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// One part is on disk now; there may be others.
    Part,
    /// Memory has no more parts that could be moved.
    Nothing,
    /// The disk total is reached.
    NoRoom,
    /// The part could not be written. It stays in memory, and so do the following parts.
    Failed(ErrorKind),
    /// The same, because there is no descriptor for the file.
    NoDescriptor,
}

/// The bytes that are sent next, without the lock.
enum Piece {
    Memory(Arc<Block>),
    Disk(Arc<Counted<File>>, u64),
}

impl Spooled {
    pub(crate) fn new(spool: &Arc<Spool>, budget: Option<&Arc<Budget>>) -> Arc<Spooled> {
        Arc::new(Spooled {
            spool: Arc::clone(spool),
            budget: budget.cloned(),
            inner: Mutex::default(),
        })
    }

    /// Bytes that are not sent.
    pub(crate) fn pending(&self) -> u64 {
        self.inner.lock().pending
    }

    /// Returns true if a part is in memory, so that aborting the client would free memory.
    pub(crate) fn holds_memory(&self) -> bool {
        let inner = self.inner.lock();
        let is_in_memory = |part: &Part| matches!(part.place, Location::Memory(_));
        inner.tail.is_some() || inner.parts.iter().any(is_in_memory)
    }

    /// Adds as many bytes as there is memory for; returns their number. `claim`: the writer's slot in the queue for
    /// memory, from its first attempt until it gets the memory.
    pub(crate) fn push(self: &Arc<Self>, bytes: &[u8], claim: &mut Option<Claim>) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let mut inner = self.inner.lock();
            if inner.tail.is_none() {
                drop(inner);
                let Some(charge) = self.spool.memory_for_part(claim, self.budget.as_ref()) else {
                    break;
                };
                inner = self.inner.lock();
                inner.tail = Some(Block::new(charge));
            }
            taken += inner.fill(&bytes[taken..]);
            let is_full = inner.tail.as_ref().is_some_and(|tail| tail.bytes.len() == PART_BYTES);
            if is_full {
                inner.close_tail();
                self.enqueue(&mut inner);
            }
        }
        taken
    }

    /// Adds a few bytes, even if there is no memory for them, because the framing of a body cannot be left out.
    pub(crate) fn push_few(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock();
        let has_room = |tail: &Block| tail.bytes.len() + bytes.len() <= PART_BYTES;
        if !inner.tail.as_ref().is_some_and(has_room) {
            inner.close_tail();
            inner.tail = Some(Block::new(self.count(PART_BYTES)));
        }
        inner.fill(bytes);
    }

    /// Adds bytes from a buffer, which are counted even if there is no memory for them.
    pub(crate) fn adopt(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock();
        inner.close_tail();
        for piece in bytes.chunks(PART_BYTES) {
            inner.tail = Some(Block {
                bytes: piece.to_vec(),
                _charge: self.count(piece.len()),
            });
            inner.pending += piece.len() as u64;
            inner.close_tail();
        }
    }

    fn count(&self, bytes: usize) -> Charge {
        self.spool.totals.count_memory(bytes as u64, self.budget.as_ref())
    }

    /// Bytes of memory that it holds.
    pub(crate) fn memory(&self) -> u64 {
        let inner = self.inner.lock();
        let in_memory = inner.parts.iter().filter(|part| part.is_in_memory()).count();
        ((in_memory + usize::from(inner.tail.is_some())) * PART_BYTES) as u64
    }

    /// Ends the current part, because nothing will be added for a while: it may go to the disk.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut inner = self.inner.lock();
        inner.close_tail();
        self.enqueue(&mut inner);
    }

    fn enqueue(self: &Arc<Self>, inner: &mut Inner) {
        let may_move = || !inner.stays && inner.parts.iter().any(Part::is_in_memory);
        if !inner.is_queued && (inner.sent.len() >= PARTS_TO_GIVE_UP || may_move()) {
            inner.is_queued = true;
            self.spool.enqueue(self);
        }
    }

    /// Sends at most `most` bytes; returns their number, and true if the socket took fewer than it was offered.
    pub(crate) fn send(self: &Arc<Self>, transport: &dyn Transport, most: u64) -> io::Result<(u64, bool)> {
        let mut taken = 0;
        while taken < most {
            let Some((piece, sent, length)) = self.inner.lock().next_piece() else {
                break;
            };
            let wanted = (length - sent).min(usize::try_from(most - taken).unwrap_or(usize::MAX));
            let count = match piece {
                Piece::Memory(block) => transport.send_most(&block.bytes[sent..sent + wanted], false)? as u64,
                Piece::Disk(file, place) => {
                    let mut offset = place + sent as u64;
                    transport
                        .send_part(&file, &mut offset, place + length as u64, wanted as u64)?
                        .0
                }
            };
            taken += count;
            let mut inner = self.inner.lock();
            inner.sent(count);
            if inner.sent.len() >= PARTS_TO_GIVE_UP {
                self.enqueue(&mut inner);
            }
            drop(inner);
            if count < wanted as u64 {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    /// Moves the last part in memory to the file. Only the spooler calls this; it may take long.
    pub(super) fn move_part(&self) -> Moved {
        self.give_up_sent();
        let mut inner = self.inner.lock();
        let last = inner.parts.iter().rev().find(|part| part.is_in_memory());
        let (number, block) = match last.map(|part| (part.number, &part.place)) {
            Some((number, Location::Memory(block))) if !inner.stays => (number, Arc::clone(block)),
            _ => {
                inner.is_queued = false;
                return Moved::Nothing;
            }
        };
        let Some(place) = inner.take_place(&self.spool) else {
            return Moved::NoRoom;
        };
        let file = inner.file.clone();
        drop(inner);
        let written = file
            .map_or_else(|| self.spool.new_file(self.budget.as_ref()), Ok)
            .and_then(|file| file.write_all_at(&block.bytes, place).map(|()| file));
        let mut inner = self.inner.lock();
        match written {
            Ok(file) => {
                inner.file = Some(file);
                inner.moved(number, place);
            }
            Err(error) => {
                // Then the client gets these bytes from memory, and the writer waits if they are too many.
                inner.sent.push(place);
                inner.stays = true;
                drop(inner);
                // An HTTP/2 connection with all the files that it may have needs no log line.
                if !self.spool.has_its_files(self.budget.as_ref()) {
                    return match io::Errno::from_io_error(&error) {
                        Some(io::Errno::MFILE | io::Errno::NFILE) => Moved::NoDescriptor,
                        _ => Moved::Failed(error.kind()),
                    };
                }
            }
        }
        Moved::Part
    }
}

impl Spooled {
    /// Punches holes in the file where its bytes were sent. If that fails, they take space until everything is sent.
    fn give_up_sent(&self) {
        let mut inner = self.inner.lock();
        let places = std::mem::take(&mut inner.sent);
        let Some(file) = inner.file.clone() else { return };
        drop(inner);
        let part = PART_BYTES as u64;
        let is_given_up = |place: &&u64| files::punch_hole(&file, **place, part).is_ok();
        let bytes = places.iter().filter(is_given_up).count() as u64 * part;
        if bytes > 0 {
            self.inner.lock().on_disk -= bytes;
            self.spool.free_disk(bytes);
        }
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        if inner.end > 0 {
            self.spool.discard(inner.file.take(), inner.on_disk);
        }
    }
}

impl Inner {
    /// Adds as much as fits into the tail.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let Some(tail) = &mut self.tail else { return 0 };
        let count = bytes.len().min(PART_BYTES - tail.bytes.len());
        tail.bytes.extend_from_slice(&bytes[..count]);
        self.pending += count as u64;
        count
    }

    fn close_tail(&mut self) {
        let Some(block) = self.tail.take() else { return };
        self.parts.push_back(Part {
            number: self.begun,
            length: block.bytes.len(),
            place: Location::Memory(Arc::new(block)),
            sent: 0,
        });
        self.begun += 1;
    }

    fn next_piece(&mut self) -> Option<(Piece, usize, usize)> {
        if self.parts.is_empty() {
            self.close_tail();
        }
        let part = self.parts.front()?;
        let piece = match &part.place {
            Location::Memory(block) => Piece::Memory(Arc::clone(block)),
            Location::Disk(place) => Piece::Disk(Arc::clone(self.file.as_ref()?), *place),
        };
        Some((piece, part.sent, part.length))
    }

    /// Counts `count` more bytes of the first part as sent.
    fn sent(&mut self, count: u64) {
        self.pending -= count;
        let Some(part) = self.parts.front_mut() else { return };
        part.sent += count as usize;
        if part.sent == part.length {
            if let Location::Disk(place) = part.place {
                self.sent.push(place);
            }
            self.parts.pop_front();
        }
    }

    /// Reserves space for one more part in the file, if the total allows it.
    fn take_place(&mut self, spool: &Spool) -> Option<u64> {
        spool.totals.take_disk(PART_BYTES as u64).then(|| {
            let place = self.end;
            self.end += PART_BYTES as u64;
            self.on_disk += PART_BYTES as u64;
            place
        })
    }

    /// Notes that a part is on disk; it may have been sent meanwhile.
    fn moved(&mut self, number: u64, place: u64) {
        match self.parts.iter_mut().find(|part| part.number == number) {
            Some(part) => part.place = Location::Disk(place),
            None => self.sent.push(place),
        }
    }
}

impl Part {
    fn is_in_memory(&self) -> bool {
        matches!(self.place, Location::Memory(_))
    }
}

impl Block {
    fn new(charge: Charge) -> Block {
        Block {
            bytes: Vec::with_capacity(PART_BYTES),
            _charge: charge,
        }
    }
}
