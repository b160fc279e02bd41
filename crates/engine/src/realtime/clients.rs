//! The clients of an engine. A client's key is also its poller token. It contains a version, so an event for a closed
//! client finds nothing.

use super::client::Client;
use super::Realtime;
use crate::agenda::{Agenda, MOST_OF_A_TURN};
use crate::clock::Millis;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use slotmap::{DefaultKey, DenseSlotMap, Key as _, KeyData};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::time::Duration;

/// Set in the keys of clients, and in no key of a connection: the highest bit of an index.
const CLIENT: u64 = 1 << 31;

/// Minimum time between two checks of a client.
const STEP: Duration = Duration::from_millis(250);

/// Returns true if a poller token belongs to a client.
pub(crate) fn is_client(token: u64) -> bool {
    token & CLIENT != 0
}

#[derive(Default)]
pub(crate) struct Clients {
    /// `None` for a client that has a key, but does not exist yet. Dense, so that a walk passes no empty slots after a
    /// burst.
    slots: Mutex<DenseSlotMap<DefaultKey, Option<Arc<Client>>>>,
    /// Locked before the slots, if both are.
    agenda: Mutex<Agenda<Key>>,
    /// Clients that are not in the agenda, because they are about to be checked. After a panic the next check begins with
    /// the rest.
    due: Mutex<Vec<Arc<Client>>>,
}

impl Clients {
    /// A key for a new client.
    pub(super) fn reserve(&self) -> Key {
        CLIENT | self.slots.lock().insert(None).data().as_ffi()
    }

    pub(super) fn put(&self, client: &Arc<Client>) {
        self.slots.lock()[slot(client.key)] = Some(Arc::clone(client));
    }

    pub(crate) fn get(&self, token: u64) -> Option<Arc<Client>> {
        self.slots.lock().get(slot(token))?.clone()
    }

    /// Gives a key back. Returns false if that has happened already.
    pub(super) fn release(&self, key: Key) -> bool {
        let Some(released) = self.slots.lock().remove(slot(key)) else {
            return false;
        };
        if let Some(client) = released {
            let mut agenda = self.agenda.lock();
            agenda.remove(key, client.noted.load(SeqCst));
            client.noted.store(Millis::NEVER, SeqCst);
        }
        true
    }

    /// Every client that has not been released.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.slots.lock().values().flatten().cloned().collect()
    }

    /// Makes sure that [`Clients::tick`] checks the client at `deadline`. Costs a comparison in the usual case.
    pub(super) fn expect(&self, client: &Client, deadline: Millis) {
        if deadline < client.noted.load(SeqCst) {
            let mut agenda = self.agenda.lock();
            let noted = agenda.note(client.key, client.noted.load(SeqCst), deadline);
            client.noted.store(noted, SeqCst);
        }
    }

    /// Checks clients with a deadline that may have passed; returns the time of the next check, which is `now` if more of
    /// them have to be checked.
    pub(crate) fn tick(&self, realtime: &Realtime, now: Millis) -> Millis {
        let due = self.take_due(now);
        self.due.lock().extend(due);
        let next_due = || self.due.lock().pop();
        for client in (0..MOST_OF_A_TURN).map_while(|_| next_due()) {
            let next = client.tick(realtime, now);
            self.expect(&client, next.max(now + STEP));
        }
        if self.due.lock().is_empty() {
            self.agenda.lock().first()
        } else {
            now
        }
    }

    /// Takes the clients that are noted for `now` or earlier. A deadline that another thread sets from here on is noted.
    fn take_due(&self, now: Millis) -> Vec<Arc<Client>> {
        let mut agenda = self.agenda.lock();
        let due = std::iter::from_fn(|| agenda.take_due(now));
        let due = due.filter_map(|key| self.get(key));
        due.inspect(|client| client.noted.store(Millis::NEVER, SeqCst))
            .collect()
    }
}

/// The index of a client's slot: a small number.
pub(super) fn index(key: Key) -> usize {
    (key & !CLIENT) as u32 as usize
}

fn slot(key: Key) -> DefaultKey {
    KeyData::from_ffi(key & !CLIENT).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_reused_but_their_slots_are() {
        let clients = Clients::default();
        let (first, second) = (clients.reserve(), clients.reserve());
        assert!(is_client(first) && is_client(second));
        assert!(clients.release(first) && !clients.release(first));
        let third = clients.reserve();
        assert!(third != first && third != second);
        assert_eq!(index(third), index(first));
        assert!(index(second) <= 2, "the table grows only with the number of clients");
    }

    #[test]
    fn a_released_key_finds_no_client() {
        let clients = Clients::default();
        let key = clients.reserve();
        clients.release(key);
        clients.reserve();
        assert!(clients.get(key).is_none());
    }
}
