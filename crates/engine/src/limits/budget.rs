//! The part of each connection in the totals of an engine. A session of HTTP/2 has many requests at a time, so a limit of
//! each request does not limit the session. It has a [`Budget`], a part of each total. A session above its budget gets no
//! turns, and its new streams are refused.
//!
//! Many clients within their budgets may still fill a total. Then the client with the largest share gives way. Shares are ranked by
//! powers of two: a rank changes seldom, and nobody has to look at all clients to find the largest.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};

/// The totals that are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of requests in memory.
    Requests,
    /// Bytes of unsent responses in memory.
    Responses,
    /// Files with bodies of requests.
    Bodies,
    /// Files with responses, or what is sent of them.
    Files,
}

const KINDS: usize = 4;

/// A session gets this part (1/n) of each total.
const PARTS: [u64; KINDS] = [16, 8, 8, 8];

/// But at least so much.
const LEAST: [u64; KINDS] = [128 * 1024, 512 * 1024, 2, 2];

/// A session with so few requests may begin another one, whatever waits for its client: one large response must not keep a
/// browser from the rest of a site.
const FEW: usize = 4;

/// Smaller shares are not ranked: they never give way.
const RANKED: [u64; KINDS] = [16 * 1024, 4 * 1024, 2, 2];

/// Largest shares that are considered.
const CANDIDATES: usize = 8;

/// The budgets of an engine.
#[derive(Debug)]
pub(crate) struct Budgets {
    most: [u64; KINDS],
    /// Ranks, with keys, per kind.
    ranked: [Mutex<BTreeSet<(u8, u64)>>; KINDS],
}

/// Hears that a budget has become smaller than its limit.
pub(crate) trait Eased: Send + Sync {
    /// Any thread may call this, with any lock; so the rest has to follow later.
    fn eased(&self);
}

/// The amounts that one session has taken. An HTTP/1 connection has a budget, too, while its response waits for the client:
/// for its rank.
pub(crate) struct Budget {
    key: u64,
    budgets: Arc<Budgets>,
    used: [AtomicU64; KINDS],
    ranks: [AtomicU8; KINDS],
    /// Requests that have begun and not ended.
    requests: AtomicUsize,
    eased: OnceLock<Weak<dyn Eased>>,
}

/// Part of a budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    kind: Kind,
    amount: u64,
}

impl Budgets {
    /// For these totals, in the order of [`Kind`].
    pub(crate) fn new(totals: [u64; KINDS]) -> Arc<Budgets> {
        Arc::new(Budgets {
            most: std::array::from_fn(|kind| (totals[kind] / PARTS[kind]).max(LEAST[kind])),
            ranked: Default::default(),
        })
    }

    /// A budget for the connection with that key.
    pub(crate) fn budget(self: &Arc<Self>, key: u64) -> Arc<Budget> {
        Arc::new(Budget {
            key,
            budgets: Arc::clone(self),
            used: Default::default(),
            ranks: Default::default(),
            requests: AtomicUsize::new(0),
            eased: OnceLock::new(),
        })
    }

    /// The keys of the largest shares, the largest first; each may be twice as large as the one before it.
    pub(crate) fn largest(&self, kind: Kind) -> Vec<u64> {
        let ranked = self.ranked[kind as usize].lock();
        ranked.iter().rev().take(CANDIDATES).map(|(_, key)| *key).collect()
    }
}

impl Budget {
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// From now on `eased` hears when there is room again.
    pub(crate) fn tell(&self, eased: Weak<dyn Eased>) {
        let _ = self.eased.set(eased);
    }

    pub(crate) fn used(&self, kind: Kind) -> u64 {
        self.used[kind as usize].load(SeqCst)
    }

    /// True if nothing more should be begun that takes some of this.
    pub(crate) fn is_used_up(&self, kind: Kind) -> bool {
        self.used(kind) >= self.budgets.most[kind as usize]
    }

    /// True if it has so much of this that others gain by its end.
    pub(crate) fn has_much(&self, kind: Kind) -> bool {
        self.used(kind) >= self.budgets.most[kind as usize] / 2
    }

    /// A request begins.
    pub(crate) fn begin_request(&self) {
        self.requests.fetch_add(1, SeqCst);
    }

    /// A request has ended.
    pub(crate) fn end_request(&self) {
        let had_many = self.requests.fetch_sub(1, SeqCst) == FEW + 1;
        if had_many
            && [Kind::Responses, Kind::Files]
                .into_iter()
                .any(|kind| self.is_used_up(kind))
        {
            self.ease();
        }
    }

    /// The budget that is used up by responses that wait for the client. `None` if another request may begin.
    pub(crate) fn waits_for_client(&self) -> Option<Kind> {
        let mut kinds = [Kind::Responses, Kind::Files].into_iter();
        let used_up = kinds.find(|kind| self.is_used_up(*kind));
        used_up.filter(|_| self.requests.load(SeqCst) > FEW)
    }

    /// True if there is room for so much more.
    pub(crate) fn has_room(&self, kind: Kind, more: u64) -> bool {
        self.used(kind) + more <= self.budgets.most[kind as usize]
    }

    /// Takes some, even if that is too much.
    pub(crate) fn count(self: &Arc<Self>, kind: Kind, amount: u64) -> Share {
        self.used[kind as usize].fetch_add(amount, SeqCst);
        self.rank(kind);
        Share {
            budget: Arc::clone(self),
            kind,
            amount,
        }
    }

    /// Takes some, if there is room for it.
    pub(crate) fn take(self: &Arc<Self>, kind: Kind, amount: u64) -> Option<Share> {
        let most = self.budgets.most[kind as usize];
        let more = |used: u64| Some(used + amount).filter(|used| *used <= most);
        self.used[kind as usize].fetch_update(SeqCst, SeqCst, more).ok()?;
        self.rank(kind);
        Some(Share {
            budget: Arc::clone(self),
            kind,
            amount,
        })
    }

    fn give_back(&self, kind: Kind, amount: u64) {
        let most = self.budgets.most[kind as usize];
        let before = self.used[kind as usize].fetch_sub(amount, SeqCst);
        self.rank(kind);
        if before >= most && before - amount < most {
            self.ease();
        }
    }

    fn ease(&self) {
        if let Some(eased) = self.eased.get().and_then(Weak::upgrade) {
            eased.eased();
        }
    }

    /// Keeps the rank up to date.
    fn rank(&self, kind: Kind) {
        let rank = || match self.used(kind) {
            used if used < RANKED[kind as usize] => 0,
            used => (u64::BITS - used.leading_zeros()) as u8,
        };
        let own = &self.ranks[kind as usize];
        if rank() == own.load(SeqCst) {
            return;
        }
        let mut ranked = self.budgets.ranked[kind as usize].lock();
        // Another thread may have changed it meanwhile; the last one to come here sees all changes.
        let (rank, before) = (rank(), own.load(SeqCst));
        ranked.remove(&(before, self.key));
        if rank > 0 {
            ranked.insert((rank, self.key));
        }
        own.store(rank, SeqCst);
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Budget")
            .field("key", &self.key)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl Share {
    /// Changes how much it is, even if that is too much.
    pub(crate) fn set(&mut self, amount: u64) {
        if amount >= self.amount {
            self.budget.used[self.kind as usize].fetch_add(amount - self.amount, SeqCst);
            self.budget.rank(self.kind);
        } else {
            self.budget.give_back(self.kind, self.amount - amount);
        }
        self.amount = amount;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give_back(self.kind, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Ear(AtomicUsize);

    impl Eased for Ear {
        fn eased(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_budget_is_a_part_of_each_total_and_at_least_what_a_session_needs() {
        let budget = Budgets::new([16 << 20, 80, 80, 80]).budget(1);
        assert!(budget.take(Kind::Requests, (1 << 20) + 1).is_none());
        let all = budget.take(Kind::Requests, 1 << 20).expect("a sixteenth");
        assert!(budget.is_used_up(Kind::Requests) && budget.take(Kind::Requests, 1).is_none());
        assert!(budget.take(Kind::Responses, LEAST[1]).is_some());
        assert!(budget.take(Kind::Bodies, 10).is_some() && budget.take(Kind::Bodies, 11).is_none());
        drop(all);
        assert_eq!(budget.used(Kind::Requests), 0);
    }

    #[test]
    fn it_is_told_once_when_there_is_room_again() {
        let ear = Arc::new(Ear::default());
        let budget = Budgets::new([0; KINDS]).budget(1);
        let told: Weak<Ear> = Arc::downgrade(&ear);
        budget.tell(told);
        let mut shares: Vec<Share> = (0..4).map(|_| budget.count(Kind::Bodies, 1)).collect();
        for heard in [0, 0, 1, 1] {
            shares.pop();
            assert_eq!(ear.0.load(SeqCst), heard);
        }
    }

    #[test]
    fn the_largest_shares_are_found_and_small_ones_are_not() {
        let budgets = Budgets::new([0; KINDS]);
        let sizes = [(1, 3_000), (2, 500_000), (3, 70_000), (4, 9_000_000)];
        let mut shares: Vec<Share> = sizes
            .iter()
            .map(|(key, size)| budgets.budget(*key).count(Kind::Responses, *size))
            .collect();
        assert_eq!(budgets.largest(Kind::Responses), [4, 2, 3]);
        shares[3].set(1);
        shares[0].set(80_000_000);
        assert_eq!(budgets.largest(Kind::Responses), [1, 2, 3]);
        drop(shares);
        assert!(budgets.largest(Kind::Responses).is_empty());
    }
}
