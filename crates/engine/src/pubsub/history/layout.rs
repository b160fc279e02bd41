//! The parts of the memory: a header, the table of channels and the ring of entries. All of it consists of atomic words.

use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first word of memory that a process has prepared. The format is in it: a process of another release, which gets the
/// memory by its descriptor, must not use another format.
const PREPARED: u64 = 0x6661_6972_6c65_0000 | super::History::FORMAT as u64;

/// Words of the header.
const HEADER: usize = 24;

/// Words of one entry of the table, and entries of one bucket.
pub(super) const SLOT: usize = 4;
pub(super) const BUCKET: usize = 8;

/// Words of a page, and pages of one bucket.
pub(super) const PAGE: usize = 4;
pub(super) const PAGES: usize = 8;

/// Words of the memory for each word of the pages.
const PAGES_PART: usize = 16;

/// Words of the memory for each word of the table.
const TABLE_PART: usize = 9;

/// The smallest ring, in words.
const SMALLEST_RING: usize = 1024;

#[derive(Debug)]
pub(super) struct Layout {
    words: &'static [AtomicU64],
    buckets: usize,
    /// Buckets of pages.
    page_buckets: usize,
}

/// The words of the header.
pub(super) struct Header<'a> {
    /// The number of the server.
    pub(super) epoch: &'a AtomicU64,
    /// Keys of the hash function.
    pub(super) keys: [&'a AtomicU64; 2],
    /// The place behind the newest entry, the place of the oldest one, and the place behind the newest entry with all
    /// steps finished: numbers of words since the first entry ever.
    pub(super) tail: &'a AtomicU64,
    pub(super) head: &'a AtomicU64,
    pub(super) finished: &'a AtomicU64,
    /// The offset of the newest entry.
    pub(super) offset: &'a AtomicU64,
    /// The highest offset of a channel that the table has given up.
    pub(super) forgotten: &'a AtomicU64,
    /// The latest time of such a channel's newest entry, in milliseconds since the Unix epoch.
    pub(super) forgotten_wall: &'a AtomicU64,
    /// The key that seals positions.
    pub(super) seal: [&'a AtomicU64; 4],
    /// 1 while processes of two releases use the history.
    pub(super) joint: &'a AtomicU64,
    /// Number of publications that only one of two releases has got.
    pub(super) divided: &'a AtomicU64,
    /// The process that leads, or led, for both releases; 0 for none.
    pub(super) leader: &'a AtomicU64,
}

pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no randomness"))?;
    Ok(u64::from_ne_bytes(bytes))
}

impl Layout {
    pub(super) fn create(words: &'static [AtomicU64]) -> io::Result<Layout> {
        let layout = Layout::of(words)?;
        let [epoch, keys @ ..] = [random()?, random()?, random()?];
        let header = layout.header();
        // Short enough for a JavaScript number.
        header.epoch.store(epoch >> 16 | 1, Relaxed);
        for (key, number) in header.keys.iter().zip(keys) {
            key.store(number, Relaxed);
        }
        for key in header.seal {
            key.store(random()?, Relaxed);
        }
        words[0].store(PREPARED, Relaxed);
        Ok(layout)
    }

    pub(super) fn adopt(words: &'static [AtomicU64]) -> io::Result<Layout> {
        let layout = Layout::of(words)?;
        if words[0].load(Relaxed) != PREPARED {
            return Err(io::Error::other("the history is not prepared"));
        }
        Ok(layout)
    }

    fn of(words: &'static [AtomicU64]) -> io::Result<Layout> {
        let buckets = (words.len() / TABLE_PART / (SLOT * BUCKET)).max(1);
        let page_buckets = (words.len() / PAGES_PART / (PAGE * PAGES)).max(1);
        let tables = HEADER + buckets * SLOT * BUCKET + page_buckets * PAGE * PAGES;
        if words.len() < tables + SMALLEST_RING {
            return Err(io::Error::other("the memory of the history is too small"));
        }
        Ok(Layout {
            words,
            buckets,
            page_buckets,
        })
    }

    pub(super) fn header(&self) -> Header<'_> {
        let word = |index: usize| &self.words[index];
        Header {
            epoch: word(1),
            keys: [word(2), word(3)],
            tail: word(4),
            head: word(5),
            finished: word(6),
            offset: word(7),
            forgotten: word(8),
            seal: [word(9), word(10), word(11), word(12)],
            forgotten_wall: word(13),
            joint: word(14),
            divided: word(15),
            leader: word(16),
        }
    }

    /// See [`Hub::progress`](crate::pubsub::Hub::progress).
    pub(super) fn progress(&self) -> &[AtomicU64; 3] {
        self.words[17..].first_chunk().expect("the header")
    }

    /// Bucket number `index` modulo the number of buckets.
    pub(super) fn bucket(&self, index: u64) -> &[AtomicU64] {
        let first = HEADER + (index % self.buckets as u64) as usize * SLOT * BUCKET;
        &self.words[first..first + SLOT * BUCKET]
    }

    /// Bucket of pages number `index` modulo their number.
    pub(super) fn page_bucket(&self, index: u64) -> &[AtomicU64] {
        let index = (index % self.page_buckets as u64) as usize;
        let first = HEADER + self.buckets * SLOT * BUCKET + index * PAGE * PAGES;
        &self.words[first..first + PAGE * PAGES]
    }

    pub(super) fn ring(&self) -> &[AtomicU64] {
        let tables = self.buckets * SLOT * BUCKET + self.page_buckets * PAGE * PAGES;
        &self.words[HEADER + tables..]
    }
}
