//! Connections that the reactor owns (idle, being read, being flushed), each with its deadline, and spare buffers.
//!
//! A connection keeps its key while a thread runs its request, so that its epoll registration stays unchanged. A key
//! carries a version, so an event for a closed connection has no effect.

use crate::agenda::{Agenda, MOST_OF_A_TURN};
use crate::clock::Millis;
use crate::connection::Connection;
use crate::spool::GivesWay;
use crate::stream::output::KEPT_CAPACITY;
use crate::transport::poller::{Interest, Key, Poller};
use crate::transport::Link;
use rustix::io;
use slotmap::{DefaultKey, DenseSlotMap, Key as _, KeyData};
use std::sync::Arc;
use std::time::Duration;

/// Spare buffers to keep.
const SPARE_BUFFERS: usize = 64;

struct ParkedSlot {
    /// Transport of the connection, and the events that the poller watches it for (`None`: none). They are here because
    /// the poller may have to silence the transport while a thread has the connection.
    transport: Option<Link>,
    interest: Option<Interest>,
    /// Time at which [`Connection::expire`] is called.
    deadline: Millis,
    /// Time for which the slot is in the agenda.
    noted: Millis,
    connection: Option<Box<Connection>>,
}

#[derive(Default)]
pub(crate) struct Parked {
    /// Dense, so that a walk passes no empty slots after a burst.
    slots: DenseSlotMap<DefaultKey, ParkedSlot>,
    agenda: Agenda<DefaultKey>,
    spare: Vec<Vec<u8>>,
}

impl Parked {
    /// Returns a key for a new connection.
    pub(crate) fn reserve(&mut self) -> Key {
        let slot = self.slots.insert(ParkedSlot {
            transport: None,
            interest: None,
            deadline: Millis::NEVER,
            noted: Millis::NEVER,
            connection: None,
        });
        slot.data().as_ffi()
    }

    /// Releases a key: later events for it are ignored. Returns the transport, which is still registered.
    pub(crate) fn release(&mut self, key: Key) -> Option<Link> {
        let key = slot(key);
        let slot = self.slots.remove(key)?;
        self.agenda.remove(key, slot.noted);
        debug_assert!(
            slot.connection.is_none(),
            "a connection has its key as long as it lives"
        );
        slot.transport
    }

    /// Stores the transport of a new connection and the events that the poller watches it for.
    pub(crate) fn register(&mut self, key: Key, transport: &Link, interest: Option<Interest>) {
        let slot = &mut self.slots[slot(key)];
        slot.transport = Some(Arc::clone(transport));
        slot.interest = interest;
    }

    /// Makes the poller watch a connection for `interest`; a system call only if that is a change.
    pub(crate) fn want(&mut self, key: Key, interest: Interest, poller: &Poller) -> io::Result<()> {
        let slot = &mut self.slots[slot(key)];
        if slot.interest != Some(interest) {
            if let Some(transport) = &slot.transport {
                transport.watch_for(interest, key, poller)?;
                slot.interest = Some(interest);
            }
        }
        Ok(())
    }

    /// Leaves the choice of events for a transport to another owner, so an event does not silence the transport.
    pub(crate) fn leave_interest(&mut self, key: Key) {
        if let Some(slot) = self.slots.get_mut(slot(key)) {
            slot.interest = None;
        }
    }

    /// Leaves a connection to the reactor until its next event or its deadline.
    pub(crate) fn put(&mut self, connection: Box<Connection>, deadline: Millis) {
        let key = slot(connection.key());
        let slot = &mut self.slots[key];
        slot.deadline = deadline;
        slot.noted = self.agenda.note(key, slot.noted, deadline);
        slot.connection = Some(connection);
    }

    /// Takes the connection that an event belongs to. If a thread has the connection, its events wait until it is
    /// parked again.
    pub(crate) fn take(&mut self, key: Key, poller: &Poller) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(slot(key))?;
        if slot.connection.is_none() && slot.interest.take().is_some() {
            slot.transport.as_ref()?.silence(key, poller);
        }
        slot.connection.take()
    }

    /// Takes the connection with that key if it is parked and `is_it` returns true.
    pub(crate) fn take_if(&mut self, key: Key, is_it: impl Fn(&Connection) -> bool) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(slot(key))?;
        let is_there = slot.connection.as_deref().is_some_and(is_it);
        is_there.then(|| slot.connection.take()).flatten()
    }

    /// Takes the connection with that key if it is parked and has to give way; see [`Connection::gives_way`].
    ///
    /// # Errors
    /// If it need not give way, or this is not known yet.
    pub(crate) fn take_to_give_way(
        &mut self,
        key: Key,
        limit: Option<Duration>,
        now: Millis,
    ) -> Result<Box<Connection>, GivesWay> {
        let place = self.slots.get_mut(slot(key)).map(|slot| &mut slot.connection);
        let place = place.ok_or(GivesWay::No)?;
        match place
            .as_mut()
            .map_or(GivesWay::No, |connection| connection.gives_way(limit, now))
        {
            GivesWay::Yes => place.take().ok_or(GivesWay::No),
            verdict => Err(verdict),
        }
    }

    /// Takes connections with a deadline in the past; returns them and a time before which no other one passes. If that
    /// time is not after `now`, more of them may have expired.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(crate) fn take_expired(&mut self, now: Millis) -> (Vec<Box<Connection>>, Millis) {
        let mut expired = Vec::new();
        let due = (0..MOST_OF_A_TURN).map_while(|_| self.agenda.take_due(now));
        let due: Vec<_> = due.collect();
        for key in due {
            let Some(slot) = self.slots.get_mut(key) else { continue };
            slot.noted = Millis::NEVER;
            // A connection that a thread has is noted again when it is parked.
            let Some(connection) = &mut slot.connection else {
                continue;
            };
            if slot.deadline <= now {
                slot.deadline = connection.next_deadline(now).unwrap_or(slot.deadline);
            }
            if slot.deadline <= now {
                expired.extend(slot.connection.take());
            } else {
                slot.noted = self.agenda.note(key, Millis::NEVER, slot.deadline);
            }
        }
        (expired, self.agenda.first())
    }

    /// Takes the parked connection with the largest `measure`, and returns the measure, too. Skips connections without
    /// one.
    pub(crate) fn take_worst<T: Ord>(
        &mut self,
        measure: impl Fn(&Connection) -> Option<T>,
    ) -> Option<(Box<Connection>, T)> {
        let measured = self.slots.values_mut().filter_map(|slot| {
            let most = measure(slot.connection.as_ref()?)?;
            Some((slot, most))
        });
        let (slot, most) = measured.max_by(|(_, one), (_, other)| one.cmp(other))?;
        Some((slot.connection.take()?, most))
    }

    /// Offers more data to the clients that hold memory: the poller does not report clients that take little.
    pub(crate) fn offer_more(&mut self) {
        let slots = self.slots.values_mut();
        slots
            .filter_map(|slot| slot.connection.as_mut())
            .for_each(|connection| connection.offer_more());
    }

    /// Takes up to `most` parked connections for which `is_one` returns true. They keep the events that the poller
    /// watches them for.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(crate) fn take_some(&mut self, most: usize, is_one: impl Fn(&Connection) -> bool) -> Vec<Box<Connection>> {
        let slots = self.slots.values_mut();
        let found = slots.filter(|slot| slot.connection.as_deref().is_some_and(&is_one));
        found.take(most).filter_map(|slot| slot.connection.take()).collect()
    }

    /// True if `is_one` returns true for a parked connection.
    pub(crate) fn any(&self, is_one: impl Fn(&Connection) -> bool) -> bool {
        self.slots
            .values()
            .any(|slot| slot.connection.as_deref().is_some_and(&is_one))
    }

    /// Takes every parked connection.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(crate) fn take_all(&mut self) -> Vec<Box<Connection>> {
        self.slots
            .values_mut()
            .filter_map(|slot| slot.connection.take())
            .collect()
    }

    /// Frees memory that a burst has left. The slots stay, because of their versions.
    pub(crate) fn shrink(&mut self) {
        self.spare = Vec::new();
    }

    /// Returns an empty buffer, with capacity if there is a spare one.
    pub(crate) fn spare_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps a buffer for a later request of any connection.
    pub(crate) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        if (1..=KEPT_CAPACITY).contains(&buffer.capacity()) && self.spare.len() < SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

fn slot(key: Key) -> DefaultKey {
    KeyData::from_ffi(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::least_time;
    use crate::transport::poller::EventBuffer;
    use crate::transport::Socket;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// So many slots with a deadline.
    fn with_deadlines(count: usize, deadline: Millis) -> Parked {
        let mut parked = Parked::default();
        for _ in 0..count {
            let key = slot(parked.reserve());
            let slot = &mut parked.slots[key];
            (slot.deadline, slot.noted) = (deadline, parked.agenda.note(key, Millis::NEVER, deadline));
        }
        parked
    }

    #[test]
    fn a_turn_looks_at_a_part_of_many_passed_deadlines() {
        let now = Millis::now();
        let mut parked = with_deadlines(2 * MOST_OF_A_TURN + 1, now);
        let mut first_left = || parked.take_expired(now).1;
        assert_eq!([first_left(), first_left(), first_left()], [now, now, Millis::NEVER]);
    }

    #[test]
    fn a_search_for_passed_deadlines_passes_no_other_slots() {
        let time = |count: usize| {
            let later = Millis::now() + Duration::from_secs(60);
            let mut parked = with_deadlines(count, later);
            least_time(|| (0..100).for_each(|_| assert_eq!(parked.take_expired(Millis::now()).1, later)))
        };
        let (few, many) = (time(10), time(20_000));
        assert!(many < few * 20, "{many:?} with many, {few:?} with few");
    }

    #[test]
    fn a_walk_passes_no_slots_that_are_empty_after_a_burst() {
        let time = |burst: usize| {
            let mut parked = Parked::default();
            let keys: Vec<_> = (0..burst).map(|_| parked.reserve()).collect();
            keys.into_iter().for_each(|key| _ = parked.release(key));
            parked.reserve();
            least_time(|| (0..100).for_each(|_| assert!(!parked.any(|_| true))))
        };
        let (before, after) = (time(1), time(20_000));
        assert!(after < before * 20, "{after:?} after a burst, {before:?} before");
    }

    #[test]
    fn an_event_on_its_way_does_not_silence_a_transport_that_somebody_else_watches() {
        const OTHERS: Key = 1 << 30;
        let (socket, mut peer) = UnixStream::pair().expect("sockets");
        let transport: Link = Arc::new(Socket::uncounted(socket.into()));
        let (poller, mut parked) = (Poller::new().expect("a poller"), Parked::default());
        let key = parked.reserve();
        parked.register(key, &transport, Some(Interest::Read));
        poller
            .add(&transport, key, Interest::Read)
            .expect("a watched transport");

        parked.leave_interest(key);
        poller
            .change_client(&transport, key | OTHERS, true, false)
            .expect("a watched transport");
        assert!(parked.take(key, &poller).is_none());

        peer.write_all(b"more").expect("an open socket");
        let mut space = EventBuffer::new();
        let seen = poller.wait(&mut space, Some(Duration::from_secs(10))).expect("a poll");
        assert_eq!(seen.map(|event| event.token()).collect::<Vec<_>>(), [key | OTHERS]);
    }
}
