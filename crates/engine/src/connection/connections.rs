//! The connections of an engine: each has a place here as long as it lives, and lies in it while the reactor owns it.

use super::parked::Parked;
use super::place::Place;
use super::Connection;
use crate::clock::Millis;
use crate::stream::Stream;
use crate::transport::listener::Origin;
use crate::transport::poller::{Interest, Key};
use crate::transport::Link;
use crate::worker::Worker;
use parking_lot::{Mutex, MutexGuard};
use rustix::io::{self, Errno};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

pub(crate) struct Connections {
    me: Weak<Connections>,
    worker: Arc<Worker>,
    /// Held for moments only, never while an app runs.
    parked: Mutex<Parked>,
}

impl Connections {
    pub(crate) fn new(worker: Arc<Worker>) -> Arc<Connections> {
        Arc::new_cyclic(|me| Connections {
            me: me.clone(),
            worker,
            parked: Mutex::default(),
        })
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(crate) fn parked(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock()
    }

    /// A connection that begins `now`, of whose transport the poller wants `interest` (`None`: nothing yet).
    ///
    /// # Errors
    /// If the transport cannot be watched.
    pub(crate) fn open(
        &self,
        transport: &Link,
        interest: Option<Interest>,
        origin: &Arc<Origin>,
        peer: Option<SocketAddr>,
        now: Millis,
    ) -> io::Result<Connection> {
        let key = self.parked().reserve();
        self.worker.counters().connections.fetch_add(1, Relaxed);
        let place = Place::new(self.me.clone(), key);
        if self.worker.fault("watch a connection") {
            return Err(Errno::NOSPC);
        }
        match interest {
            Some(interest) => self.worker.poller.add(transport, key, interest)?,
            None => self.worker.poller.add_silent(transport, key)?,
        }
        self.parked().register(key, transport, interest);
        let stream = Stream::new(Arc::clone(transport), Arc::clone(origin), peer);
        Ok(Connection::new(place, stream, now))
    }

    /// Lets the reactor own a connection until its next event, or its deadline. It comes back, to be closed, if it cannot be
    /// watched or the engine has stopped.
    pub(crate) fn park(&self, mut connection: Box<Connection>, interest: Interest) -> Result<(), Box<Connection>> {
        let mut parked = self.parked();
        // With the lock, as in `expire` and `hurry_idle`: who looks for what is due finds the connection in its place or is
        // told of it afterwards.
        let mut deadline = connection.deadline(&self.worker.config);
        if connection.is_idle() {
            deadline = deadline.min(self.worker.drain_deadline().unwrap_or(deadline));
        }
        self.worker.expect(deadline);
        if connection.stream.input.is_empty() {
            parked.keep_buffer(std::mem::take(&mut connection.stream.input));
            if connection.stream.output.is_empty() {
                parked.keep_buffer(connection.stream.output.take_buffer());
            }
        }
        // The lock is held until the connection is in its place: an event may come at once, to another thread.
        // Whoever stops the engine marks it first and takes out the parked connections then, so nothing is put there unseen.
        if self.worker.is_stopped() || parked.want(connection.key(), interest, &self.worker.poller).is_err() {
            return Err(connection);
        }
        parked.put(connection, deadline);
        Ok(())
    }

    /// Takes the connection that an event belongs to, with buffers for what comes.
    pub(crate) fn take(&self, key: Key) -> Option<Box<Connection>> {
        let mut parked = self.parked();
        let mut connection = parked.take(key, &self.worker.poller)?;
        if connection.stream.input.capacity() == 0 {
            connection.stream.input = parked.spare_buffer();
            connection.stream.output.set_buffer(parked.spare_buffer());
        }
        Some(connection)
    }

    /// Lets idle connections go by `deadline`: called once, when draining begins.
    pub(crate) fn hurry_idle(&self, deadline: Millis) {
        self.worker.set_drain_deadline(deadline);
        let mut parked = self.parked();
        for connection in parked.take_all() {
            let own = connection.deadline(&self.worker.config);
            let deadline = if connection.is_idle() { own.min(deadline) } else { own };
            parked.put(connection, deadline);
        }
        drop(parked);
        self.worker.expect(deadline);
    }
}
