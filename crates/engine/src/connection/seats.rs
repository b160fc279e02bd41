//! Connections in their TLS handshakes, and the choice of the connection that gives way when there are too many.
//!
//! A peer that begins a handshake and stops costs memory. An honest peer sends its first message (ClientHello) at once,
//! at any distance. So a connection without a complete first message gives way first: the oldest such connection of the
//! network that has most of them. Two rules protect such connections from strangers with complete messages: a network
//! with [`FAR_MORE`] times as many complete ones gives way itself, and a single incomplete one has a grace period of
//! [`GRACE`].

use super::handshake::HandshakeSeat;
use crate::clock::Millis;
use crate::config::fair_by::network;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const FAR_MORE: usize = 8;

/// Longer than the rest of a ClientHello takes if it comes in two packets, or has to wait for its turn.
const GRACE: Duration = Duration::from_millis(50);

/// Handshake slots of a worker.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    places: HashMap<Key, Place>,
    /// Without a complete ClientHello, and with one.
    crowds: [Crowd; 2],
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    network: Option<u64>,
    number: u64,
    since: Millis,
    has_hello: bool,
}

/// Slots by network.
#[derive(Debug, Default)]
struct Crowd {
    networks: HashMap<Option<u64>, BTreeSet<(u64, Key)>>,
    /// The largest network is last; among equal ones, the network with the oldest slot.
    order: BTreeSet<Rank>,
}

/// Number of slots of a network, and its oldest one.
type Rank = (usize, Reverse<(u64, Key)>, Option<u64>);

impl Seats {
    /// Takes a slot for a connection.
    pub(crate) fn take(self: &Arc<Seats>, key: Key, address: Option<IpAddr>, now: Millis) -> HandshakeSeat {
        let mut book = self.0.lock();
        book.last += 1;
        let place = Place {
            network: address.map(network),
            number: book.last,
            since: now,
            has_hello: false,
        };
        book.enter(key, place);
        HandshakeSeat::new(Arc::clone(self), key)
    }

    /// If `most` slots are taken, takes one away for a new connection; returns the key of the connection that loses it.
    pub(crate) fn displace(&self, most: usize, now: Millis) -> Option<Key> {
        let mut book = self.0.lock();
        if book.places.len() < most {
            return None;
        }
        let key = book.least_deserving(now)?;
        book.leave(key);
        Some(key)
    }

    /// True if the connection still has its slot.
    pub(super) fn has(&self, key: Key) -> bool {
        self.0.lock().places.contains_key(&key)
    }

    pub(super) fn leave(&self, key: Key) {
        self.0.lock().leave(key);
    }

    /// Notes that the ClientHello is complete.
    pub(super) fn note_hello(&self, key: Key) {
        self.0.lock().change(key, |place| place.has_hello = true);
    }

    /// Notes the client's address, which a proxy has reported.
    pub(super) fn identify(&self, key: Key, address: Option<IpAddr>) {
        self.0.lock().change(key, |place| place.network = address.map(network));
    }
}

impl Book {
    /// The connection that gives way next; see the head of this file.
    fn least_deserving(&self, now: Millis) -> Option<Key> {
        let [without, with] = self.crowds.each_ref().map(Crowd::largest);
        match (without, with) {
            (Some((few, _)), Some((many, key))) if many > FAR_MORE * few => Some(key),
            (Some((1, key)), Some((_, other))) => {
                let is_new = now - self.places.get(&key)?.since < GRACE;
                Some(if is_new { other } else { key })
            }
            (without, with) => without.or(with).map(|(_, key)| key),
        }
    }

    fn enter(&mut self, key: Key, place: Place) {
        self.places.insert(key, place);
        self.crowds[usize::from(place.has_hello)].update(place.network, |seats| _ = seats.insert((place.number, key)));
    }

    fn leave(&mut self, key: Key) -> Option<Place> {
        let place = self.places.remove(&key)?;
        self.crowds[usize::from(place.has_hello)].update(place.network, |seats| _ = seats.remove(&(place.number, key)));
        Some(place)
    }

    fn change(&mut self, key: Key, change: impl FnOnce(&mut Place)) {
        if let Some(mut place) = self.leave(key) {
            change(&mut place);
            self.enter(key, place);
        }
    }
}

impl Crowd {
    /// Number of slots of the largest network, and its oldest one.
    fn largest(&self) -> Option<(usize, Key)> {
        let (count, Reverse((_, key)), _) = self.order.last()?;
        Some((*count, *key))
    }

    fn update(&mut self, network: Option<u64>, change: impl FnOnce(&mut BTreeSet<(u64, Key)>)) {
        let seats = self.networks.entry(network).or_default();
        if let Some(rank) = rank(network, seats) {
            self.order.remove(&rank);
        }
        change(seats);
        match rank(network, seats) {
            Some(rank) => _ = self.order.insert(rank),
            None => _ = self.networks.remove(&network),
        }
    }
}

fn rank(network: Option<u64>, seats: &BTreeSet<(u64, Key)>) -> Option<Rank> {
    Some((seats.len(), Reverse(*seats.first()?), network))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    const LATER: Duration = Duration::from_secs(1);

    /// Takes slots 1, 2, … for these addresses.
    fn taken(seats: &Arc<Seats>, addresses: &[u8]) -> Vec<HandshakeSeat> {
        let take = |(index, last): (usize, &u8)| seats.take(index as Key + 1, address(*last), Millis::START);
        addresses.iter().enumerate().map(take).collect()
    }

    fn displace(seats: &Seats, most: usize) -> Option<Key> {
        seats.displace(most, Millis::START + LATER)
    }

    #[test]
    fn an_incomplete_hello_gives_way_first() {
        let seats = Arc::new(Seats::default());
        let kept = taken(&seats, &[1, 2, 3, 4]);
        assert_eq!(displace(&seats, 5), None);
        kept[0].note_hello();
        kept[1].note_hello();
        assert_eq!(displace(&seats, 4), Some(3), "the oldest without one");
        assert!(kept[0].is_kept() && !kept[2].is_kept());
        assert_eq!(displace(&seats, 3), Some(4));
        assert_eq!(displace(&seats, 2), Some(1), "all others have a complete ClientHello");
    }

    #[test]
    fn the_network_with_most_gives_way_before_others() {
        let seats = Arc::new(Seats::default());
        let _kept = taken(&seats, &[1, 2, 2, 2, 2]);
        let displaced: Vec<_> = (1..=5).rev().filter_map(|most| displace(&seats, most)).collect();
        assert_eq!(displaced, [2, 3, 4, 1, 5], "the oldest of equal ones");
    }

    #[test]
    fn complete_hellos_of_others_lock_nobody_out() {
        let seats = Arc::new(Seats::default());
        let mut attackers = taken(&seats, &[1; 9]);
        attackers.iter().for_each(HandshakeSeat::note_hello);
        let late = seats.take(10, address(2), Millis::START);
        assert_eq!(displace(&seats, 10), Some(1), "one network has far more");
        attackers.truncate(3);
        assert_eq!(seats.displace(3, Millis::START), Some(2), "the other one is new");
        assert_eq!(displace(&seats, 2), Some(10), "its grace period is over");
        drop((attackers, late));
        let book = seats.0.lock();
        assert!(book.places.is_empty() && book.crowds.iter().all(|crowd| crowd.networks.is_empty()));
    }

    #[test]
    fn a_seat_counts_for_whom_a_proxy_names() {
        let seats = Arc::new(Seats::default());
        let kept = taken(&seats, &[9; 4]);
        kept[2].identify(address(3));
        kept[3].identify(address(3));
        kept[0].identify(address(1));
        assert_eq!(displace(&seats, 4), Some(3));
        kept[1].identify(None);
        kept[1].identify(address(1));
        assert_eq!(displace(&seats, 3), Some(1));
    }
}
