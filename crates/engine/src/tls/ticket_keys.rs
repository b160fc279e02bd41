//! The keys of session tickets, in memory that the processes of a server share.
//!
//! ```text
//!   count = 5      key 3 is erased   key 4: decrypts   key 5: encrypts   key 6 is made when key 5 is ROTATION old
//! ```
//!
//! A key encrypts for ROTATION, and decrypts for as long again; then it is erased, and recordings of connections that
//! were resumed with it cannot be decrypted any more. A process that needs a key checks if the next one is due; exactly
//! one process makes it. If that process is killed meanwhile, others wait for PATIENCE.
//!
//! The keys consist only of atomics: a page of zeros is valid, and a key is not used before it is complete.

use crate::clock::Millis;
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Time for which a key encrypts, in seconds.
pub(super) const ROTATION: u64 = 6 * 3600;

/// Time that a process may take to make a key, in seconds.
const PATIENCE: u64 = 10;

/// Number of keys that fit: the two in use, and more, so that a slow reader does not read another key.
const KEYS: usize = 4;

/// The 64-bit values of a key: its name, and the secret.
const WORDS: usize = 6;

/// The keys of session tickets, for all processes of a server. Zeros, at first.
#[repr(C)]
#[derive(Debug, Default)]
pub struct TicketKeys {
    /// Number of keys so far. The last one encrypts.
    count: AtomicU64,
    /// The time when a process has begun to make the next key; 0 if none does.
    being_made: AtomicU64,
    keys: [StoredKey; KEYS],
}

#[repr(C)]
#[derive(Default)]
struct StoredKey {
    /// In seconds on the monotonic clock.
    made_at: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A key with its name, which is the beginning of its tickets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: [u8; 16],
    pub(super) secret: [u8; 32],
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Key {{ name: {:02x?}, .. }}", self.name)
    }
}

/// Does not reveal the key.
impl std::fmt::Debug for StoredKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "StoredKey {{ made_at: {:?}, .. }}", self.made_at)
    }
}

impl TicketKeys {
    /// Creates no key; the first one is made when it is needed.
    #[must_use]
    pub const fn new() -> TicketKeys {
        TicketKeys {
            count: AtomicU64::new(0),
            being_made: AtomicU64::new(0),
            keys: [const { StoredKey::new() }; KEYS],
        }
    }

    /// Makes the next key, if there is one and the next is due. To be called regularly, so that keys are erased in time
    /// even if nobody connects.
    pub fn tend(&self) {
        if self.count.load(Relaxed) > 0 {
            self.tend_at(now());
        }
    }

    /// The key that encrypts; `None` if there is none yet.
    pub(super) fn current(&self) -> Option<Key> {
        self.current_at(now())
    }

    /// The key with this name, if it still decrypts.
    pub(super) fn find(&self, name: &[u8]) -> Option<Key> {
        self.find_at(name, now())
    }

    fn current_at(&self, now: u64) -> Option<Key> {
        self.tend_at(now);
        self.number(self.count.load(Acquire), now)
    }

    fn find_at(&self, name: &[u8], now: u64) -> Option<Key> {
        self.tend_at(now);
        let count = self.count.load(Acquire);
        let keys = [count, count.saturating_sub(1)].map(|number| self.number(number, now));
        keys.into_iter().flatten().find(|key| key.name == name)
    }

    /// The key with this number, from 1, if it may be used.
    fn number(&self, number: u64, now: u64) -> Option<Key> {
        let stored = self.stored(number.checked_sub(1)?);
        let key = stored.load();
        let is_in_use = now.saturating_sub(stored.made_at.load(Relaxed)) < 2 * ROTATION;
        // A reader so slow that the slot has another key by now gets no key.
        let is_there = self.count.load(Acquire) <= number + 1;
        (is_in_use && is_there).then_some(key)
    }

    fn stored(&self, index: u64) -> &StoredKey {
        &self.keys[(index % KEYS as u64) as usize]
    }

    fn is_due(&self, now: u64) -> bool {
        let count = self.count.load(Acquire);
        count == 0 || now.saturating_sub(self.stored(count - 1).made_at.load(Relaxed)) >= ROTATION
    }

    fn tend_at(&self, now: u64) {
        if !self.is_due(now) || !self.begin(now) {
            return;
        }
        // Another process may have been faster.
        if self.is_due(now) {
            self.make(now);
        }
        self.being_made.store(0, Release);
    }

    /// Returns true if this process has to make the next key.
    fn begin(&self, now: u64) -> bool {
        let begun = self.being_made.load(Acquire);
        let is_free = begun == 0 || now.saturating_sub(begun) > PATIENCE;
        is_free
            && self
                .being_made
                .compare_exchange(begun, now.max(1), Acquire, Relaxed)
                .is_ok()
    }

    fn make(&self, now: u64) {
        let mut bytes = [0; WORDS * 8];
        if SystemRandom::new().fill(&mut bytes).is_err() {
            return;
        }
        let count = self.count.load(Relaxed);
        self.stored(count).store(&bytes, now);
        self.count.store(count + 1, Release);
        // Erases the key that has decrypted until now. After a long time without clients, the previous key is too old,
        // too.
        if let Some(number) = count.checked_sub(2) {
            self.stored(number).erase();
        }
        if let Some(number) = count.checked_sub(1).filter(|number| self.is_over(*number, now)) {
            self.stored(number).erase();
        }
    }

    fn is_over(&self, number: u64, now: u64) -> bool {
        now.saturating_sub(self.stored(number).made_at.load(Relaxed)) >= 2 * ROTATION
    }
}

impl StoredKey {
    const fn new() -> StoredKey {
        StoredKey {
            made_at: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn load(&self) -> Key {
        let mut bytes = [0; WORDS * 8];
        for (to, word) in bytes.chunks_exact_mut(8).zip(&self.words) {
            to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        Key::from_bytes(&bytes)
    }

    fn store(&self, bytes: &[u8; WORDS * 8], now: u64) {
        for (word, from) in self.words.iter().zip(bytes.chunks_exact(8)) {
            word.store(from.try_into().map_or(0, u64::from_ne_bytes), Relaxed);
        }
        self.made_at.store(now, Relaxed);
    }

    fn erase(&self) {
        self.store(&[0; WORDS * 8], 0);
    }
}

impl Key {
    fn from_bytes(bytes: &[u8; WORDS * 8]) -> Key {
        let (mut name, mut secret) = ([0; 16], [0; 32]);
        name.copy_from_slice(&bytes[..16]);
        secret.copy_from_slice(&bytes[16..]);
        Key { name, secret }
    }
}

fn now() -> u64 {
    Millis::now().second()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const START: u64 = 100_000;

    #[test]
    fn a_key_decrypts_for_as_long_as_it_has_encrypted_and_is_erased_then() {
        let keys = TicketKeys::new();
        let first = keys.current_at(START).unwrap();
        assert_eq!(keys.current_at(START + ROTATION - 1).unwrap(), first);
        let second = keys.current_at(START + ROTATION).unwrap();
        assert_ne!(second, first);
        assert_eq!(keys.find_at(&first.name, START + ROTATION), Some(first.clone()));
        assert_eq!(keys.find_at(&second.name, START + 2 * ROTATION), Some(second.clone()));
        assert_eq!(keys.find_at(&first.name, START + 2 * ROTATION), None);
        assert_eq!(keys.stored(0).load().secret, [0; 32]);
        assert_ne!(keys.stored(1).load().secret, [0; 32]);
    }

    #[test]
    fn a_key_that_nobody_has_needed_for_long_is_erased_too() {
        let keys = TicketKeys::new();
        let first = keys.current_at(START).unwrap();
        assert_eq!(keys.find_at(&first.name, START + 2 * ROTATION), None);
        assert_eq!(keys.stored(0).load().secret, [0; 32]);
    }

    #[test]
    fn exactly_one_of_many_makes_the_next_key() {
        let keys = TicketKeys::new();
        for round in 1..=20 {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| keys.tend_at(START + round * ROTATION));
                }
            });
            assert_eq!(keys.count.load(Acquire), round);
        }
    }

    #[test]
    fn a_process_that_dies_while_it_makes_a_key_holds_up_nobody_for_long() {
        let keys = TicketKeys::new();
        assert!(keys.begin(START));
        assert_eq!(keys.current_at(START + PATIENCE), None);
        assert!(keys.current_at(START + PATIENCE + 1).is_some());
    }
}
