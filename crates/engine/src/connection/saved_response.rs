//! A response that is being sent, and that another process continues: its unsent bytes, and the step after it.
//!
//! The numbers come first, then the text about a slow request, then the bytes in memory. Both processes have the same
//! format, because the number of the format of the queue between them is the same.

use super::outgoing::Outgoing;
use super::slow_request::SlowRequest;
use super::{Connection, ConnectionState, Then};
use crate::clock::Nanos;
use crate::cluster::queues::{peer, peer_numbers, OutgoingResponse};
use crate::limits::descriptors::Counted;
use crate::spool::{SavedPart, Spool};
use crate::stream::output::{Output, SavedOutput, SavedPiece};
use crate::worker::Worker;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A file that is sent, for the process that continues.
pub(crate) type SentFile = Arc<Counted<File>>;

/// Numbers that identify a file among all files that come from other processes.
pub(crate) type FileId = [u64; 2];

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct SavedResponse {
    bytes: Vec<u8>,
    file: Option<SentFile>,
}

impl SavedResponse {
    pub(crate) fn outgoing(&self) -> OutgoingResponse<'_> {
        OutgoingResponse {
            bytes: &self.bytes,
            file: self.file.as_ref().map(|file| file.as_fd()),
        }
    }

    /// The identity of the file, from the bytes.
    pub(crate) fn file_id(bytes: &[u8]) -> Option<FileId> {
        let mut numbers = Numbers(bytes);
        numbers.take()
    }
}

impl Connection {
    /// True if it sends a response that another process can continue, now or soon.
    pub(crate) fn can_leave_rest(&self) -> bool {
        let is_movable = |outgoing: &Outgoing| outgoing.then() != Then::TakeOver && !outgoing.is_late();
        matches!(&self.state, ConnectionState::Flush(outgoing) if is_movable(outgoing))
            && self.stream.transport().can_export()
    }

    /// Unsent bytes of its response that are in memory.
    pub(crate) fn rest_in_memory(&self) -> u64 {
        match self.is_flushing() {
            true => self.stream.output.in_memory(),
            false => 0,
        }
    }

    /// The rest of its response, which stays here, too. `None` if there is none, or it cannot move now. `identify` gives
    /// the file an identity.
    pub(crate) fn save_response(&self, identify: impl FnOnce(&SentFile) -> FileId) -> Option<SavedResponse> {
        let ConnectionState::Flush(outgoing) = &self.state else {
            return None;
        };
        let saved = self.stream.output.save()?;
        let mut bytes = Vec::new();
        put(&mut bytes, &saved.file.as_ref().map_or([0; 2], identify));
        put(&mut bytes, &peer_numbers(self.stream.peers.last()));
        let slow_request = self.slow_request.as_deref();
        let about = slow_request.map_or("", SlowRequest::about);
        put(&mut bytes, &slow_request.map_or([0; 6], SlowRequest::numbers));
        put(&mut bytes, &[number(outgoing.then()), about.len() as u64]);
        put_pieces(&mut bytes, &saved.pieces);
        bytes.extend_from_slice(about.as_bytes());
        bytes.extend_from_slice(&saved.bytes);
        Some(SavedResponse {
            bytes,
            file: saved.file,
        })
    }

    /// Continues the response of another process. `paid`: the time up to which the client has kept its minimum rate;
    /// `next`: the step after a response that does not end its connection. Returns false if the bytes are not valid.
    pub(crate) fn continue_response(
        &mut self,
        (bytes, file): (&[u8], Option<SentFile>),
        paid: Nanos,
        next: Then,
        (worker, spool): (&Arc<Worker>, &Arc<Spool>),
    ) -> bool {
        let Some(rest) = Rest::read(bytes, file) else {
            return false;
        };
        let Some(output) = Output::restored(rest.output, spool) else {
            return false;
        };
        self.stream.output = output;
        self.stream.peers.note_last(peer(rest.client));
        if let Some((about, numbers)) = rest.slow_request {
            self.log_when_sent(SlowRequest::of_numbers(worker, about, numbers));
        }
        self.state = ConnectionState::Flush(Outgoing::continued(rest.then.unwrap_or(next), paid));
        // Not valid only if another process has accepted it by other rules. Then it names nobody.
        let _ = self.read_proxy_header(&worker.config);
        true
    }

    /// Another process sends the rest of the response: it logs the request if it was slow.
    pub(crate) fn leave_slow_request(&mut self) {
        if let Some(slow_request) = self.slow_request.take() {
            slow_request.leave();
        }
    }

    /// Ends the connection with the response that it sends.
    pub(crate) fn end_with_response(&mut self) {
        if let ConnectionState::Flush(outgoing) = &mut self.state {
            outgoing.end_connection();
        }
    }
}

/// The parts of a saved response.
struct Rest {
    client: [u64; 3],
    slow_request: Option<(String, [u64; 6])>,
    /// `None`: another request may follow.
    then: Option<Then>,
    output: SavedOutput,
}

impl Rest {
    fn read(bytes: &[u8], file: Option<SentFile>) -> Option<Rest> {
        let mut numbers = Numbers(bytes);
        let _: FileId = numbers.take()?;
        let (client, times) = (numbers.take()?, numbers.take()?);
        let [then, about_length] = numbers.take()?;
        let pieces = numbers.pieces()?;
        let (about, bytes) = numbers.0.split_at_checked(usize::try_from(about_length).ok()?)?;
        let about = String::from_utf8_lossy(about).into_owned();
        Some(Rest {
            client,
            slow_request: (!about.is_empty()).then_some((about, times)),
            then: match then {
                CLOSE => Some(Then::Close),
                LINGER => Some(Then::Linger),
                _ => None,
            },
            output: SavedOutput {
                pieces,
                bytes: bytes.to_vec(),
                file,
            },
        })
    }
}

const CLOSE: u64 = 1;
const LINGER: u64 = 2;

fn number(then: Then) -> u64 {
    match then {
        Then::NextRequest | Then::Migrate | Then::TakeOver => 0,
        Then::Close => CLOSE,
        Then::Linger => LINGER,
    }
}

/// Kinds of pieces, and of spooled parts.
const MEMORY: u64 = 0;
const FILE: u64 = 1;
const SPOOLED: u64 = 2;
const SENT: u64 = 3;

fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

fn put_pieces(bytes: &mut Vec<u8>, pieces: &[SavedPiece]) {
    put(bytes, &[pieces.len() as u64]);
    for piece in pieces {
        match piece {
            SavedPiece::Memory { length } => put(bytes, &[MEMORY, *length as u64, 0, 0]),
            SavedPiece::File { device, offset, end } => put(bytes, &[FILE, *device, *offset, *end]),
            SavedPiece::Spooled { parts, end, on_disk } => {
                put(bytes, &[SPOOLED, parts.len() as u64, *end, *on_disk]);
                parts.iter().for_each(|part| put(bytes, &part_numbers(part)));
            }
        }
    }
}

fn part_numbers(part: &SavedPart) -> [u64; 4] {
    match part {
        SavedPart::Memory { length } => [MEMORY, *length as u64, 0, 0],
        SavedPart::Disk { place, sent, length } => [FILE, *place, *sent as u64, *length as u64],
        SavedPart::Sent { place } => [SENT, *place, 0, 0],
    }
}

/// Reads numbers.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const COUNT: usize>(&mut self) -> Option<[u64; COUNT]> {
        let mut numbers = [0; COUNT];
        for number in &mut numbers {
            let (bytes, rest) = self.0.split_first_chunk()?;
            (*number, self.0) = (u64::from_le_bytes(*bytes), rest);
        }
        Some(numbers)
    }

    fn pieces(&mut self) -> Option<Vec<SavedPiece>> {
        let [count] = self.take()?;
        (0..count).map(|_| self.piece()).collect()
    }

    fn piece(&mut self) -> Option<SavedPiece> {
        Some(match self.take::<4>()? {
            [MEMORY, length, ..] => SavedPiece::Memory {
                length: usize::try_from(length).ok()?,
            },
            [FILE, device, offset, end] => SavedPiece::File { device, offset, end },
            [SPOOLED, count, end, on_disk] => SavedPiece::Spooled {
                parts: (0..count).map(|_| self.part()).collect::<Option<_>>()?,
                end,
                on_disk,
            },
            _ => return None,
        })
    }

    fn part(&mut self) -> Option<SavedPart> {
        let length = |number| usize::try_from(number).ok();
        Some(match self.take::<4>()? {
            [MEMORY, bytes, ..] => SavedPart::Memory { length: length(bytes)? },
            [FILE, place, sent, end] => SavedPart::Disk {
                place,
                sent: length(sent)?,
                length: length(end)?,
            },
            [SENT, place, ..] => SavedPart::Sent { place },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
