//! Publishes through the history: appends a message, and wakes the dispatchers that sleep. If the ring has no room because
//! a dispatcher has not read its oldest messages, the publisher waits, as it does for a full mailbox.

use super::history::{History, NotAppended};
use super::hub::Posted;
use super::PATIENCE;
use crate::clock::Millis;
use crate::cluster::scoreboard::{Slot, SLOTS};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// The time between two attempts: at first, and at most.
const SHORT_PAUSE: Duration = Duration::from_micros(20);
const LONG_PAUSE: Duration = Duration::from_millis(2);

/// The most that counts of the time between two attempts.
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// Dispatchers that this process has given up: for each, its place at that time, plus one; 0 for others.
#[derive(Debug)]
pub(super) struct GivenUp([AtomicU64; SLOTS]);

impl Default for GivenUp {
    fn default() -> GivenUp {
        GivenUp(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl GivenUp {
    /// Returns true if the dispatcher was given up, and has read nothing since.
    fn has(&self, slot: usize, reader: &Slot) -> bool {
        let given_up = self.0[slot].load(Relaxed);
        given_up != 0 && given_up == reader.history_place.load(Relaxed)
    }

    fn add(&self, slot: usize, place: u64) {
        self.0[slot].store(place, Relaxed);
    }
}

/// Finds the processes that read the history now: the numbers and the slots.
pub(super) type Readers<'a> = dyn Fn() -> Vec<(usize, &'a Slot)> + 'a;

/// One publication.
struct Attempts<'a> {
    history: &'a History,
    readers: &'a Readers<'a>,
    given_up: &'a GivenUp,
    message: (&'a [u8], &'a [u8]),
    /// The time since another thread or process has had the lock at each attempt.
    busy: Option<Millis>,
    /// The slowest reader and its place, the time for which it has had that place while this thread ran, and the last attempt.
    slowest: Option<(usize, u64, Duration, Millis)>,
    undelivered: usize,
}

/// Appends a message for these readers. Waits, inside of `block`, if that is not possible at once. Returns the offset and
/// false if the message is too long for the history and has to go another way; `None` if it was not appended.
pub(super) fn append<'a>(
    history: &'a History,
    readers: &'a Readers<'a>,
    given_up: &'a GivenUp,
    message: (&'a [u8], &'a [u8]),
    block: &mut dyn FnMut(&mut dyn FnMut()),
) -> (Posted, Option<(u64, bool)>) {
    let mut attempts = Attempts {
        history,
        readers,
        given_up,
        message,
        busy: None,
        slowest: None,
        undelivered: 0,
    };
    let mut appended = attempts.attempt().ok();
    if appended.is_none() {
        block(&mut || appended = appended.or_else(|| attempts.go_on()));
    }
    let undelivered = match appended {
        Some(_) => attempts.undelivered,
        None => readers().len().max(1),
    };
    (Posted { undelivered }, appended)
}

impl Attempts<'_> {
    fn attempt(&mut self) -> Result<(u64, bool), NotAppended> {
        let unread = self.slowest_place().map_or(u64::MAX, |(_, place)| place - 1);
        self.history.append(self.message.0, self.message.1, unread)
    }

    /// Tries again until it succeeds, or another process has the lock for too long.
    fn go_on(&mut self) -> Option<(u64, bool)> {
        let mut pause = SHORT_PAUSE;
        loop {
            match self.attempt() {
                Ok(appended) => return Some(appended),
                Err(NotAppended::Full) => {
                    self.busy = None;
                    self.lose_patience();
                }
                Err(NotAppended::Busy) => {
                    let now = Millis::now();
                    if now - *self.busy.get_or_insert(now) > PATIENCE {
                        self.history.is_blocked.store(true, Relaxed);
                    }
                    if self.history.is_blocked.load(Relaxed) {
                        return None;
                    }
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONG_PAUSE);
        }
    }

    /// The slowest reader that was not given up, and its place plus one.
    fn slowest_place(&self) -> Option<(usize, u64)> {
        let readers = (self.readers)().into_iter();
        let places = readers
            .filter(|(slot, reader)| !self.given_up.has(*slot, reader))
            .map(|(slot, reader)| (slot, reader.history_place.load(SeqCst)));
        places.filter(|(_, place)| *place != 0).min_by_key(|(_, place)| *place)
    }

    /// Gives up the slowest reader, if it has not moved for long.
    fn lose_patience(&mut self) {
        let Some((slot, place)) = self.slowest_place() else {
            return;
        };
        let now = Millis::now();
        match &mut self.slowest {
            Some((known, at, waited, last)) if (*known, *at) == (slot, place) => {
                // After a pause of the machine the reader gets its time, too.
                *waited += (now - *last).min(LONGEST_STEP);
                *last = now;
                if *waited >= PATIENCE {
                    self.given_up.add(slot, place);
                    self.undelivered += 1;
                }
            }
            _ => self.slowest = Some((slot, place, Duration::ZERO, now)),
        }
    }
}
