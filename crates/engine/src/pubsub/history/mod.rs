//! The history: recent messages of all channels, in memory that the processes of a server share. It outlives each of
//! them.
//!
//! ```text
//!    header                table                                  ring
//!  ┌────────┬──────────────────────────────┬──────────────────────────────────────────────┐
//!  │ tail … │ channel -> its newest entry  │ … entry │ entry │ entry │ (free) │ entry │ … │
//!  └────────┴──────────────────────────────┴──────────────────────────────────────────────┘
//!                                                  previous entry of the same channel: ◀──┘
//! ```
//!
//! * [`History`] appends, under the lock of `lock.rs`, and reads without a lock. `layout.rs` divides the memory, `ring.rs`
//!   reads and writes entries, `table.rs` finds the newest entry of a channel. [`Position`] (`position.rs`) is a place in
//!   the order of all messages.
//! * `seal.rs` and `pages.rs`: positions in pages, which clients present when they connect.
//! * The dispatcher of each worker reads the ring from end to end, so all workers deliver in the same order. A new entry
//!   overwrites the oldest ones.
//! * A process may die at any step. The store of the tail makes an entry visible; the next process that locks repeats the
//!   steps after it, which may have been missed.

mod layout;
mod lock;
mod pages;
mod position;
mod ring;
mod seal;
mod table;
#[cfg(test)]
mod tests;

pub use self::position::Position;
pub(super) use self::ring::Next;
pub(crate) use self::seal::from_hex;
pub use self::seal::PagePosition;

use self::layout::Layout;
use self::lock::Lock;
use self::pages::Pages;
use self::ring::{Draft, Entry, Ring};
use self::table::{Newest, Table};
use crate::clock::{Millis, Nanos};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst,
};
use std::sync::Arc;
use std::time::Duration;

/// The largest part of the ring that one message takes.
const LARGEST_PART: u64 = 8;

/// See the head of this file.
#[derive(Debug)]
pub struct History {
    layout: Layout,
    lock: Lock,
    /// True if a process has had the lock for too long: it was stopped, perhaps. Then nobody waits for the lock.
    pub(super) is_blocked: AtomicBool,
}

/// The messages that a channel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The number of messages of one channel.
    pub messages: usize,
    /// The time for which a message is kept.
    pub time: Duration,
}

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number in the order of all messages of the server.
    pub offset: u64,
    /// The time of its publication, since the Unix epoch.
    pub time: Duration,
    /// The message.
    pub message: Arc<[u8]>,
}

/// The messages of a channel after a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// All of them, the oldest first.
    All(Vec<Past>),
    /// Some are not kept any more, or the position is of another server.
    Lost,
}

/// The part of an entry in the result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Its message.
    Copy,
    /// Nothing: older entries follow.
    Pass,
    /// The result is complete without it.
    End,
}

/// The entries of a channel, from the newest one to older ones.
struct Walked {
    /// The wanted messages, the oldest first.
    past: Vec<Past>,
    /// The offset of the oldest entry that was copied or passed.
    oldest: Option<u64>,
    /// The entry behind it, which has this offset at most; 0: there is none.
    next: (Option<u64>, u64),
    /// True if that entry is the wanted end.
    is_ended: bool,
}

/// The reason why a message was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAppended {
    /// Another thread or process holds the lock.
    Busy,
    /// A reader has not read the entries that the message would overwrite.
    Full,
}

impl History {
    /// The version of the layout: processes may share a history if it is equal.
    pub const FORMAT: u32 = 3;

    /// Prepares memory that is full of zeros, and that other processes map, too. `file`: what they map; `None` if no other
    /// process does.
    ///
    /// # Errors
    /// If the memory is too small, or there is no randomness.
    pub fn create(words: &'static [AtomicU64], file: Option<OwnedFd>) -> io::Result<History> {
        let layout = Layout::create(words)?;
        Ok(History::of(layout, file))
    }

    /// Uses memory that another process has prepared.
    ///
    /// # Errors
    /// If no process has.
    pub fn adopt(words: &'static [AtomicU64], file: OwnedFd) -> io::Result<History> {
        let layout = Layout::adopt(words)?;
        Ok(History::of(layout, Some(file)))
    }

    fn of(layout: Layout, file: Option<OwnedFd>) -> History {
        History {
            layout,
            lock: Lock::new(file),
            is_blocked: AtomicBool::new(false),
        }
    }

    /// Appends a message, unless it would overwrite an entry at or after `unread`, the place of the slowest reader. A
    /// message that is too long is not kept: an entry without it says so to everyone who asks for the channel's messages. If
    /// the name of the channel is too long, there is no entry.
    /// Returns the offset, and false if the message is too long.
    ///
    /// # Errors
    /// See [`NotAppended`]. Try again a little later.
    pub(super) fn append(&self, channel: &[u8], message: &[u8], unread: u64) -> Result<(u64, bool), NotAppended> {
        if ring::words_of(channel, &[]) > self.ring().words() / LARGEST_PART {
            return Ok((self.position().offset, false));
        }
        let _lock = self.lock.try_lock().ok_or(NotAppended::Busy)?;
        if self.is_blocked.load(Relaxed) {
            self.is_blocked.store(false, Relaxed);
        }
        let (ring, table, header) = (self.ring(), self.table(), self.layout.header());
        self.repair();
        let hash = table.hash(channel);
        let previous = match table.newest(hash) {
            Newest::At(place, offset) => (Some(place), offset),
            Newest::Unknown | Newest::Changing => (None, table.forgotten()),
        };
        let offset = header.offset.load(Relaxed) + 1;
        let draft = Draft {
            offset,
            hash,
            previous,
            time: Millis::now().to_number(),
            wall: Nanos::now().since_epoch().as_millis() as u64,
            channel,
            message: (ring::words_of(channel, message) <= ring.words() / LARGEST_PART).then_some(message),
        };
        let place = ring.write(&draft, unread).ok_or(NotAppended::Full)?;
        self.finish(place, offset, (hash, draft.wall));
        Ok((offset, draft.message.is_some()))
    }

    /// The steps that follow the store of the tail.
    fn finish(&self, place: u64, offset: u64, (hash, wall): (u64, u64)) {
        let header = self.layout.header();
        self.table().put(hash, place, offset, wall);
        header.offset.store(offset, Release);
        header.finished.store(header.tail.load(Relaxed), Release);
    }

    /// Repeats these steps for the newest entry, if the process that has written it died before it finished them.
    fn repair(&self) {
        let header = self.layout.header();
        let finished = header.finished.load(Relaxed);
        if finished == header.tail.load(Relaxed) {
            return;
        }
        if let Some(entry) = self.ring().entry(finished) {
            self.finish(finished, entry.offset, (entry.hash, entry.wall));
        }
    }

    /// True while processes of two releases use the history: it carries all publications for the whole server, because they
    /// share nothing else.
    pub fn is_joint(&self) -> bool {
        self.layout.header().joint.load(SeqCst) == 1
    }

    /// Begins or ends that time.
    pub fn set_joint(&self, is_joint: bool) {
        self.layout.header().joint.store(is_joint.into(), SeqCst);
    }

    /// Notes that a publication could not go through the history in that time: the other release has not got it.
    pub(super) fn divide(&self) {
        self.layout.header().divided.fetch_add(1, SeqCst);
    }

    /// Number of such publications.
    pub(super) fn divided(&self) -> u64 {
        self.layout.header().divided.load(SeqCst)
    }

    /// Makes this process the leader of all processes that use the history, if the last leader has ended. Returns true if it
    /// leads. Each release has its own leader, so this matters while there are two.
    pub(super) fn lead(&self) -> bool {
        let (own, leader) = (std::process::id().into(), self.layout.header().leader);
        let now = leader.load(SeqCst);
        let is_alive = |process: u64| {
            let process = i32::try_from(process).ok().and_then(Pid::from_raw);
            process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
        };
        if now == own {
            return true;
        }
        let is_free = !self.is_joint() || !is_alive(now);
        is_free && leader.compare_exchange(now, own, SeqCst, SeqCst).is_ok()
    }

    pub(super) fn stop_leading(&self) {
        let own = std::process::id().into();
        let _ = self.layout.header().leader.compare_exchange(own, 0, SeqCst, SeqCst);
    }

    /// See [`Hub::progress`](super::Hub::progress).
    pub(super) fn progress(&self) -> &[AtomicU64; 3] {
        self.layout.progress()
    }

    /// The place after the newest entry, for a reader that begins.
    pub(super) fn end(&self) -> u64 {
        self.layout.header().tail.load(Acquire)
    }

    /// Reads the entry at `place`, and moves `place` behind it. `is_wanted`: false if nobody wants the message of this
    /// channel, which is then not copied.
    pub(super) fn next(&self, place: &mut u64, is_wanted: impl FnOnce(&[u8]) -> bool) -> Next {
        self.ring().next(place, is_wanted, self.epoch())
    }

    /// The entry that is visible, but not in the table yet: a process is about to finish it, or has died.
    fn unfinished(&self) -> Option<(u64, Entry)> {
        let header = self.layout.header();
        loop {
            let finished = header.finished.load(Acquire);
            let tail = header.tail.load(Acquire);
            let entry = (finished < tail).then(|| self.ring().entry(finished)).flatten();
            if finished == header.finished.load(Acquire) {
                return entry.map(|entry| (finished, entry));
            }
        }
    }

    /// The position after all messages that were published before this call.
    pub fn position(&self) -> Position {
        let unfinished = self.unfinished().map_or(0, |(_, entry)| entry.offset);
        Position {
            epoch: self.epoch(),
            offset: self.layout.header().offset.load(Acquire).max(unfinished),
        }
    }

    /// A number of this server. Positions of another server mean nothing here.
    pub fn epoch(&self) -> u64 {
        self.layout.header().epoch.load(Relaxed)
    }

    /// The messages of a channel after a position.
    pub fn since(&self, channel: &[u8], position: Position, kept: Kept) -> Since {
        self.between(channel, position, u64::MAX, kept)
    }

    /// The messages of a channel after a position, up to an offset. Later ones are not copied.
    pub fn between(&self, channel: &[u8], position: Position, until: u64, kept: Kept) -> Since {
        if position.epoch != self.epoch() || position.offset > self.position().offset {
            return Since::Lost;
        }
        let walked = self.walk(channel, kept, |entry| match entry.offset {
            offset if offset <= position.offset => Wish::End,
            offset if offset <= until => Wish::Copy,
            _ => Wish::Pass,
        });
        if walked.next.1 <= position.offset {
            Since::All(walked.past)
        } else {
            Since::Lost
        }
    }

    /// The messages of a channel since a moment of the wall clock, as far as they are kept.
    pub fn since_time(&self, channel: &[u8], since: Duration, kept: Kept) -> Vec<Past> {
        let since = since.as_millis() as u64;
        let wish = |entry: &Entry| if entry.wall >= since { Wish::Copy } else { Wish::End };
        self.walk(channel, kept, wish).past
    }

    /// The position before these messages, and false if some of them are not kept any more. Copies none.
    pub fn before(&self, channel: &[u8], since: Duration, kept: Kept) -> (Position, bool) {
        let since = since.as_millis() as u64;
        let position = self.position();
        let wish = |entry: &Entry| if entry.wall >= since { Wish::Pass } else { Wish::End };
        let walked = self.walk(channel, kept, wish);
        let offset = walked
            .oldest
            .map_or(position.offset, |oldest| position.offset.min(oldest - 1));
        let is_complete = walked.is_ended || self.is_older(walked.next, since);
        (Position { offset, ..position }, is_complete)
    }

    /// True if this entry, which cannot be read, and its predecessors are older than a moment. Without a place, there may be
    /// entries up to this offset.
    fn is_older(&self, (place, offset): (Option<u64>, u64), since: u64) -> bool {
        if place.is_none() {
            return offset == 0 || self.table().forgotten_wall() < since;
        }
        let oldest = self.ring().oldest();
        oldest.is_some_and(|oldest| oldest.offset > offset && oldest.wall < since)
    }

    /// The newest entry of a channel: its place and its offset. Without a place, there may be entries up to this offset.
    fn newest(&self, hash: u64) -> (Option<u64>, u64) {
        let table = self.table();
        loop {
            let unfinished = self.unfinished();
            if let Some((place, entry)) = unfinished.filter(|(_, entry)| entry.hash == hash) {
                return (Some(place), entry.offset);
            }
            match table.newest(hash) {
                Newest::At(place, offset) => return (Some(place), offset),
                // Another channel may have taken the place of this one in the table.
                Newest::Unknown => return (None, table.forgotten()),
                Newest::Changing => {}
            }
            // If the same entry has been unfinished all the time, its channel is about to take this place. Otherwise there is a
            // newer entry of this channel, which the first step finds.
            let place = |unfinished: Option<(u64, Entry)>| unfinished.map(|(place, _)| place);
            if unfinished.is_some() && place(unfinished) == place(self.unfinished()) {
                return (None, table.forgotten());
            }
        }
    }

    /// Goes from the newest entry of a channel to older ones.
    fn walk(&self, channel: &[u8], kept: Kept, wish: impl Fn(&Entry) -> Wish) -> Walked {
        let (ring, now) = (self.ring(), Millis::now());
        let hash = self.table().hash(channel);
        let mut walked = Walked {
            past: Vec::new(),
            oldest: None,
            next: self.newest(hash),
            is_ended: false,
        };
        let mut count = 0;
        while let Some((place, entry)) = walked
            .next
            .0
            .and_then(|place| Some((place, ring.entry_of(place, channel)?)))
        {
            let wish = wish(&entry);
            walked.is_ended = wish == Wish::End;
            let is_kept = now - Millis::from_number(entry.time) <= kept.time && count < kept.messages;
            if walked.is_ended || !is_kept || entry.message_bytes().is_none() {
                break;
            }
            if wish == Wish::Copy {
                let Some(message) = ring.message(place, &entry) else {
                    break;
                };
                walked.past.push(Past {
                    offset: entry.offset,
                    time: Duration::from_millis(entry.wall),
                    message,
                });
            }
            count += 1;
            walked.oldest = Some(entry.offset);
            walked.next = entry.previous;
        }
        walked.past.reverse();
        walked
    }

    /// The current position for a new page, sealed for a channel.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn seal(&self, channel: &[u8], position: Position) -> io::Result<String> {
        let page = layout::random()?.max(1);
        let made = Millis::now().to_number();
        Ok(seal::seal(&self.layout, channel, PagePosition { position, page, made }))
    }

    /// The position in a text that [`History::seal`] has made for this channel.
    pub fn open(&self, channel: &[u8], sealed: &str) -> Option<PagePosition> {
        seal::open(&self.layout, channel, sealed).filter(|open| open.page != 0)
    }

    /// Returns true if the text has the form of a sealed position, and another server has made it.
    pub fn is_foreign(&self, sealed: &str) -> bool {
        let form = seal::parse(sealed).map(|(open, _)| open.position.epoch);
        form.is_some_and(|epoch| epoch != self.epoch())
    }

    /// The position after the messages that a page has received. `None` if it is not known any more.
    pub(crate) fn resume(&self, page: PagePosition) -> Option<Position> {
        let offset = Pages::new(&self.layout).enter(page, Millis::now())?;
        Some(Position {
            offset,
            ..page.position
        })
    }

    /// Notes that a page has received its messages up to an offset.
    pub(crate) fn received(&self, page: u64, offset: u64) {
        Pages::new(&self.layout).received(page, offset, Millis::now());
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.layout)
    }

    fn table(&self) -> Table<'_> {
        Table::new(&self.layout)
    }
}
