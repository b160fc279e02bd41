//! Connections of an engine: each has a slot here as long as it lives, and is in the slot while the reactor owns it.

use super::parked::Parked;
use super::place::Place;
use super::Connection;
use crate::clock::Millis;
use crate::stream::Stream;
use crate::sync::{Mutex, MutexGuard};
use crate::transport::listener::Endpoint;
use crate::transport::poller::{Interest, Key};
use crate::transport::Link;
use crate::worker::{Count, Worker};
use rustix::io::{self, Errno};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

pub(crate) struct Connections {
    me: Weak<Connections>,
    worker: Arc<Worker>,
    /// Locked only for moments, never while the app runs.
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

    /// Opens a connection that starts `now` with `peer` at the other end of its socket. The poller watches its
    /// transport for `interest` (`None`: not yet).
    ///
    /// # Errors
    /// If the transport cannot be watched.
    pub(crate) fn open(
        &self,
        transport: &Link,
        interest: Option<Interest>,
        endpoint: &Arc<Endpoint>,
        peer: Option<SocketAddr>,
        now: Millis,
    ) -> io::Result<Connection> {
        let key = self.parked().reserve();
        let place = Place::new(self.me.clone(), key, Some(Count::connection(&self.worker)));
        if self.worker.fault("watch a connection") {
            return Err(Errno::NOSPC);
        }
        match interest {
            Some(interest) => self.worker.poller.add(transport, key, interest)?,
            None => self.worker.poller.add_silent(transport, key)?,
        }
        self.parked().register(key, transport, interest);
        let config = &self.worker.config;
        let stream = Stream::new(Arc::clone(transport), Arc::clone(endpoint), peer, config);
        Ok(Connection::new(place, stream, now))
    }

    /// Opens a connection for one request of an HTTP/2 connection. Its transport reports its own events. `is_alone`:
    /// the HTTP/2 connection has no other request.
    pub(crate) fn open_stream(&self, stream: Stream, is_alone: bool, now: Millis) -> Connection {
        let mut parked = self.parked();
        let key = parked.reserve();
        parked.register(key, stream.transport(), None);
        drop(parked);
        let connection = Connection::new(Place::new(self.me.clone(), key, None), stream, now);
        connection.with_budget(is_alone)
    }

    /// Leaves a connection to the reactor until its next event or its deadline. Returns it, to be closed, if it cannot
    /// be watched or the engine has stopped.
    pub(crate) fn park(&self, mut connection: Box<Connection>, interest: Interest) -> Result<(), Box<Connection>> {
        let interest = match interest {
            Interest::Read if connection.stream.transport().holds_received() => Interest::ReadHeld,
            interest => interest,
        };
        let mut parked = self.parked();
        // Under the lock, as in `expire` and `hurry_idle`: a thread that searches for expired connections either finds
        // this one in its slot, or learns of its deadline afterwards.
        let deadline = self.deadline(&connection);
        self.worker.expect(deadline);
        if connection.stream.input.is_empty() {
            parked.keep_buffer(std::mem::take(&mut connection.stream.input));
            if connection.stream.output.is_empty() {
                parked.keep_buffer(connection.stream.output.take_buffer());
            }
        }
        // The lock is held until the connection is in its slot: an event may arrive at once, on another thread. A
        // thread that stops the engine marks it as stopped before it takes out the parked connections, so none is
        // parked unnoticed.
        if self.worker.is_stopped() || parked.want(connection.key(), interest, &self.worker.poller).is_err() {
            return Err(connection);
        }
        parked.put(connection, deadline);
        Ok(())
    }

    /// Time at which the reactor has to check a parked connection even without an event: its own deadline or the end of
    /// the drain.
    pub(crate) fn deadline(&self, connection: &Connection) -> Millis {
        let own = connection.deadline(&self.worker.config);
        match self.worker.drain_deadline() {
            Some(end) if connection.is_idle() => own.min(end),
            _ => own,
        }
    }

    /// Takes the connection that an event belongs to, and gives it buffers for the incoming bytes.
    pub(crate) fn take(&self, key: Key) -> Option<Box<Connection>> {
        let mut parked = self.parked();
        let mut connection = parked.take(key, &self.worker.poller)?;
        if connection.stream.input.capacity() == 0 {
            connection.stream.input = parked.spare_buffer();
            connection.stream.output.set_buffer(parked.spare_buffer());
        }
        Some(connection)
    }

    /// Closes idle connections at `deadline`, or earlier: called when draining begins, and when no worker is left to
    /// migrate them to.
    pub(crate) fn hurry_idle(&self, deadline: Millis) {
        self.worker.set_drain_deadline(deadline);
        let mut parked = self.parked();
        for connection in parked.take_all() {
            let deadline = self.deadline(&connection);
            parked.put(connection, deadline);
        }
        drop(parked);
        self.worker.expect(deadline);
    }
}
