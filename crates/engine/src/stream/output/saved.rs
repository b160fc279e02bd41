//! The output of a response that another process continues. The speed of the client is not part of it: the other process
//! measures it again.

use super::{Output, Segment};
use crate::limits::descriptors::Counted;
use crate::spool::{SavedPart, SavedSpool, Spool, Spooled};
use std::fs::File;
use std::sync::Arc;

/// The unsent bytes of a response.
#[derive(Debug, Default)]
pub(crate) struct SavedOutput {
    pub(crate) pieces: Vec<SavedPiece>,
    /// The bytes of all pieces that are in memory, in order.
    pub(crate) bytes: Vec<u8>,
    /// The file of all pieces that are in a file.
    pub(crate) file: Option<Arc<Counted<File>>>,
}

/// Some of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SavedPiece {
    /// The next bytes in memory.
    Memory { length: usize },
    /// A part of a served file.
    File { device: u64, offset: u64, end: u64 },
    /// Parts that were spooled, in order, and the sizes of the temporary file ([`SavedSpool`]).
    Spooled {
        parts: Vec<SavedPart>,
        end: u64,
        on_disk: u64,
    },
}

impl Output {
    /// Most bytes in memory with which a response moves to another process. What is spooled goes to the disk first.
    const MOST_IN_MEMORY: u64 = 1024 * 1024;

    /// True if another process can continue now.
    pub(crate) fn can_be_saved(&self) -> bool {
        let spooled = self.segments.iter().filter_map(|segment| match segment {
            Segment::Spooled(spooled) => Some(spooled),
            _ => None,
        });
        self.in_memory() <= Output::MOST_IN_MEMORY && { spooled }.all(|spooled| spooled.can_be_saved())
    }

    /// Unsent bytes in memory.
    pub(crate) fn in_memory(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Spooled(spooled) => spooled.in_memory(),
            Segment::File { .. } => 0,
            Segment::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
        });
        (self.buffer.len() - self.sent) as u64 + segments.sum::<u64>()
    }

    /// Copies the unsent bytes, and leaves them here, too. `None` if another process cannot continue: only one file can
    /// go along.
    pub(crate) fn save(&self) -> Option<SavedOutput> {
        let mut saved = SavedOutput::default();
        saved.add_bytes(&self.buffer[self.sent..]);
        for segment in &self.segments {
            match segment {
                Segment::Bytes { bytes, sent } => saved.add_bytes(&bytes[*sent..]),
                Segment::File {
                    file,
                    device,
                    offset,
                    end,
                } => {
                    saved.add_file(file)?;
                    saved.pieces.push(SavedPiece::File {
                        device: *device,
                        offset: *offset,
                        end: *end,
                    });
                }
                Segment::Spooled(spooled) => {
                    let (parts, file) = spooled.save(&mut saved.bytes)?;
                    let (end, on_disk) = file.as_ref().map_or((0, 0), |file| (file.end, file.on_disk));
                    if let Some(spool) = file {
                        saved.add_file(&spool.file)?;
                    }
                    saved.pieces.push(SavedPiece::Spooled { parts, end, on_disk });
                }
            }
        }
        Some(saved)
    }

    /// The output with these bytes. `None` if they do not belong together.
    pub(crate) fn restored(saved: SavedOutput, spool: &Arc<Spool>) -> Option<Output> {
        let SavedOutput { pieces, bytes, file } = saved;
        let mut output = Output::default();
        let mut rest = &bytes[..];
        for piece in pieces {
            let segment = match piece {
                SavedPiece::Memory { length } => {
                    let bytes = take(&mut rest, length)?;
                    if output.is_empty() {
                        output.buffer = bytes.to_vec();
                        continue;
                    }
                    Segment::Bytes {
                        bytes: bytes.to_vec(),
                        sent: 0,
                    }
                }
                SavedPiece::File { offset, end, .. } if offset >= end => return None,
                SavedPiece::File { device, offset, end } => Segment::File {
                    file: file.clone()?,
                    device,
                    offset,
                    end,
                },
                SavedPiece::Spooled { parts, end, on_disk } => {
                    let in_memory = parts.iter().map(SavedPart::in_memory);
                    let bytes = take(&mut rest, in_memory.fold(0, usize::saturating_add))?;
                    let file = file.clone().filter(|_| end > 0);
                    let file = file.map(|file| SavedSpool { file, end, on_disk });
                    Segment::Spooled(Spooled::restored(spool, &parts, bytes, file)?)
                }
            };
            output.segments.push_back(segment);
        }
        rest.is_empty().then_some(output)
    }
}

impl SavedOutput {
    fn add_bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
            self.pieces.push(SavedPiece::Memory { length: bytes.len() });
        }
    }

    /// Notes the file of the next piece. `None` if earlier pieces are in another one.
    fn add_file(&mut self, file: &Arc<Counted<File>>) -> Option<()> {
        let first = self.file.get_or_insert_with(|| Arc::clone(file));
        Arc::ptr_eq(first, file).then_some(())
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, others) = rest.split_at_checked(length)?;
    *rest = others;
    Some(taken)
}
