//! The format of a message between processes: one datagram with the channel and the message or, if they are long, one
//! datagram and the descriptor of a constant file in memory that contains them. So a reader never sees part of a
//! message, and a long message is written once for all readers.

use super::publication::{zeros, Publication};
use super::publication_id::PublicationId;
use fairlead_system::memory_file;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Two lengths, of the channel's name and of the message, and the id.
pub(super) const HEADER: usize = 3 * WORD;

const WORD: usize = 8;

/// Number of this format, and of the ids. Change it with the format, so that processes of two versions do not share
/// mailboxes.
pub(super) const FORMAT: u32 = 2;

/// Longest channel and message, together, that fit in the datagram.
pub(super) const INLINE_BYTES: usize = 32 * 1024;

/// Replaces the first length if the envelope announces the mailbox of another worker; the second length is then the
/// number of that worker.
const ANNOUNCEMENT: u64 = u64::MAX;

/// The datagram that only wakes a dispatcher. It is shorter than every envelope.
pub(super) const WAKE: [u8; 1] = [0];

/// The datagram that accompanies the descriptors of the mailbox of worker number `slot`.
pub(super) fn announcement(slot: usize) -> [u8; HEADER] {
    header([ANNOUNCEMENT, slot as u64, 0])
}

/// The worker of the mailbox that an envelope announces; `None` for another kind of envelope.
pub(super) fn announced(datagram: &[u8]) -> Option<usize> {
    let ([first, slot, _], _) = split_header(datagram)?;
    (first == ANNOUNCEMENT).then_some(slot as usize)
}

fn header(words: [u64; HEADER / WORD]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    for (word, number) in bytes.chunks_exact_mut(WORD).zip(words) {
        word.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn split_header(datagram: &[u8]) -> Option<([u64; HEADER / WORD], &[u8])> {
    let (header, content) = datagram.split_first_chunk::<HEADER>()?;
    let mut words = header.chunks_exact(WORD);
    let mut word = || Some(u64::from_le_bytes(words.next()?.try_into().ok()?));
    Some(([word()?, word()?, word()?], content))
}

/// A message to be sent to any number of processes.
pub(super) struct Envelope<'a> {
    header: [u8; HEADER],
    channel: &'a [u8],
    message: &'a [u8],
    /// The file with channel and message, if they do not fit in the datagram.
    file: Option<OwnedFd>,
}

impl<'a> Envelope<'a> {
    pub(super) fn new(id: PublicationId, channel: &'a [u8], message: &'a [u8]) -> Envelope<'a> {
        Envelope {
            header: header([channel.len() as u64, message.len() as u64, id.to_word()]),
            channel,
            message,
            file: None,
        }
    }

    /// Length of channel and message.
    pub(super) fn bytes(&self) -> usize {
        self.channel.len() + self.message.len()
    }

    /// Returns true if it fits in the datagram alone.
    pub(super) fn is_inline(&self) -> bool {
        self.file.is_none() && self.bytes() <= INLINE_BYTES
    }

    /// Moves channel and message to a file.
    pub(super) fn write_file(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        self.file = Some(memory_file::constant(
            "fairlead message",
            &[self.channel, self.message],
        )?);
        Ok(())
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// The parts of the datagram.
    pub(super) fn datagram(&self) -> [IoSlice<'_>; 3] {
        let (channel, message) = match self.file {
            Some(_) => (&[][..], &[][..]),
            None => (self.channel, self.message),
        };
        [&self.header, channel, message].map(IoSlice::new)
    }
}

/// Parses an envelope. `None` if it is incomplete: its descriptor could not be received.
pub(super) fn open(datagram: &[u8], file: Option<OwnedFd>) -> Option<Publication> {
    let ([channel_bytes, message_bytes, id], content) = split_header(datagram)?;
    let (channel_bytes, message_bytes) = (
        usize::try_from(channel_bytes).ok()?,
        usize::try_from(message_bytes).ok()?,
    );
    let (id, bytes) = (PublicationId::from_word(id)?, channel_bytes.checked_add(message_bytes)?);
    let Some(file) = file.map(File::from) else {
        let (channel, message) = content.split_at_checked(channel_bytes)?;
        return (content.len() == bytes).then(|| Publication::sent(channel, message, id));
    };
    if file.metadata().ok()?.len() != bytes as u64 {
        return None;
    }
    // All readers share one offset, so it is not used.
    let read = |offset: usize, length: usize| {
        let mut bytes = zeros(length);
        file.read_exact_at(Arc::get_mut(&mut bytes)?, offset as u64).ok()?;
        Some(bytes)
    };
    let (channel, message) = (read(0, channel_bytes)?, read(channel_bytes, message_bytes)?);
    Some(Publication::sent(channel, message, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn id() -> PublicationId {
        PublicationId::of(64, 1 << 40)
    }

    fn datagram(envelope: &Envelope<'_>) -> Vec<u8> {
        envelope.datagram().iter().flat_map(|part| part.to_vec()).collect()
    }

    fn file(envelope: &mut Envelope<'_>) -> OwnedFd {
        envelope.write_file().expect("a file in memory");
        envelope
            .file()
            .and_then(|file| file.try_clone_to_owned().ok())
            .expect("a copy")
    }

    #[test]
    fn a_short_envelope_arrives_in_the_datagram() {
        let envelope = Envelope::new(id(), b"news", b"hello");
        let publication = open(&datagram(&envelope), None).expect("whole");
        assert_eq!(
            (&*publication.channel, &*publication.message, publication.id()),
            (&b"news"[..], &b"hello"[..], Some(id()))
        );
    }

    #[test]
    fn a_long_envelope_arrives_in_a_sealed_file() {
        let message = vec![7; 3 * INLINE_BYTES];
        let mut envelope = Envelope::new(id(), b"news", &message);
        assert!(!envelope.is_inline());
        let file = file(&mut envelope);
        assert_eq!(datagram(&envelope), envelope.header);
        let mut same = File::from(file.try_clone().expect("a copy"));
        assert!(same.write_all(b"x").is_err() && same.set_len(0).is_err());
        for file in [file.try_clone().expect("a copy"), file] {
            let publication = open(&envelope.header, Some(file)).expect("whole");
            assert_eq!(
                (&*publication.channel, &*publication.message, publication.id()),
                (&b"news"[..], &message[..], Some(id()))
            );
        }
    }

    #[test]
    fn an_incomplete_envelope_is_not_opened() {
        let envelope = Envelope::new(id(), b"news", b"hello");
        let whole = datagram(&envelope);
        for length in 0..whole.len() {
            assert!(open(&whole[..length], None).is_none(), "{length} bytes");
        }
        let mut longer = Envelope::new(id(), b"news", b"hello again");
        assert!(open(&envelope.header, Some(file(&mut longer))).is_none());
        assert!(open(&[0xff; HEADER], None).is_none());
    }
}
