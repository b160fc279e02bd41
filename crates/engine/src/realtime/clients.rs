//! The clients of an engine. A client's key is also its poller token. It contains a version, so an event for a closed
//! client finds nothing.

use super::client::Client;
use super::Realtime;
use crate::clock::{AtomicMillis, Millis};
use crate::sync::Mutex;
use crate::transport::poller::Key;
use slotmap::{DefaultKey, Key as _, KeyData, SlotMap};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::time::Duration;

/// Set in the keys of clients, and in no key of a connection: the highest bit of an index.
const CLIENT: u64 = 1 << 31;

/// Minimum time between two checks of all clients.
const STEP: Duration = Duration::from_millis(250);

/// Returns true if a poller token belongs to a client.
pub(crate) fn is_client(token: u64) -> bool {
    token & CLIENT != 0
}

pub(crate) struct Clients {
    /// `None` for a client that has a key, but does not exist yet.
    slots: Mutex<SlotMap<DefaultKey, Option<Arc<Client>>>>,
    /// A lower bound of all deadlines.
    due: AtomicMillis,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            slots: Mutex::default(),
            due: AtomicMillis::new(Millis::NEVER),
        }
    }
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
        self.slots.lock().remove(slot(key)).is_some()
    }

    /// Every client that has not been released.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.slots.lock().values().flatten().cloned().collect()
    }

    /// Makes sure that [`Clients::tick`] checks the clients at `deadline`.
    pub(super) fn expect(&self, deadline: Millis) {
        self.due.fetch_min(deadline, SeqCst);
    }

    /// Checks every client, if a deadline has passed; returns the time of the next check.
    pub(crate) fn tick(&self, realtime: &Realtime, now: Millis) -> Millis {
        let due = self.due.load(SeqCst);
        if due > now {
            return due;
        }
        // Deadlines that other threads set from here on are kept, because the bound is reset before the clients are
        // checked.
        self.due.store(Millis::NEVER, SeqCst);
        let earliest = self.all().iter().map(|client| client.tick(realtime, now)).min();
        let earliest = match earliest {
            None | Some(Millis::NEVER) => Millis::NEVER,
            Some(earliest) => earliest.max(now + STEP),
        };
        self.due.fetch_min(earliest, SeqCst).min(earliest)
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
