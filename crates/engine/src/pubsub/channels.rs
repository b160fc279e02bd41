//! The registry: the subscriptions of this process.
//!
//! The recipients of a channel are a list that is made when first needed, and dropped when they change. So the
//! dispatcher delivers without the lock, and closing many subscribers of one channel costs each of them one look-up.

use super::patterns::Patterns;
use super::subscriber::{Delivery, Subscriber};
use crate::sync::RwLock;
use fairlead_wire::pattern::{Match, Pattern};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// All subscriptions of a process, by the name of the channel or the pattern.
#[derive(Default)]
pub(super) struct Channels {
    texts: RwLock<Texts>,
    subscriptions: AtomicUsize,
}

struct Texts {
    names: HashMap<Box<[u8]>, Members>,
    globs: Patterns,
    subjects: Patterns,
}

impl Default for Texts {
    fn default() -> Self {
        Texts {
            names: HashMap::new(),
            globs: Patterns::new(Match::Glob),
            subjects: Patterns::new(Match::Subject),
        }
    }
}

/// The subscribers of one name or pattern.
#[derive(Default)]
pub(super) struct Members {
    by_id: HashMap<u64, Recipient, Ids>,
    /// The same as a list, made when needed.
    list: OnceLock<Recipients>,
}

/// A subscriber, and how it gets its messages.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) delivery: Delivery,
}

pub(super) type Recipients = Arc<[Recipient]>;

/// What a change removed from the registry. To be dropped without the lock, since it may have the last reference to a
/// subscriber.
#[derive(Default)]
struct Removed {
    recipient: Option<Recipient>,
    _list: Option<Recipients>,
}

impl Channels {
    /// Whether there are no subscriptions: one atomic load.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.subscriptions.load(SeqCst)
    }

    /// How many patterns have subscribers.
    pub(super) fn patterns(&self) -> usize {
        let texts = self.texts.read();
        texts.globs.len() + texts.subjects.len()
    }

    /// Whether a pattern has subscribers.
    pub(super) fn has_pattern(&self, text: &[u8], kind: Match) -> bool {
        let texts = self.texts.read();
        match kind {
            Match::Exact => false,
            Match::Glob => texts.globs.get(text).is_some(),
            Match::Subject => texts.subjects.get(text).is_some(),
        }
    }

    /// Adds a subscription, replacing the subscriber's former one with the same text. Returns how many subscriptions
    /// have that text now.
    pub(super) fn subscribe(&self, recipient: Recipient, text: &[u8], kind: Match) -> usize {
        let id = recipient.subscriber.id();
        let mut texts = self.texts.write();
        let former = texts.remove(id, text);
        let unlisted = texts.members(text, kind).add(id, recipient);
        if former.recipient.is_none() {
            self.subscriptions.fetch_add(1, SeqCst);
        }
        let count = texts.count(text);
        drop(texts);
        drop((former, unlisted));
        count
    }

    /// Removes a subscription. Returns how many are left with that text, or `None` if there was no such subscription.
    pub(super) fn unsubscribe(&self, id: u64, text: &[u8]) -> Option<usize> {
        let mut texts = self.texts.write();
        let removed = texts.remove(id, text);
        removed.recipient.as_ref()?;
        self.subscriptions.fetch_sub(1, SeqCst);
        let left = texts.count(text);
        drop(texts);
        drop(removed);
        Some(left)
    }

    /// Adds the recipients of a channel to `lists`.
    pub(super) fn find(&self, channel: &[u8], lists: &mut Vec<Recipients>) {
        let texts = self.texts.read();
        lists.extend(texts.names.get(channel).map(Members::list));
        lists.extend(texts.globs.matching(channel).map(Members::list));
        lists.extend(texts.subjects.matching(channel).map(Members::list));
    }
}

impl Texts {
    fn members(&mut self, text: &[u8], kind: Match) -> &mut Members {
        match Pattern::new(text, kind) {
            None => self.names.entry(text.into()).or_default(),
            Some(pattern) => {
                let patterns = match kind {
                    Match::Subject => &mut self.subjects,
                    _ => &mut self.globs,
                };
                patterns.add(text, pattern)
            }
        }
    }

    fn remove(&mut self, id: u64, text: &[u8]) -> Removed {
        if let Some(members) = self.names.get_mut(text) {
            let removed = members.remove(id);
            if members.by_id.is_empty() {
                self.names.remove(text);
            }
            if removed.recipient.is_some() {
                return removed;
            }
        }
        for patterns in [&mut self.globs, &mut self.subjects] {
            let Some(members) = patterns.get_mut(text) else {
                continue;
            };
            let removed = members.remove(id);
            if members.by_id.is_empty() {
                patterns.remove(text);
            }
            if removed.recipient.is_some() {
                return removed;
            }
        }
        Removed::default()
    }

    fn count(&self, text: &[u8]) -> usize {
        let of = |members: &Members| members.by_id.len();
        let patterns = [&self.globs, &self.subjects].map(|patterns| patterns.get(text).map_or(0, of));
        self.names.get(text).map_or(0, of) + patterns[0] + patterns[1]
    }
}

impl Members {
    fn add(&mut self, id: u64, recipient: Recipient) -> Option<Recipients> {
        self.by_id.insert(id, recipient);
        self.list.take()
    }

    fn remove(&mut self, id: u64) -> Removed {
        match self.by_id.remove(&id) {
            None => Removed::default(),
            recipient => Removed {
                recipient,
                _list: self.list.take(),
            },
        }
    }

    fn list(&self) -> Recipients {
        Arc::clone(self.list.get_or_init(|| self.by_id.values().cloned().collect()))
    }
}

/// Hashes the ids of subscribers, which no one outside of the process can choose.
pub(super) type Ids = BuildHasherDefault<IdHasher>;

#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio spreads consecutive numbers. The table uses both ends of the product.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}
