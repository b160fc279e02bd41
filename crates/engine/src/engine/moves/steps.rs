//! Steps of connections and clients, after an event or a timeout.

use super::Moves;
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::engine::http2::Streams;
use crate::engine::job::Job;
use crate::engine::record;
use crate::realtime::{is_client, Client};
use crate::transport::poller::{Happened, Interest, Key};
use std::sync::Arc;

impl Streams for Moves {
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis) {
        if !is_client(key) {
            return self.step_connection(key, scratch, now);
        }
        if let Some(client) = self.parts.services.realtime.clients().get(key) {
            self.step_client(&client, happened, scratch, now);
        }
    }
}

impl Moves {
    fn step_connection(&self, key: Key, scratch: &mut [u8], now: Millis) {
        let worker = &self.parts.worker;
        let Some(mut connection) = self.parts.connections.take(key) else {
            return;
        };
        worker.guard("a connection", || {
            worker.fault("step");
            let next = connection.step(scratch, &worker.config, now);
            self.settle(connection, next);
        });
    }

    pub(in crate::engine) fn step_client(
        &self,
        client: &Arc<Client>,
        happened: Happened,
        scratch: &mut [u8],
        now: Millis,
    ) {
        let step = self.parts.worker.guard("a client", || {
            if happened.writable {
                client.writable();
            }
            if happened.readable && client.read(scratch, &self.parts.services.realtime, now) {
                self.parts.scheduler.schedule(Job::Client(Arc::clone(client)));
            }
        });
        if step.is_none() {
            client.end();
        }
    }

    /// Handles the deadline of a connection.
    pub(in crate::engine) fn expire(&self, mut connection: Box<Connection>, now: Millis) {
        let (worker, connections) = (&self.parts.worker, &self.parts.connections);
        // The drain may have got a later end since the connection was parked.
        if connection.is_idle() && connections.deadline(&connection) > now {
            return drop(connections.park(connection, Interest::Read));
        }
        worker.guard("a connection", || {
            worker.fault("expire");
            if connection.in_handshake_since().is_some() {
                return self.parts.handshakes.give_up(connection, "it took too long");
            }
            let was_flushing = connection.is_flushing() || connection.is_relayed();
            let next = connection.expire(&worker.config, now);
            if was_flushing && next == Next::Close {
                record::slow_client(worker);
            }
            self.settle(connection, next);
        });
    }
}
