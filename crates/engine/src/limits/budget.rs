//! Share of each connection in the totals of an engine. An HTTP/2 connection has many requests at a time, so a limit
//! per request does not limit the connection. It has a [`Budget`], a part of each total. An HTTP/2 connection above its
//! budget gets no turns, and its new streams are refused.
//!
//! Many clients within their budgets may still fill a total. Then the address with the largest total of its connections
//! gives way, with its largest share (`holders.rs`). Shares are ranked by powers of two: a rank changes seldom, and the
//! largest share is found without a scan of all clients. Within a rank the oldest share is first: a client that reads
//! its response leaves the rank soon.

use super::holders::{Candidate, Holders, Owner, MUCH};
use crate::clock::{Millis, Nanos};
use crate::sync::Mutex;
use std::cmp::{Ordering, Reverse};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Totals that are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of requests in memory.
    Requests,
    /// Bytes of unsent responses in memory.
    Responses,
    /// Files with bodies of requests.
    Bodies,
    /// Files of responses: served files, or temporary ones.
    Files,
    /// Bytes of incomplete WebSocket messages. The message with the most memory for the longest time gives way first,
    /// from the address with the largest sum: neither messages held for minutes nor a flood of large ones displace a
    /// message that is being sent.
    Messages,
}

const KINDS: usize = 5;

/// An HTTP/2 connection gets this part (1/n) of each total.
const PARTS: [u64; KINDS] = [16, 8, 8, 8, 1];

/// Minimum of that part.
const LEAST: [u64; KINDS] = [128 * 1024, 512 * 1024, 2, 2, 2];

/// An HTTP/2 connection with so few requests may begin another one, whatever output waits for its client: one large
/// response must not keep a browser from the rest of a site.
const FEW: usize = 4;

/// A burst of refusals is over when no request was refused for this long.
const QUIET: Duration = Duration::from_millis(1_000);

/// Smaller shares are not ranked: they never give way.
const RANKED: [u64; KINDS] = [256 * 1024, 4 * 1024, 1, 1, 1];

/// Largest shares that are considered at a time.
pub(crate) const CANDIDATES: usize = 8;

/// Budgets of an engine.
#[derive(Debug)]
pub(crate) struct Budgets {
    most: [u64; KINDS],
    ranked: [Mutex<Holders>; KINDS],
}

/// Place in a ranking, with the key of its budget. The greatest place gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<K> {
    pub(super) rank: u8,
    /// See [`now`].
    pub(super) since: Reverse<u64>,
    pub(super) key: K,
}

/// Is told when a budget has become smaller than its limit.
pub(crate) trait Eased: Send + Sync {
    /// May be called on any thread, with any lock held; so the work has to follow later.
    fn eased(&self);
}

/// Amounts that one HTTP/2 connection has taken. An HTTP/1 connection has a budget, too, while its response waits for
/// the client: for its rank.
pub(crate) struct Budget {
    key: u64,
    owner: Owner,
    budgets: Arc<Budgets>,
    used: [AtomicU64; KINDS],
    /// Rank (the lowest eight bits) and time of the place in each ranking.
    places: [AtomicU64; KINDS],
    /// True once its connection has ended, and so cannot give way.
    is_retired: AtomicBool,
    /// Time at which a request was last refused.
    refused: Mutex<Option<Millis>>,
    /// Requests that have begun and not ended.
    requests: AtomicUsize,
    eased: OnceLock<Weak<dyn Eased>>,
}

/// Part of a budget; released when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    kind: Kind,
    amount: u64,
}

impl Budgets {
    /// Makes budgets for these totals, in the order of [`Kind`].
    pub(crate) fn new(totals: [u64; KINDS]) -> Arc<Budgets> {
        let most = |kind: usize| (totals[kind] / PARTS[kind]).max(LEAST[kind]);
        Arc::new(Budgets {
            most: std::array::from_fn(most),
            ranked: std::array::from_fn(|kind| Mutex::new(Holders::new(least_of_owner(kind, most(kind))))),
        })
    }

    /// Makes a budget for the connection with that key, which is its own owner.
    #[cfg(test)]
    pub(crate) fn budget(self: &Arc<Self>, key: u64) -> Arc<Budget> {
        self.budget_of(Owner::Key(key), key)
    }

    /// Makes a budget for the connection with that key, one of the connections of `owner`.
    pub(crate) fn budget_of(self: &Arc<Self>, owner: Owner, key: u64) -> Arc<Budget> {
        Arc::new(Budget {
            key,
            owner,
            budgets: Arc::clone(self),
            used: Default::default(),
            places: Default::default(),
            is_retired: AtomicBool::new(false),
            refused: Mutex::default(),
            requests: AtomicUsize::new(0),
            eased: OnceLock::new(),
        })
    }

    /// Returns the largest shares of the owners with the largest sums, in this order. The next call returns the
    /// following shares, so that shares that cannot give way protect no others, and each call has a bounded cost. Fewer
    /// than [`CANDIDATES`]: there are no more.
    pub(crate) fn candidates(&self, kind: Kind) -> Vec<Candidate> {
        self.ranked[kind as usize].lock().next_largest(CANDIDATES)
    }

    /// Largest sum of an owner.
    pub(crate) fn largest_sum(&self, kind: Kind) -> u64 {
        self.ranked[kind as usize].lock().largest_sum()
    }

    /// Keys of incomplete messages, in the order in which they give way.
    pub(crate) fn longest_held_messages(&self) -> Vec<u64> {
        self.ranked[Kind::Messages as usize].lock().longest_held(now())
    }

    /// True if the message of the client with this key gives way first.
    pub(crate) fn is_first_message(&self, key: u64) -> bool {
        self.longest_held_messages().first() == Some(&key)
    }

    /// One of the candidates has given way: the next call of [`Budgets::candidates`] begins with the largest share
    /// again.
    pub(crate) fn begin_again(&self, kind: Kind) {
        self.ranked[kind as usize].lock().begin_again();
    }

    /// True if `budget` may give way to `asker`, which is about to have `wanted`: its owner has more, or as much with a
    /// larger share.
    pub(crate) fn gives_way_to(&self, kind: Kind, budget: &Budget, asker: &Budget, wanted: u64) -> bool {
        let ranked = self.ranked[kind as usize].lock();
        match ranked.sum(budget.owner).cmp(&ranked.sum(asker.owner)) {
            Ordering::Greater => true,
            Ordering::Equal => budget.used(kind) > wanted,
            Ordering::Less => false,
        }
    }
}

/// An owner with less than this never gives way. HTTP/1 connections take memory and files for their bodies, too, and
/// have no rank: so even the owner with the largest ranked sum may have little.
fn least_of_owner(kind: usize, most: u64) -> u64 {
    let is_ranked_for_all = kind == Kind::Responses as usize || kind == Kind::Messages as usize;
    if is_ranked_for_all {
        0
    } else {
        most / 2
    }
}

/// Number of bits of a number: its rank.
fn bits(number: u64) -> u8 {
    (u64::BITS - number.leading_zeros()) as u8
}

/// Current time in units of 16 ns: 56 bits are enough for thirty years.
fn now() -> u64 {
    Nanos::now().to_number() / 16
}

impl Budget {
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Tells `eased` from now on when there is room again.
    pub(crate) fn tell(&self, eased: Weak<dyn Eased>) {
        let _ = self.eased.set(eased);
    }

    pub(crate) fn used(&self, kind: Kind) -> u64 {
        self.used[kind as usize].load(SeqCst)
    }

    /// Time since when it has had about as much as now, if this is ranked.
    pub(crate) fn held_since(&self, kind: Kind) -> Option<Millis> {
        let place = self.places[kind as usize].load(SeqCst);
        (place as u8 > 0).then(|| Nanos::from_number((place >> 8) * 16).rounded_up())
    }

    /// True if nothing more should be begun that uses this total.
    pub(crate) fn is_used_up(&self, kind: Kind) -> bool {
        self.used(kind) >= self.budgets.most[kind as usize]
    }

    /// True if it uses so much of this total that others gain by its end, whatever else its owner has.
    fn has_much(&self, kind: Kind) -> bool {
        let least = least_of_owner(kind as usize, self.budgets.most[kind as usize]);
        least > 0 && self.used(kind) >= least
    }

    /// Notes that a request begins.
    pub(crate) fn begin_request(&self) {
        self.requests.fetch_add(1, SeqCst);
    }

    /// Notes that a request has ended.
    pub(crate) fn end_request(&self) {
        let before = self.requests.fetch_sub(1, SeqCst);
        debug_assert!(before >= 1, "more requests ended than began");
        let had_many = before == FEW + 1;
        if had_many
            && [Kind::Responses, Kind::Files]
                .into_iter()
                .any(|kind| self.is_used_up(kind))
        {
            self.ease();
        }
    }

    /// Notes that a request is refused. Returns true for the first one after a while without any.
    pub(crate) fn begins_refusals(&self, now: Millis) -> bool {
        let last = self.refused.lock().replace(now);
        last.is_none_or(|last| now - last >= QUIET)
    }

    /// Total that is used up by responses that wait for the client. `None` if another request may begin.
    pub(crate) fn waits_for_client(&self) -> Option<Kind> {
        let mut kinds = [Kind::Responses, Kind::Files].into_iter();
        let used_up = kinds.find(|kind| self.is_used_up(*kind));
        used_up.filter(|_| self.requests.load(SeqCst) > FEW)
    }

    /// True if there is room for `more`.
    pub(crate) fn has_room(&self, kind: Kind, more: u64) -> bool {
        self.used(kind) + more <= self.budgets.most[kind as usize]
    }

    /// Takes an amount, even if it exceeds the limit.
    pub(crate) fn count(self: &Arc<Self>, kind: Kind, amount: u64) -> Share {
        self.used[kind as usize].fetch_add(amount, SeqCst);
        self.rank(kind);
        Share {
            budget: Arc::clone(self),
            kind,
            amount,
        }
    }

    /// Takes an amount, if there is room for it.
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
        debug_assert!(before >= amount, "{amount} of {before} of a budget were given back");
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

    /// Notes that the connection has ended. Its end does not release amounts that its running requests still have.
    pub(crate) fn close(&self) {
        self.is_retired.store(true, SeqCst);
        for kind in [
            Kind::Requests,
            Kind::Responses,
            Kind::Bodies,
            Kind::Files,
            Kind::Messages,
        ] {
            self.rank(kind);
        }
    }

    fn rank_of(&self, kind: Kind) -> u8 {
        match self.used(kind) {
            _ if self.is_retired.load(SeqCst) => 0,
            used if used < RANKED[kind as usize].min(self.budgets.most[kind as usize] / 2) => 0,
            used if self.has_much(kind) => MUCH | bits(used),
            used => bits(used),
        }
    }

    /// Updates the rank.
    fn rank(&self, kind: Kind) {
        let own = &self.places[kind as usize];
        if self.rank_of(kind) == own.load(SeqCst) as u8 {
            return;
        }
        let mut ranking = self.budgets.ranked[kind as usize].lock();
        // Another thread may have changed it meanwhile; the last thread to arrive here sees all changes.
        let (rank, before) = (self.rank_of(kind), own.load(SeqCst));
        if rank == before as u8 {
            return;
        }
        let place = |rank, since| Place {
            rank,
            since: Reverse(since),
            key: self.key,
        };
        let since = now();
        ranking.change(self.owner, place(before as u8, before >> 8), place(rank, since));
        own.store(since << 8 | u64::from(rank), SeqCst);
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
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// Changes the amount, even if it exceeds the limit.
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

    fn largest(budgets: &Budgets, kind: Kind) -> Vec<u64> {
        let candidates = budgets.candidates(kind).into_iter();
        candidates.map(|candidate| candidate.key).collect()
    }

    #[derive(Default)]
    struct Ear(AtomicUsize);

    impl Eased for Ear {
        fn eased(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_budget_is_a_part_of_each_total_and_at_least_what_a_session_needs() {
        let budget = Budgets::new([16 << 20, 80, 80, 80, 0]).budget(1);
        assert!(budget.take(Kind::Requests, (1 << 20) + 1).is_none());
        let all = budget.take(Kind::Requests, 1 << 20).expect("a sixteenth");
        assert!(budget.is_used_up(Kind::Requests) && budget.take(Kind::Requests, 1).is_none());
        assert!(budget.take(Kind::Responses, LEAST[1]).is_some());
        assert!(budget.take(Kind::Bodies, 10).is_some() && budget.take(Kind::Bodies, 11).is_none());
        drop(all);
        assert_eq!(budget.used(Kind::Requests), 0);
    }

    #[test]
    fn a_burst_of_refusals_is_told_once_for_each_session() {
        let budgets = Budgets::new([0; KINDS]);
        let (one, other) = (budgets.budget(1), budgets.budget(2));
        let begin = Millis::START + Duration::from_secs(10);
        let told = |budget: &Budget, milliseconds| budget.begins_refusals(begin + Duration::from_millis(milliseconds));
        assert!(told(&one, 0));
        assert!((1..20).all(|count| !told(&one, count * 900)));
        assert!(told(&other, 17_200), "another HTTP/2 connection");
        assert!(told(&one, 19 * 900 + 1_000));
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
        assert_eq!(largest(&budgets, Kind::Responses), [4, 2, 3]);
        shares[3].set(1);
        shares[0].set(80_000_000);
        assert_eq!(largest(&budgets, Kind::Responses), [1, 2, 3]);
        drop(shares);
        assert!(largest(&budgets, Kind::Responses).is_empty());
    }

    #[test]
    fn of_shares_of_one_rank_the_oldest_is_first() {
        let budgets = Budgets::new([0; KINDS]);
        let mut shares: Vec<Share> = [9, 5, 7]
            .iter()
            .map(|key| budgets.budget(*key).count(Kind::Responses, 70_000))
            .collect();
        assert_eq!(largest(&budgets, Kind::Responses), [9, 5, 7]);
        shares[0].set(100_000);
        assert_eq!(
            largest(&budgets, Kind::Responses),
            [9, 5, 7],
            "the new share has the same rank"
        );
        // Its client has taken most of it, and is sent more.
        shares[0].set(1);
        shares[0].set(70_000);
        assert_eq!(largest(&budgets, Kind::Responses), [5, 7, 9]);
    }

    #[test]
    fn messages_give_way_by_size_and_age() {
        let budgets = Budgets::new([0; KINDS]);
        let count = |key: u64, size: u64| {
            std::thread::sleep(Duration::from_millis(20));
            budgets.budget(key).count(Kind::Messages, size)
        };
        let held = count(1, 40_000);
        let _sent = count(2, 40_000);
        let _flood = (3..6).map(|key| count(key, 4_000_000)).collect::<Vec<_>>();
        assert_eq!(budgets.longest_held_messages(), [3, 1], "the oldest of each size");
        assert!(budgets.is_first_message(3));
        drop(held);
        assert_eq!(budgets.longest_held_messages()[1], 2);
    }

    #[test]
    fn messages_of_one_address_give_way_together() {
        let budgets = Budgets::new([0; KINDS]);
        let count = |owner: Owner, key: u64, size: u64| budgets.budget_of(owner, key).count(Kind::Messages, size);
        let _one = count(Owner::Network(1), 1, 1_000_000);
        std::thread::sleep(Duration::from_millis(20));
        let crowd: Vec<Share> = (2..202).map(|key| count(Owner::Network(2), key, 34_000)).collect();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            budgets.longest_held_messages(),
            [2, 1],
            "the oldest of those that have more together"
        );
        drop(crowd);
        assert_eq!(budgets.longest_held_messages(), [1]);
    }

    #[test]
    fn shares_that_cannot_give_way_hide_no_others() {
        let budgets = Budgets::new([0; KINDS]);
        let count = |key: u64| budgets.budget(key).count(Kind::Responses, 70_000);
        let _shares: Vec<Share> = (0..50).map(count).collect();
        let find = |wanted: u64| (1..).find(|_| largest(&budgets, Kind::Responses).contains(&wanted));
        assert_eq!(find(49), Some(7), "each call returns others");
        assert_eq!(largest(&budgets, Kind::Responses)[0], 0, "all were considered");
        budgets.begin_again(Kind::Responses);
        assert_eq!(largest(&budgets, Kind::Responses)[0], 0);
    }

    #[test]
    fn shares_that_never_give_way_are_no_candidates() {
        // Of requests an HTTP/2 connection may have 24 MiB, and gives way from 12 MiB on, which is no power of two.
        let budgets = Budgets::new([384 << 20, 0, 0, 0, 0]);
        let small: Vec<Arc<Budget>> = (10..30).map(|key| budgets.budget(key)).collect();
        let _small: Vec<Share> = small
            .iter()
            .map(|budget| budget.count(Kind::Requests, 11 << 20))
            .collect();
        let _large = budgets.budget(1).count(Kind::Requests, 13 << 20);
        assert_eq!(largest(&budgets, Kind::Requests), [1]);
    }

    #[test]
    fn sessions_of_one_address_are_candidates_if_they_have_much_together() {
        let budgets = Budgets::new([64 << 20, 0, 0, 0, 0]);
        let count = |owner: u64, key: u64, size: u64| {
            budgets
                .budget_of(Owner::Network(owner), key)
                .count(Kind::Requests, size)
        };
        let mut crowd: Vec<Share> = (10..50).map(|key| count(1, key, 300_000)).collect();
        let _little = count(2, 2, 1 << 20);
        let _large = count(3, 3, 3 << 20);
        assert_eq!(largest(&budgets, Kind::Requests)[0], 10);
        let of = |owner: u64| budgets.budget_of(Owner::Network(owner), 99);
        let gives_way_to = |owner: u64, asker: u64| budgets.gives_way_to(Kind::Requests, &of(owner), &of(asker), 1);
        assert!(gives_way_to(1, 3) && gives_way_to(3, 2) && gives_way_to(3, 4));
        assert!(!gives_way_to(3, 1));
        crowd.truncate(1);
        assert_eq!(largest(&budgets, Kind::Requests), [3]);
    }

    #[test]
    fn connections_that_have_ended_are_no_candidates() {
        let budgets = Budgets::new([0; KINDS]);
        let (gone, here) = (budgets.budget(1), budgets.budget(2));
        let _shares = [
            gone.count(Kind::Responses, 1 << 20),
            here.count(Kind::Responses, 1 << 18),
        ];
        gone.close();
        let _more = gone.count(Kind::Responses, 1 << 20);
        assert_eq!(largest(&budgets, Kind::Responses), [2]);
    }
}
