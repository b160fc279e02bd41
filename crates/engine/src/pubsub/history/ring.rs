//! The ring of entries. Places grow for ever; a place modulo the size of the ring is an index.
//!
//! A writer moves the head over the entries that it is about to overwrite, before it overwrites them. A reader looks at the
//! head after it has copied, and knows if the copy is good.

use super::layout::{Header, Layout};
use super::Position;
use crate::pubsub::publication::{zeros, Publication};
use std::sync::atomic::{fence, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::Arc;

/// Words in front of the name and the message.
const HEAD: u64 = 8;

/// The length of the message, in an entry that has none because it is too long.
const TOO_LONG: u32 = u32::MAX;

pub(super) struct Ring<'a> {
    words: &'a [AtomicU64],
    header: Header<'a>,
}

/// The words in front of the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Length of all of it, in words.
    words: u64,
    channel_bytes: u32,
    message_bytes: u32,
    pub(super) offset: u64,
    /// Milliseconds on the monotonic clock, and since the Unix epoch.
    pub(super) time: u64,
    pub(super) wall: u64,
    pub(super) hash: u64,
    /// Place of the previous entry of the same channel, and its offset. Without a place, the offset that such an entry may have
    /// at most.
    pub(super) previous: (Option<u64>, u64),
}

/// A new entry.
pub(super) struct Draft<'a> {
    pub(super) offset: u64,
    pub(super) hash: u64,
    pub(super) previous: (Option<u64>, u64),
    pub(super) time: u64,
    pub(super) wall: u64,
    pub(super) channel: &'a [u8],
    /// `None` if it is too long.
    pub(super) message: Option<&'a [u8]>,
}

/// The result of reading the next entry.
#[derive(Debug)]
pub(in crate::pubsub) enum Next {
    Message(Arc<Publication>),
    /// Nobody wants it.
    Unwanted,
    /// Somebody wants it, and it is too long to be here. Its publisher has sent it in another way, unless the history is joint.
    TooLong,
    /// Entries were overwritten before the reader got to them. Its place is now the oldest entry.
    Overrun,
    /// There are no more entries.
    Nothing,
}

fn words(bytes: usize) -> u64 {
    bytes.div_ceil(8) as u64
}

/// The length of an entry, in words.
pub(super) fn words_of(channel: &[u8], message: &[u8]) -> u64 {
    HEAD + words(channel.len()) + words(message.len())
}

impl<'a> Ring<'a> {
    pub(super) fn new(layout: &'a Layout) -> Ring<'a> {
        Ring {
            words: layout.ring(),
            header: layout.header(),
        }
    }

    /// Its size, in words.
    pub(super) fn words(&self) -> u64 {
        self.words.len() as u64
    }

    fn word(&self, place: u64) -> &AtomicU64 {
        &self.words[(place % self.words()) as usize]
    }

    /// Writes an entry behind the newest one, and returns its place. `None` if it would overwrite an entry at or after
    /// `unread`. Under the lock.
    pub(super) fn write(&self, draft: &Draft<'_>, unread: u64) -> Option<u64> {
        let message = draft.message.unwrap_or_default();
        let length = words_of(draft.channel, message);
        let place = self.header.tail.load(Relaxed);
        self.make_room(place + length, unread)?;
        let message_bytes = draft.message.map_or(TOO_LONG, |message| message.len() as u32);
        let lengths = (draft.channel.len() as u64) << 32 | u64::from(message_bytes);
        let (previous, previous_offset) = draft.previous;
        let head = [
            length,
            lengths,
            draft.offset,
            draft.time,
            draft.wall,
            draft.hash,
            previous.map_or(0, |place| place + 1),
            previous_offset,
        ];
        for (index, word) in (place..).zip(head) {
            self.word(index).store(word, Relaxed);
        }
        let channel = place + HEAD;
        self.store_bytes(channel, draft.channel);
        self.store_bytes(channel + words(draft.channel.len()), message);
        self.header.tail.store(place + length, Release);
        Some(place)
    }

    /// Moves the head until an entry may end at `end`.
    fn make_room(&self, end: u64, unread: u64) -> Option<()> {
        let before = self.header.head.load(Relaxed);
        let mut head = before;
        let tail = self.header.tail.load(Relaxed);
        if end - tail > self.words() {
            return None;
        }
        while end - head > self.words() {
            if head >= unread {
                return None;
            }
            head = (head + self.word(head).load(Relaxed).max(HEAD)).min(tail);
        }
        if head > before {
            self.header.head.store(head, Relaxed);
            fence(Release);
        }
        Some(())
    }

    fn store_bytes(&self, place: u64, bytes: &[u8]) {
        for (index, chunk) in (place..).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(index).store(u64::from_ne_bytes(word), Relaxed);
        }
    }

    fn load_bytes(&self, place: u64, length: usize) -> Arc<[u8]> {
        let mut bytes = zeros(length);
        let chunks = Arc::get_mut(&mut bytes).unwrap_or_default().chunks_mut(8);
        for (index, chunk) in (place..).zip(chunks) {
            let word = self.word(index).load(Relaxed).to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        bytes
    }

    /// Returns true if nothing at or after `place` was overwritten before this call.
    fn is_intact(&self, place: u64) -> bool {
        fence(Acquire);
        self.header.head.load(Relaxed) <= place
    }

    /// The entry at `place`, or `None` if it was overwritten.
    pub(super) fn entry(&self, place: u64) -> Option<Entry> {
        let word = |index: u64| self.word(place + index).load(Relaxed);
        let (length, lengths, previous) = (word(0), word(1), word(6));
        let (channel_bytes, message_bytes) = ((lengths >> 32) as u32, lengths as u32);
        let entry = Entry {
            words: length,
            channel_bytes,
            message_bytes,
            offset: word(2),
            time: word(3),
            wall: word(4),
            hash: word(5),
            previous: (previous.checked_sub(1), word(7)),
        };
        let content = words(channel_bytes as usize) + words(entry.message_bytes().unwrap_or(0));
        (self.is_intact(place) && length == HEAD + content && length <= self.words()).then_some(entry)
    }

    fn channel(&self, place: u64, entry: &Entry) -> Arc<[u8]> {
        self.load_bytes(place + HEAD, entry.channel_bytes as usize)
    }

    fn content(&self, place: u64, entry: &Entry) -> Option<Arc<[u8]>> {
        let first = place + HEAD + words(entry.channel_bytes as usize);
        entry.message_bytes().map(|bytes| self.load_bytes(first, bytes))
    }

    /// The oldest entry.
    pub(super) fn oldest(&self) -> Option<Entry> {
        self.entry(self.header.head.load(Acquire))
    }

    /// The entry at `place`, unless it was overwritten or is of another channel.
    pub(super) fn entry_of(&self, place: u64, channel: &[u8]) -> Option<Entry> {
        let entry = self.entry(place)?;
        let is_of_channel = *self.channel(place, &entry) == *channel;
        (is_of_channel && self.is_intact(place)).then_some(entry)
    }

    /// The message of an entry, unless it was overwritten or is too long.
    pub(super) fn message(&self, place: u64, entry: &Entry) -> Option<Arc<[u8]>> {
        let content = self.content(place, entry);
        content.filter(|_| self.is_intact(place))
    }

    /// See [`History::next`](super::History::next).
    pub(super) fn next(&self, place: &mut u64, is_wanted: impl FnOnce(&[u8]) -> bool, epoch: u64) -> Next {
        if self.header.tail.load(Acquire) == *place {
            return Next::Nothing;
        }
        let overrun = |place: &mut u64| {
            let head = self.header.head.load(Acquire);
            // An entry at the head that makes no sense must not stop the reader.
            *place = if head > *place {
                head
            } else {
                self.header.tail.load(Acquire)
            };
            Next::Overrun
        };
        let Some(entry) = self.entry(*place) else {
            return overrun(place);
        };
        let channel = self.channel(*place, &entry);
        if !self.is_intact(*place) {
            return overrun(place);
        }
        let is_wanted = is_wanted(&channel);
        let content = is_wanted.then(|| self.content(*place, &entry)).flatten();
        if !self.is_intact(*place) {
            return overrun(place);
        }
        let begin = *place;
        *place += entry.words;
        let Some(message) = content else {
            return if is_wanted { Next::TooLong } else { Next::Unwanted };
        };
        let offset = entry.offset;
        let position = Position { epoch, offset };
        let publication = Publication::kept(channel, message, position, begin);
        Next::Message(Arc::new(publication))
    }
}

impl Entry {
    /// `None` if the message is too long.
    pub(super) fn message_bytes(&self) -> Option<usize> {
        (self.message_bytes != TOO_LONG).then_some(self.message_bytes as usize)
    }
}
