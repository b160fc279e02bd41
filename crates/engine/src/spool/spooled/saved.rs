//! Spooled bytes that another process continues to send. The temporary file goes along, and with it its share of the total.

use super::{Block, Inner, Location, Part, Spooled, PART_BYTES};
use crate::limits::descriptors::Counted;
use crate::spool::Spool;
use std::fs::File;
use std::sync::Arc;

/// A part, or the place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SavedPart {
    /// The next bytes in memory.
    Memory { length: usize },
    /// The unsent bytes from `sent` to `length` of the part at this place of the file.
    Disk { place: u64, sent: usize, length: usize },
    /// A place that was sent, and takes space until it is given up.
    Sent { place: u64 },
}

/// A temporary file.
#[derive(Debug)]
pub(crate) struct SavedSpool {
    pub(crate) file: Arc<Counted<File>>,
    /// Its length.
    pub(crate) end: u64,
    /// Disk space that it takes.
    pub(crate) on_disk: u64,
}

impl SavedPart {
    /// Its bytes in memory.
    pub(crate) fn in_memory(&self) -> usize {
        match self {
            SavedPart::Memory { length } => *length,
            SavedPart::Disk { .. } | SavedPart::Sent { .. } => 0,
        }
    }

    /// True if it takes space in a file of that size.
    fn is_in(&self, end: u64) -> bool {
        match self {
            SavedPart::Memory { .. } => true,
            SavedPart::Sent { place } => place.checked_add(PART_BYTES as u64).is_some_and(|next| next <= end),
            SavedPart::Disk { place, sent, length } => {
                let is_part = sent < length && *length <= PART_BYTES;
                is_part && place.checked_add(PART_BYTES as u64).is_some_and(|next| next <= end)
            }
        }
    }
}

impl Spooled {
    /// True if the spooler does nothing with it now.
    pub(crate) fn can_be_saved(&self) -> bool {
        !self.inner.lock().is_queued
    }

    /// Unsent bytes in memory.
    pub(crate) fn in_memory(&self) -> u64 {
        let inner = self.inner.lock();
        let in_memory = |part: &Part| (part.length - part.sent) as u64;
        let parts = inner.parts.iter().filter(|part| part.is_in_memory()).map(in_memory);
        parts.sum::<u64>() + inner.tail.as_ref().map_or(0, |tail| tail.bytes.len() as u64)
    }

    /// The unsent parts, which stay here, too. Adds their bytes in memory to `bytes`. `None` if the spooler works on them.
    pub(crate) fn save(&self, bytes: &mut Vec<u8>) -> Option<(Vec<SavedPart>, Option<SavedSpool>)> {
        let inner = self.inner.lock();
        if inner.is_queued {
            return None;
        }
        let file = inner.file.clone().map(|file| SavedSpool {
            file,
            end: inner.end,
            on_disk: inner.on_disk,
        });
        let sent = inner.sent.iter().filter(|_| file.is_some());
        let mut parts: Vec<SavedPart> = sent.map(|place| SavedPart::Sent { place: *place }).collect();
        for part in &inner.parts {
            parts.push(match &part.place {
                Location::Memory(block) => save_bytes(&block.bytes[part.sent..], bytes),
                Location::Disk(place) => SavedPart::Disk {
                    place: *place,
                    sent: part.sent,
                    length: part.length,
                },
            });
        }
        if let Some(tail) = &inner.tail {
            parts.push(save_bytes(&tail.bytes, bytes));
        }
        Some((parts, file))
    }

    /// Continues with the parts of another process; `bytes`: the parts in memory. `None` if they do not belong together.
    pub(crate) fn restored(
        spool: &Arc<Spool>,
        parts: &[SavedPart],
        mut bytes: &[u8],
        file: Option<SavedSpool>,
    ) -> Option<Arc<Spooled>> {
        let (end, on_disk) = file.as_ref().map_or((0, 0), |file| (file.end, file.on_disk));
        if on_disk > end || !parts.iter().all(|part| part.is_in(end)) {
            return None;
        }
        let spooled = Spooled::new(spool, None);
        let mut inner = Inner {
            file: file.map(|saved| saved.file),
            end,
            on_disk,
            ..Inner::default()
        };
        for part in parts {
            match part {
                SavedPart::Memory { length } => {
                    let (taken, rest) = bytes.split_at_checked(*length)?;
                    bytes = rest;
                    for piece in taken.chunks(PART_BYTES) {
                        let place = Location::Memory(Arc::new(spooled.counted(piece)));
                        inner.add(place, 0, piece.len());
                    }
                }
                SavedPart::Disk { place, sent, length } => inner.add(Location::Disk(*place), *sent, *length),
                SavedPart::Sent { place } => inner.sent.push(*place),
            }
        }
        spool.totals.count_disk(on_disk);
        *spooled.inner.lock() = inner;
        Some(spooled)
    }

    fn counted(&self, bytes: &[u8]) -> Block {
        Block {
            bytes: bytes.to_vec(),
            _charge: self.count(bytes.len()),
        }
    }
}

impl Inner {
    fn add(&mut self, place: Location, sent: usize, length: usize) {
        self.pending += (length - sent) as u64;
        self.parts.push_back(Part {
            number: self.begun,
            place,
            length,
            sent,
        });
        self.begun += 1;
    }
}

fn save_bytes(part: &[u8], bytes: &mut Vec<u8>) -> SavedPart {
    bytes.extend_from_slice(part);
    SavedPart::Memory { length: part.len() }
}
