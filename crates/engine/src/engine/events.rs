//! Handles events from the reactor: readiness and timeouts of connections, HTTP/2 connections and clients, and new
//! connections.

use super::http2::Streams;
use super::moves::Moves;
use super::parts::Parts;
use crate::clock::Millis;
use crate::cluster::queues::SharedQueues;
use crate::http::refusal::Refusal;
use crate::http2::is_http2;
use crate::limits::descriptors::{Counted, Permit};
use crate::reactor::{Accepted, Handler, Line, Migrating};
use crate::realtime::is_client;
use crate::transport::poller::{Happened, Interest, Key};
use crate::transport::Link;
use crate::worker::Worker;
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// Most paused clients that are read in one turn, before other events are handled.
const READ_ON: usize = 16;

/// See the head of this file.
pub(super) struct Events {
    parts: Arc<Parts>,
    moves: Arc<Moves>,
}

impl Events {
    pub(super) fn new(moves: &Arc<Moves>) -> Events {
        Events {
            parts: Arc::clone(moves.parts()),
            moves: Arc::clone(moves),
        }
    }

    /// Reads some of the clients that were paused until the app had taken their earlier messages.
    fn read_on_clients(&self, scratch: &mut [u8], now: Millis) {
        let realtime = &self.parts.services.realtime;
        if !realtime.intake().is_due() {
            return;
        }
        for _ in 0..realtime.intake().len().min(READ_ON) {
            let Some(client) = realtime.intake().next() else { return };
            client.resume(realtime);
            let happened = Happened {
                readable: true,
                writable: false,
                ended: false,
            };
            self.moves.step_client(&client, happened, scratch, now);
        }
    }
}

impl Handler for Events {
    fn worker(&self) -> &Worker {
        &self.parts.worker
    }

    fn has_siblings(&self) -> bool {
        self.parts.worker.shared().is_some()
    }

    fn is_ahead(&self) -> bool {
        let Some((scoreboard, slot)) = self.parts.worker.shared() else {
            return false;
        };
        let own = self.parts.worker.counters().connections.load(Relaxed);
        scoreboard.fewest_elsewhere(slot).is_some_and(|fewest| own > fewest)
    }

    fn is_full(&self) -> bool {
        self.parts.admission.is_full()
    }

    fn free_places(&self) -> usize {
        self.parts.admission.free_places()
    }

    fn accepted_elsewhere(&self) -> Option<u64> {
        let (scoreboard, slot) = self.parts.worker.shared()?;
        scoreboard.accepted_elsewhere(slot)
    }

    fn permit(&self) -> Result<Permit, Refusal> {
        if !self.parts.admission.has_place_for_new() {
            return Err(Refusal::TooManyConnections);
        }
        let permit = self.parts.worker.config.descriptors.for_connection();
        permit.ok_or(Refusal::NoDescriptor)
    }

    fn late_permit(&self) -> Result<Permit, Refusal> {
        let beyond = || self.parts.worker.config.descriptors.for_transfer();
        self.permit()
            .or_else(|refusal| self.accepted_elsewhere().map(|_| beyond()).ok_or(refusal))
    }

    fn admit(&self, accepted: Accepted<'_>, now: Millis) -> Result<(), (Link, Errno)> {
        let counted = Counted::new(accepted.socket, accepted.permit);
        let transport = accepted.endpoint.transport(counted);
        let interest = Some(Interest::Read);
        let opened = self
            .parts
            .connections
            .open(&transport, interest, accepted.endpoint, accepted.peer, now);
        match opened {
            Ok(mut connection) => {
                self.parts.handshakes.await_handshake(&mut connection, now);
                self.parts.connection_migration.park_or_migrate(Box::new(connection));
                self.moves.end_if_drained();
                Ok(())
            }
            Err(error) => Err((transport, error)),
        }
    }

    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis) {
        if is_client(key) || !is_http2(key) {
            return self.moves.happened(key, happened, scratch, now);
        }
        self.parts.http2.step(key, scratch, now, &*self.moves);
        self.moves.end_if_drained();
    }

    fn request_waits(&self, signalled: bool) {
        if signalled {
            self.parts.request_migration.clear_signal();
        }
        self.parts.admission.expect_transfers();
    }

    fn has_more_to_read(&self) -> bool {
        self.parts.services.realtime.intake().is_due() || self.parts.http2.is_any_due()
    }

    fn read_on(&self, scratch: &mut [u8], now: Millis) {
        self.parts.http2.look_at_streams(scratch, now, &*self.moves);
        self.moves.end_if_drained();
        self.read_on_clients(scratch, now);
    }

    fn expire(&self, now: Millis) -> Millis {
        let parts = &self.parts;
        parts.giving_way.keep_to_response_memory();
        let (expired, earliest) = parts.connections.parked().take_expired(now);
        let realtime = &parts.services.realtime;
        let next = earliest
            .min(realtime.clients().tick(realtime, now))
            .min(parts.admission.opens_at(now))
            .min(parts.http2.expire(now));
        for connection in expired {
            self.moves.expire(connection, now);
        }
        self.moves.end_if_drained();
        next
    }

    fn queues(&self) -> Option<&SharedQueues> {
        self.parts.admission.queues()
    }

    fn line(&self, kind: Migrating) -> Option<Line> {
        self.parts.admission.line(kind)
    }

    fn admits(&self, kind: Migrating) -> bool {
        match kind {
            Migrating::Connections => self.parts.admission.admits_connections(),
            Migrating::Clients => self.parts.admission.admits_clients(),
        }
    }

    fn take_migrated(&self, kind: Migrating, now: Millis) -> bool {
        match kind {
            Migrating::Connections => self.parts.connection_migration.take_over(now, &*self.moves),
            Migrating::Clients => self.parts.client_migration.take_over(),
        }
    }

    fn drain_pause(&self) -> Option<Duration> {
        let pauses = [
            self.parts.connection_migration.drain_pause(),
            self.parts.client_migration.drain_pause(),
        ];
        pauses.into_iter().flatten().min()
    }

    fn listeners_closed(&self, now: Millis) {
        self.parts.connection_migration.begin(now);
        self.moves.end_if_drained();
    }

    fn end_of_turn(&self, now: Millis) {
        let parts = &self.parts;
        if parts.worker.is_leaving() {
            parts.http2.leave();
        }
        if parts.worker.is_draining() {
            parts.connection_migration.go_on(now, &*self.moves);
            parts.client_migration.go_on(now);
        }
        parts.services.realtime.resume_clients();
        parts.uploads.resume(now, &*self.moves);
        self.moves.end_if_drained();
        parts.memory.look_after();
    }

    fn polled(&self) {
        self.parts.scheduler.polled(self.parts.http2.queued_streams());
    }
}
