//! Finds the newest entry of a channel by a keyed hash of its name. A bucket that is full gives up the channel with the
//! oldest message.

use super::layout::{Header, Layout, SLOT};
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{fence, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

pub(super) struct Table<'a> {
    layout: &'a Layout,
    header: Header<'a>,
}

/// The newest entry of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// Its place and its offset.
    At(u64, u64),
    /// The table has none.
    Unknown,
    /// A process is storing a newer entry, or another channel, or it has died meanwhile.
    Changing,
}

/// The words of one channel: the hash of its name, or 0; the place of its newest entry, plus one, or 0 while the other words
/// change; the offset of that entry, and its time since the Unix epoch.
struct Slot<'a> {
    hash: &'a AtomicU64,
    place: &'a AtomicU64,
    offset: &'a AtomicU64,
    wall: &'a AtomicU64,
}

impl<'a> Table<'a> {
    pub(super) fn new(layout: &'a Layout) -> Table<'a> {
        Table {
            layout,
            header: layout.header(),
        }
    }

    /// The hash of a name; never 0.
    pub(super) fn hash(&self, channel: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.header
            .keys
            .iter()
            .for_each(|key| hasher.write_u64(key.load(Relaxed)));
        hasher.write(channel);
        hasher.finish().max(1)
    }

    fn slots(&self, hash: u64) -> impl Iterator<Item = Slot<'a>> {
        let bucket: &'a [AtomicU64] = self.layout.bucket(hash);
        bucket.chunks_exact(SLOT).map(|words| Slot {
            hash: &words[0],
            place: &words[1],
            offset: &words[2],
            wall: &words[3],
        })
    }

    /// The newest entry of the channel with this hash. Another channel may have the same hash; the name in the entry tells.
    pub(super) fn newest(&self, hash: u64) -> Newest {
        let found = self.slots(hash).find_map(|slot| slot.read(hash));
        found.unwrap_or(Newest::Unknown)
    }

    /// The highest offset of the channels that were given up.
    pub(super) fn forgotten(&self) -> u64 {
        self.header.forgotten.load(Acquire)
    }

    /// The latest time of their newest entries.
    pub(super) fn forgotten_wall(&self) -> u64 {
        self.header.forgotten_wall.load(Acquire)
    }

    /// Stores the newest entry of a channel. Under the lock.
    pub(super) fn put(&self, hash: u64, place: u64, offset: u64, wall: u64) {
        if let Some(slot) = self.slots(hash).find(|slot| slot.hash.load(Relaxed) == hash) {
            return slot.store(hash, place, offset, wall);
        }
        // An empty slot has offset 0.
        let Some(oldest) = self.slots(hash).min_by_key(|slot| slot.offset.load(Relaxed)) else {
            return;
        };
        let former = oldest.offset.load(Relaxed);
        let former_wall = oldest.wall.load(Relaxed);
        self.header.forgotten_wall.fetch_max(former_wall, Release);
        self.header.forgotten.fetch_max(former, Release);
        oldest.store(hash, place, offset, wall);
    }
}

impl Slot<'_> {
    /// `None` if it is of another channel.
    fn read(&self, hash: u64) -> Option<Newest> {
        loop {
            let place = self.place.load(Acquire);
            let (found, offset) = (self.hash.load(Relaxed), self.offset.load(Relaxed));
            fence(Acquire);
            if found != hash {
                return None;
            }
            if place == self.place.load(Relaxed) {
                let place = place.checked_sub(1);
                return Some(place.map_or(Newest::Changing, |place| Newest::At(place, offset)));
            }
        }
    }

    fn store(&self, hash: u64, place: u64, offset: u64, wall: u64) {
        // A reader of the 0 also sees what `put` has noted as forgotten.
        self.place.store(0, Release);
        fence(Release);
        self.hash.store(hash, Relaxed);
        self.offset.store(offset, Relaxed);
        self.wall.store(wall, Relaxed);
        self.place.store(place + 1, Release);
    }
}
