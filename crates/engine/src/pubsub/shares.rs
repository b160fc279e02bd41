//! The number of subscriptions, or patterns, of each owner, and the owner with the most. An owner may have any number
//! of subscribers, so these count together. No operation looks at all of them.

use super::channels::Ids;
use super::subscriber::Subscriber;
use crate::limits::holders::Owner;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

/// An owner gives way only to an owner that would have less than a part (1/n) of its number, so that a small difference
/// ends no subscriber.
const MUCH_MORE: u64 = 2;

/// The part of each owner in one total.
#[derive(Default)]
pub(super) struct Shares {
    subscribers: HashMap<u64, Share, Ids>,
    owners: HashMap<Owner, u64>,
    ranked: BTreeSet<(u64, Owner)>,
    /// The subscribers of each owner, by their number of subscriptions; the last value is the id.
    within: BTreeSet<(Owner, u64, u64)>,
}

struct Share {
    subscriber: Weak<dyn Subscriber>,
    count: u64,
}

/// The owner with the largest part of a total.
pub struct Most {
    /// The subscriber of this owner with the most.
    pub subscriber: Arc<dyn Subscriber>,
    /// The number of all subscribers of this owner together.
    pub count: u64,
    /// True if it should give way to the refused subscriber.
    pub gives_way: bool,
}

impl Shares {
    /// Counts one more for a subscriber. A subscriber without an owner is not counted.
    pub(super) fn add(&mut self, subscriber: &Arc<dyn Subscriber>) {
        self.change(subscriber, |count| count + 1);
    }

    /// Counts one less for a subscriber.
    pub(super) fn remove(&mut self, subscriber: &Arc<dyn Subscriber>) {
        self.change(subscriber, |count| count.saturating_sub(1));
    }

    fn change(&mut self, subscriber: &Arc<dyn Subscriber>, new: impl Fn(u64) -> u64) {
        let (Some(owner), id) = (subscriber.owner(), subscriber.id()) else {
            return;
        };
        let share = self.subscribers.entry(id).or_insert_with(|| Share {
            subscriber: Arc::downgrade(subscriber),
            count: 0,
        });
        let (before, now) = (share.count, new(share.count));
        share.count = now;
        self.within.remove(&(owner, before, id));
        if now > 0 {
            self.within.insert((owner, now, id));
        } else {
            self.subscribers.remove(&id);
        }
        let of_all = self.owners.entry(owner).or_default();
        self.ranked.remove(&(*of_all, owner));
        *of_all = (*of_all + now).saturating_sub(before);
        match *of_all {
            0 => _ = self.owners.remove(&owner),
            count => _ = self.ranked.insert((count, owner)),
        }
    }

    /// The owner with the most; `newcomer` was refused because the total is used up.
    pub(super) fn most(&self, newcomer: &dyn Subscriber) -> Option<Most> {
        let (count, owner) = *self.ranked.last()?;
        let (_, _, id) = self.within.range(..=(owner, u64::MAX, u64::MAX)).next_back()?;
        let own = newcomer.owner().and_then(|own| self.owners.get(&own)).unwrap_or(&0);
        Some(Most {
            subscriber: self.subscribers.get(id)?.subscriber.upgrade()?,
            count,
            gives_way: count > MUCH_MORE * (own + 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::{Delivery, Publication};

    struct Of(Owner, u64);

    impl Subscriber for Of {
        fn id(&self) -> u64 {
            self.1
        }

        fn deliver(&self, _: &Arc<Publication>, _: Delivery) -> bool {
            false
        }

        fn flush(&self) {}

        fn is_open(&self) -> bool {
            true
        }

        fn owner(&self) -> Option<Owner> {
            Some(self.0)
        }
    }

    fn one(owner: Owner, id: u64) -> Arc<dyn Subscriber> {
        Arc::new(Of(owner, id))
    }

    fn most(shares: &Shares, newcomer: &Arc<dyn Subscriber>) -> Option<(u64, u64, bool)> {
        let most = shares.most(&**newcomer)?;
        Some((most.subscriber.id(), most.count, most.gives_way))
    }

    #[test]
    fn subscribers_of_one_owner_count_together() {
        let mut shares = Shares::default();
        let (large, other) = (one(Owner::Key(1), 1), one(Owner::Network(9), 2));
        let crowd: Vec<_> = (10..14).map(|id| one(Owner::Network(7), id)).collect();
        (0..5).for_each(|_| shares.add(&large));
        assert_eq!(most(&shares, &other), Some((1, 5, true)));
        crowd.iter().for_each(|member| (0..2).for_each(|_| shares.add(member)));
        shares.add(&crowd[1]);
        assert_eq!(
            most(&shares, &other),
            Some((11, 9, true)),
            "of these, the one with most"
        );
        assert_eq!(most(&shares, &crowd[0]), Some((11, 9, false)), "not to one of its own");
    }

    #[test]
    fn nobody_gives_way_to_those_with_half_as_much() {
        let mut shares = Shares::default();
        let (large, small) = (one(Owner::Key(1), 1), one(Owner::Key(2), 2));
        (0..7).for_each(|_| shares.add(&large));
        let more = |shares: &mut Shares| {
            let gives_way = most(shares, &small).is_some_and(|(_, _, gives_way)| gives_way);
            shares.add(&small);
            gives_way
        };
        assert_eq!([0; 4].map(|_| more(&mut shares)), [true, true, true, false]);
    }

    #[test]
    fn nothing_is_left_of_those_that_have_gone() {
        let mut shares = Shares::default();
        let all: Vec<_> = (0..50).map(|id| one(Owner::Network(id % 7), id)).collect();
        for round in 0..3 {
            all.iter().skip(round * 10).for_each(|one| shares.add(one));
        }
        assert_eq!(
            (shares.subscribers.len(), shares.owners.len(), shares.ranked.len()),
            (50, 7, 7)
        );
        for round in 0..3 {
            all.iter().skip(round * 10).for_each(|one| shares.remove(one));
        }
        assert!(shares.subscribers.is_empty() && shares.owners.is_empty());
        assert!(shares.ranked.is_empty() && shares.within.is_empty());
    }
}
