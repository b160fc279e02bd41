//! The clients of an engine, each at a place of its own. A client's key is also its poller token; it carries a generation,
//! so that an event for one that is gone finds nobody.

use super::client::Client;
use crate::engine::Engine;
use crate::reactor::parked::{Key, NEVER};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

/// Set in the keys of clients, and in no key of a connection.
const CLIENT: u64 = 1 << 63;

/// Clients are looked after no more often than this.
const STEP_MILLISECONDS: u64 = 250;

/// Whether a poller token is a client's.
pub(crate) fn is_client(token: u64) -> bool {
    token & CLIENT != 0
}

#[derive(Default)]
struct Entry {
    generation: u32,
    client: Option<Arc<Client>>,
}

#[derive(Default)]
struct Table {
    places: Vec<Entry>,
    free: Vec<u32>,
}

pub(crate) struct Clients {
    places: Mutex<Table>,
    /// Milliseconds before which nothing is due: a lower bound.
    due: AtomicU64,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            places: Mutex::default(),
            due: AtomicU64::new(NEVER),
        }
    }
}

impl Clients {
    /// A key for a new client.
    pub(super) fn reserve(&self) -> Key {
        let mut places = self.places.lock();
        let index = places.free.pop().unwrap_or_else(|| {
            places.places.push(Entry::default());
            (places.places.len() - 1) as u32
        });
        CLIENT | u64::from(places.places[index as usize].generation) << 32 | u64::from(index)
    }

    pub(super) fn put(&self, client: &Arc<Client>) {
        self.places.lock().places[client.key as u32 as usize].client = Some(Arc::clone(client));
    }

    pub(crate) fn get(&self, token: u64) -> Option<Arc<Client>> {
        let places = self.places.lock();
        let place = places.places.get(token as u32 as usize)?;
        place.client.as_ref().filter(|client| client.key == token).cloned()
    }

    /// Gives a key back; false when that has happened already.
    pub(super) fn release(&self, key: Key) -> bool {
        let mut places = self.places.lock();
        let index = key as u32;
        let place = &mut places.places[index as usize];
        let is_there = place.client.as_ref().is_some_and(|client| client.key == key);
        if is_there {
            place.generation = place.generation.wrapping_add(1) & 0x3fff_ffff;
            place.client = None;
            places.free.push(index);
        }
        is_there
    }

    /// Every client that is not gone.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        let places = self.places.lock();
        places.places.iter().filter_map(|place| place.client.clone()).collect()
    }

    /// Looks after every client, if something is due; returns when to do so again, in milliseconds.
    pub(crate) fn tick(&self, engine: &Engine, now: u64) -> u64 {
        let due = self.due.load(SeqCst);
        if due > now {
            return due;
        }
        // What is expected from here on counts from scratch, so that nothing is forgotten while this thread looks.
        self.due.store(NEVER, SeqCst);
        let earliest = self.all().iter().map(|client| client.tick(engine, now)).min();
        let earliest = match earliest {
            None | Some(NEVER) => NEVER,
            Some(earliest) => earliest.max(now + STEP_MILLISECONDS),
        };
        self.due.fetch_min(earliest, SeqCst).min(earliest)
    }
}

impl Engine {
    /// Makes sure that the clients are looked after at `deadline`.
    pub(super) fn expect_client(&self, deadline: u64) {
        self.clients.due.fetch_min(deadline, SeqCst);
        self.timer.expect(deadline, &self.poller);
    }
}
