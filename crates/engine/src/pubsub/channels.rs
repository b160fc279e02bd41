//! The registry: the subscriptions of this process.
//!
//! The recipients of a channel are a list that is made when first needed, and dropped when they change. So the
//! dispatcher delivers without the lock, and closing many subscribers of one channel costs one lookup for each of them.

use super::patterns::Patterns;
use super::shares::{Most, Shares};
use super::subscriber::{Delivery, Subscriber};
use crate::sync::RwLock;
use fairlead_wire::pattern::{Match, Pattern};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// The beginning of the channels of the server itself (`Subscription::OWN` in Ruby). Only their names find them, no pattern of the
/// application.
const OWN: &[u8] = b"fairlead/";

/// All subscriptions of a process, by the name of the channel or the pattern.
#[derive(Default)]
pub(super) struct Channels {
    texts: RwLock<Texts>,
    subscriptions: AtomicUsize,
    /// Names with subscribers, as of the last change.
    names: AtomicUsize,
}

struct Texts {
    names: HashMap<Box<[u8]>, Members>,
    globs: Patterns,
    subjects: Patterns,
    /// Subscriptions, and patterns. A pattern counts for its oldest subscriber.
    shares: Shares,
    pattern_shares: Shares,
}

impl Default for Texts {
    fn default() -> Self {
        Texts {
            names: HashMap::new(),
            globs: Patterns::new(Match::Glob),
            subjects: Patterns::new(Match::Subject),
            shares: Shares::default(),
            pattern_shares: Shares::default(),
        }
    }
}

/// The highest permitted numbers of subscriptions and patterns; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Subscriptions of all subscribers.
    pub subscriptions: usize,
    /// Different patterns.
    pub patterns: usize,
}

/// The total that is used up, so that a subscription is refused.
pub enum Full {
    /// [`Totals::subscriptions`].
    Subscriptions(Option<Most>),
    /// [`Totals::patterns`].
    Patterns(Option<Most>),
}

/// The subscribers of one name or pattern.
#[derive(Default)]
pub(super) struct Members {
    by_id: BTreeMap<u64, Recipient>,
    /// The same subscribers as a list, made when needed.
    list: OnceLock<Recipients>,
}

/// A subscriber, and the way in which it gets its messages.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) delivery: Delivery,
}

pub(super) type Recipients = Arc<[Recipient]>;

/// Objects that a change removed from the registry. To be dropped without the lock, because it may have the last
/// reference to a subscriber.
#[derive(Default)]
struct Removed {
    recipient: Option<Recipient>,
    _list: Option<Recipients>,
}

impl Channels {
    /// Returns true if there are no subscriptions. Costs one atomic load.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.subscriptions.load(SeqCst)
    }

    /// Number of channels with subscribers. Patterns do not count.
    pub(super) fn names(&self) -> usize {
        self.names.load(SeqCst)
    }

    /// Adds a subscription, replacing the subscriber's earlier one with the same text, unless a total is used up.
    /// Returns the number of subscriptions with this text.
    pub(super) fn subscribe(
        &self,
        recipient: Recipient,
        text: &[u8],
        kind: Match,
        totals: Totals,
    ) -> Result<usize, Full> {
        let mut texts = self.texts.write();
        if let Some(full) = self.refusal(&texts, &*recipient.subscriber, text, kind, totals) {
            drop(texts);
            return Err(full);
        }
        let former = texts.remove(recipient.subscriber.id(), text);
        let unlisted = texts.add(recipient, text, kind);
        if former.recipient.is_none() {
            self.subscriptions.fetch_add(1, SeqCst);
        }
        let count = texts.count(text);
        self.names.store(texts.names.len(), SeqCst);
        drop(texts);
        drop((former, unlisted));
        Ok(count)
    }

    fn refusal(
        &self,
        texts: &Texts,
        newcomer: &dyn Subscriber,
        text: &[u8],
        kind: Match,
        totals: Totals,
    ) -> Option<Full> {
        let is_reached = |count: usize, most: usize| most > 0 && count >= most;
        if is_reached(self.len(), totals.subscriptions) && !texts.has(newcomer.id(), text) {
            return Some(Full::Subscriptions(texts.shares.most(newcomer)));
        }
        let patterns = texts.globs.len() + texts.subjects.len();
        let is_new = || Pattern::new(text, kind).is_some() && texts.pattern(text, kind).is_none();
        (is_reached(patterns, totals.patterns) && is_new()).then(|| Full::Patterns(texts.pattern_shares.most(newcomer)))
    }

    /// Removes a subscription. Returns the number of subscriptions left with this text, or `None` if there was no such
    /// subscription.
    pub(super) fn unsubscribe(&self, id: u64, text: &[u8]) -> Option<usize> {
        let mut texts = self.texts.write();
        let removed = texts.remove(id, text);
        removed.recipient.as_ref()?;
        let before = self.subscriptions.fetch_sub(1, SeqCst);
        debug_assert!(before >= 1, "more subscriptions ended than began");
        let left = texts.count(text);
        self.names.store(texts.names.len(), SeqCst);
        drop(texts);
        drop(removed);
        Some(left)
    }

    /// The recipients that have subscribed to this very name.
    pub(super) fn exact(&self, channel: &[u8]) -> Option<Recipients> {
        self.texts.read().names.get(channel).map(Members::list)
    }

    /// All subscribers of names, each once for each name.
    pub(super) fn all(&self) -> Vec<Recipients> {
        self.texts.read().names.values().map(Members::list).collect()
    }

    /// Adds the recipients of a channel to `lists`.
    pub(super) fn find(&self, channel: &[u8], lists: &mut Vec<Recipients>) {
        let texts = self.texts.read();
        lists.extend(texts.names.get(channel).map(Members::list));
        if channel.starts_with(OWN) {
            return;
        }
        lists.extend(texts.globs.matching(channel).map(Members::list));
        lists.extend(texts.subjects.matching(channel).map(Members::list));
    }
}

impl Texts {
    fn remove(&mut self, id: u64, text: &[u8]) -> Removed {
        let removed = self.remove_member(id, text);
        if let Some(recipient) = &removed.recipient {
            self.shares.remove(&recipient.subscriber);
        }
        removed
    }

    fn remove_member(&mut self, id: u64, text: &[u8]) -> Removed {
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
            let before = members.eldest().cloned();
            let removed = members.remove(id);
            count_for_eldest(&mut self.pattern_shares, before.as_ref(), members.eldest());
            if members.by_id.is_empty() {
                patterns.remove(text);
            }
            if removed.recipient.is_some() {
                return removed;
            }
        }
        Removed::default()
    }

    /// Adds a subscription; returns the list of recipients that is no longer complete.
    fn add(&mut self, recipient: Recipient, text: &[u8], kind: Match) -> Option<Recipients> {
        self.shares.add(&recipient.subscriber);
        let Some(pattern) = Pattern::new(text, kind) else {
            return self.names.entry(text.into()).or_default().add(recipient);
        };
        let patterns = match kind {
            Match::Subject => &mut self.subjects,
            _ => &mut self.globs,
        };
        let members = patterns.add(text, pattern);
        let before = members.eldest().cloned();
        let unlisted = members.add(recipient);
        count_for_eldest(&mut self.pattern_shares, before.as_ref(), members.eldest());
        unlisted
    }

    fn pattern(&self, text: &[u8], kind: Match) -> Option<&Members> {
        match kind {
            Match::Exact => None,
            Match::Glob => self.globs.get(text),
            Match::Subject => self.subjects.get(text),
        }
    }

    /// Returns true if the subscriber with this id has a subscription with this text.
    fn has(&self, id: u64, text: &[u8]) -> bool {
        let all = [self.names.get(text), self.globs.get(text), self.subjects.get(text)];
        all.into_iter().flatten().any(|members| members.by_id.contains_key(&id))
    }

    fn count(&self, text: &[u8]) -> usize {
        let of = |members: &Members| members.by_id.len();
        let patterns = [&self.globs, &self.subjects].map(|patterns| patterns.get(text).map_or(0, of));
        self.names.get(text).map_or(0, of) + patterns[0] + patterns[1]
    }
}

/// Counts a pattern for its oldest subscriber, if that has changed from `before` to `now`.
fn count_for_eldest(shares: &mut Shares, before: Option<&Arc<dyn Subscriber>>, now: Option<&Arc<dyn Subscriber>>) {
    if before.map(|eldest| eldest.id()) == now.map(|eldest| eldest.id()) {
        return;
    }
    if let Some(before) = before {
        shares.remove(before);
    }
    if let Some(now) = now {
        shares.add(now);
    }
}

impl Members {
    /// The subscriber with the lowest id.
    fn eldest(&self) -> Option<&Arc<dyn Subscriber>> {
        let (_, eldest) = self.by_id.first_key_value()?;
        Some(&eldest.subscriber)
    }

    fn add(&mut self, recipient: Recipient) -> Option<Recipients> {
        self.by_id.insert(recipient.subscriber.id(), recipient);
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

/// Hashes the ids of subscribers, which cannot be chosen from outside of the process.
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
