//! Finds the largest holder of a total, although one client may have any number of connections: each [`Owner`] with the
//! sum of its shares. An owner counts as one share of that sum, as old as its shares are on average. So many small
//! shares of one address protect each other no better than a large one does. For messages the product of size and age
//! counts: many addresses that hold a little for minutes do not displace a client that is sending.
//!
//! A share counts with its rank, a power of two: the sums change as seldom as the ranks, and no operation visits all
//! owners.

use super::budget::Place;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::ops::Bound::{self, Excluded, Unbounded};

/// Added to the rank of a share that may give way whatever else its owner has.
pub(super) const MUCH: u8 = 64;

/// Owner of shares that count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Clients of one network: usually of an address.
    Network(u64),
    /// A connection without an address.
    Key(u64),
}

/// Owners of shares of a kind.
#[derive(Debug, Default)]
pub(super) struct Holders {
    of: HashMap<Owner, Holder>,
    ranked: BTreeSet<Place<Owner>>,
    /// An owner with less never gives way, unless a share of it has [`MUCH`].
    least: u64,
    /// Last share that was considered, with its owner, if no share so far could give way.
    seen: Option<(Place<Owner>, Place<u64>)>,
}

/// A share that may give way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) key: u64,
    pub(crate) owner: Owner,
    /// Upper bound of the owner's sum; the sum is at least half of it.
    pub(crate) sum: u64,
    /// True if no other owner has more.
    pub(crate) is_of_first: bool,
}

/// Shares of one owner.
#[derive(Debug, Default)]
struct Holder {
    shares: BTreeSet<Place<u64>>,
    sum: u64,
    /// Number of its shares with [`MUCH`].
    much: usize,
    /// Sum of the start times of the shares, weighted by size: divided by `sum` it is their average.
    times: u128,
}

impl Holder {
    fn place(&self, owner: Owner) -> Option<Place<Owner>> {
        let since = self.times.checked_div(self.sum.into())?;
        Some(Place {
            rank: (u64::BITS - self.sum.leading_zeros()) as u8,
            since: Reverse(since as u64),
            key: owner,
        })
    }

    /// True if others gain by its end. The real sum of the shares is between half of `sum` and `sum`.
    fn is_large(&self, least: u64) -> bool {
        self.much > 0 || self.sum / 2 >= least
    }

    fn add(&mut self, share: Place<u64>) {
        self.sum += size(share.rank);
        self.much += usize::from(share.rank & MUCH > 0);
        self.times += u128::from(size(share.rank)) * u128::from(share.since.0);
        self.shares.insert(share);
    }

    fn remove(&mut self, share: Place<u64>) {
        if self.shares.remove(&share) {
            self.sum -= size(share.rank);
            self.much -= usize::from(share.rank & MUCH > 0);
            self.times -= u128::from(size(share.rank)) * u128::from(share.since.0);
        }
    }
}

/// Upper bound of the shares of a rank, and at most twice as large as any of them.
fn size(rank: u8) -> u64 {
    1 << (rank & !MUCH).min(48)
}

impl Holders {
    pub(super) fn new(least: u64) -> Holders {
        Holders {
            least,
            ..Holders::default()
        }
    }

    /// Moves a share of the owner to another place. Rank 0 means no share.
    pub(super) fn change(&mut self, owner: Owner, before: Place<u64>, now: Place<u64>) {
        let holder = self.of.entry(owner).or_default();
        let former = holder.place(owner);
        holder.remove(before);
        if now.rank > 0 {
            holder.add(now);
        }
        let (place, is_large) = (holder.place(owner), holder.is_large(self.least));
        if let Some(former) = former {
            self.ranked.remove(&former);
        }
        match place {
            Some(place) if is_large => _ = self.ranked.insert(place),
            Some(_) => {}
            None => _ = self.of.remove(&owner),
        }
    }

    /// Upper bound of an owner's sum; the sum is at least half of it.
    pub(super) fn sum(&self, owner: Owner) -> u64 {
        self.of.get(&owner).map_or(0, |holder| holder.sum)
    }

    /// Sum of the first owner.
    pub(super) fn largest_sum(&self) -> u64 {
        self.ranked.last().map_or(0, |first| self.sum(first.key))
    }

    /// Returns shares in the order in which they give way: the shares of the owner with the largest sum, the largest
    /// first, and so on. Each call continues after the previous one.
    pub(super) fn next_largest(&mut self, most: usize) -> Vec<Candidate> {
        let (first, behind) = match self.seen {
            Some((owner, share)) => (Some(owner), Excluded(share)),
            None => (None, Unbounded),
        };
        let same = first.into_iter().filter(|owner| self.ranked.contains(owner));
        let same = same.flat_map(|owner| iter::repeat(owner).zip(self.shares_of(owner, behind)));
        let owners = self.ranked.range((Unbounded, first.map_or(Unbounded, Excluded))).rev();
        let others = owners.flat_map(|owner| iter::repeat(*owner).zip(self.shares_of(*owner, Unbounded)));
        let found: Vec<_> = same.chain(others).take(most).collect();
        self.seen = found.last().copied().filter(|_| found.len() == most);
        let candidate = |(owner, share): &(Place<Owner>, Place<u64>)| Candidate {
            key: share.key,
            owner: owner.key,
            sum: self.sum(owner.key),
            is_of_first: self.ranked.last().is_some_and(|first| first.key == owner.key),
        };
        found.iter().map(candidate).collect()
    }

    /// Returns the largest first.
    fn shares_of(&self, owner: Place<Owner>, behind: Bound<Place<u64>>) -> impl Iterator<Item = Place<u64>> + '_ {
        let holder = self.of.get(&owner.key).into_iter();
        holder.flat_map(move |holder| holder.shares.range((Unbounded, behind)).rev().copied())
    }

    /// Makes the next call of [`Holders::next_largest`] begin with the largest share again.
    pub(super) fn begin_again(&mut self) {
        self.seen = None;
    }

    /// Keys of shares in the order in which they give way: owners, and the shares of each, in the order of size times
    /// age.
    pub(super) fn longest_held(&self, now: u64) -> Vec<u64> {
        let owners = longest_held(&self.ranked, now).into_iter();
        let shares = owners.filter_map(|owner| Some(longest_held(&self.of.get(&owner)?.shares, now)));
        shares.flatten().collect()
    }
}

/// The oldest place of each rank, in the order of size times age.
fn longest_held<K: Copy + Ord>(places: &BTreeSet<Place<K>>, now: u64) -> Vec<K> {
    let mut oldest = Vec::new();
    let mut last = places.last();
    while let Some(place) = last {
        let weight = (1u128 << place.rank) * u128::from(now.saturating_sub(place.since.0));
        oldest.push((weight, place.key));
        let before_its_rank = Place {
            since: Reverse(u64::MAX),
            ..*place
        };
        last = places.range(..before_its_rank).next_back();
    }
    oldest.sort_unstable_by(|one, other| other.cmp(one));
    oldest.into_iter().map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Place<u64> = place(0, 0, 0);

    const fn place(rank: u8, since: u64, key: u64) -> Place<u64> {
        Place {
            rank,
            since: Reverse(since),
            key,
        }
    }

    #[test]
    fn an_owner_with_many_small_shares_gives_way_before_one_with_a_large_share() {
        let mut holders = Holders::default();
        let (crowd, one) = (Owner::Network(1), Owner::Network(2));
        holders.change(one, NONE, place(20, 1_000, 999));
        for key in 0..100 {
            holders.change(crowd, NONE, place(16, 2_000 + key, key));
        }
        // The large share is older, too; the sum of the others is six times as large.
        assert_eq!(holders.longest_held(10_000), [0, 999]);
        for key in 0..98 {
            holders.change(crowd, place(16, 2_000 + key, key), NONE);
        }
        assert_eq!(holders.longest_held(10_000), [999, 98]);
    }

    #[test]
    fn of_one_owner_the_share_with_most_for_longest_is_first() {
        let mut holders = Holders::default();
        let owner = Owner::Key(7);
        for share in [place(16, 100, 1), place(16, 50, 2), place(20, 190, 3), place(18, 20, 4)] {
            holders.change(owner, NONE, share);
        }
        assert_eq!(holders.longest_held(200), [4, 3, 2]);
    }

    #[test]
    fn many_owners_that_hold_a_little_do_not_displace_one_that_sends() {
        let mut holders = Holders::default();
        holders.change(Owner::Network(1), NONE, place(20, 9_000, 1));
        for key in 2..50 {
            holders.change(Owner::Network(key), NONE, place(16, 1_000, key));
        }
        assert_eq!(
            holders.longest_held(9_100)[1],
            1,
            "the owner has more, but not for long"
        );
    }

    #[test]
    fn nothing_is_left_of_owners_without_shares() {
        let mut holders = Holders::default();
        let mut places: Vec<_> = (0..300).map(|key| place(10 + (key % 30) as u8, key, key)).collect();
        let owner = |key: u64| Owner::Network(key % 7);
        for share in &places {
            holders.change(owner(share.key), NONE, *share);
        }
        for share in &mut places {
            let grown = place(share.rank + 1, share.since.0 + 500, share.key);
            holders.change(owner(share.key), *share, grown);
            *share = grown;
        }
        assert_eq!((holders.of.len(), holders.ranked.len()), (7, 7));
        for share in &places {
            holders.change(owner(share.key), *share, NONE);
        }
        assert!(holders.of.is_empty() && holders.ranked.is_empty());
    }
}
