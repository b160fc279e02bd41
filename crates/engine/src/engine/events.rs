//! Handles what the reactor sees: events and time-outs of connections and clients, and new connections.

use super::{record, Engine};
use crate::clock::Millis;
use crate::cluster::waiting_room::WaitingRoom;
use crate::connection::Next;
use crate::http2::is_session;
use crate::limits::descriptors::{Counted, Permit};
use crate::reactor::{Accepted, Handler};
use crate::realtime::{is_client, Client, Host, Scheduled};
use crate::transport::poller::{Happened, Interest, Key};
use crate::transport::Link;
use crate::worker::Worker;
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// How many paused clients are read again in one turn, before other events are handled.
const READ_ON: usize = 16;

impl Handler for Engine {
    fn worker(&self) -> &Worker {
        &self.worker
    }

    fn has_siblings(&self) -> bool {
        self.worker.shared().is_some()
    }

    fn is_ahead(&self) -> bool {
        let Some((scoreboard, slot)) = self.worker.shared() else {
            return false;
        };
        let own = self.counters().connections.load(Relaxed);
        scoreboard.fewest_elsewhere(slot).is_some_and(|fewest| own > fewest)
    }

    fn permit(&self) -> Result<Permit, &'static str> {
        if !self.admission.has_place_for_new() {
            return Err("max_connections are open");
        }
        let permit = self.worker.config.descriptors.for_connection();
        permit.ok_or("the application's share of descriptors is left")
    }

    fn admit(&self, accepted: Accepted<'_>, now: Millis) -> Result<(), (Link, Errno)> {
        let counted = Counted::new(accepted.socket, accepted.permit);
        let transport = accepted.endpoint.transport(counted);
        let interest = Interest::Read;
        match self
            .connections
            .open(&transport, Some(interest), accepted.endpoint, accepted.peer, now)
        {
            Ok(mut connection) => {
                self.handshakes.await_handshake(&mut connection, now);
                self.handoff.park_or_hand_off(Box::new(connection));
                self.finish_if_drained();
            }
            Err(error) => return Err((transport, error)),
        }
        Ok(())
    }

    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis) {
        if !is_client(key) {
            return match is_session(key) {
                true => {
                    self.sessions.step(key, scratch, now, self);
                    self.finish_if_drained();
                }
                false => self.step_connection(key, scratch, now),
            };
        }
        if let Some(client) = self.services.realtime.clients().get(key) {
            self.step_client(&client, happened, scratch, now);
        }
    }

    fn transfer_waits(&self, signalled: bool) {
        if signalled {
            self.transfers.clear_signal();
        }
        self.admission.expect_transfers();
    }

    fn has_more_to_read(&self) -> bool {
        self.services.realtime.intake().is_due() || self.sessions.is_any_due()
    }

    fn read_on(&self, scratch: &mut [u8], now: Millis) {
        self.sessions.look_at_streams(scratch, now, self);
        self.finish_if_drained();
        let realtime = &self.services.realtime;
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
            self.step_client(&client, happened, scratch, now);
        }
    }

    fn expire(&self, now: Millis) -> Millis {
        self.giving_way.keep_to_response_memory();
        let (expired, earliest) = self.connections.parked().take_expired(now);
        let realtime = &self.services.realtime;
        let next = earliest
            .min(realtime.clients().tick(realtime, now))
            .min(self.admission.opens_at(now))
            .min(self.sessions.expire(now));
        for mut connection in expired {
            // The drain may have got a later end since the connection was parked.
            if connection.is_idle() && self.connections.deadline(&connection) > now {
                self.park(connection, Interest::Read);
                continue;
            }
            self.worker.guard("a connection", || {
                self.worker.fault("expire");
                if connection.in_handshake_since().is_some() {
                    self.handshakes.give_up(connection, "it took too long");
                    return self.finish_if_drained();
                }
                let was_flushing = connection.is_flushing() || connection.is_relayed();
                let next = connection.expire(&self.worker.config, now);
                if was_flushing && next == Next::Close {
                    record::slow_client(&self.worker);
                }
                self.settle(connection, next);
            });
        }
        self.finish_if_drained();
        next
    }

    fn room(&self) -> Option<&WaitingRoom> {
        self.admission.room()
    }

    fn admits_handoffs(&self) -> bool {
        self.admission.admits_handoffs()
    }

    fn take_handoff(&self, now: Millis) -> bool {
        self.handoff.take_over(now, self)
    }

    fn drain_pause(&self) -> Option<Duration> {
        self.handoff.drain_pause()
    }

    fn listeners_closed(&self, now: Millis) {
        self.handoff.begin(now);
        self.finish_if_drained();
    }

    fn end_of_turn(&self, now: Millis) {
        if self.worker.is_leaving() {
            self.sessions.leave();
        }
        if self.worker.is_draining() {
            self.handoff.go_on(now, self);
            self.finish_if_drained();
        }
        self.uploads.resume(now, self);
        self.memory.look_after();
    }

    fn polled(&self) {
        self.scheduler.polled(self.sessions.in_line());
    }
}

impl Engine {
    /// Takes in a connection that no listener accepted.
    #[cfg(test)]
    pub(crate) fn attach(&self, transport: Link) {
        let (interest, endpoint) = (Interest::Read, &self.endpoints[0]);
        let peer = Some(([127, 0, 0, 1], 1).into());
        let now = Millis::now();
        let connection = self.connections.open(&transport, Some(interest), endpoint, peer, now);
        self.park(Box::new(connection.expect("it can be watched")), interest);
    }

    fn step_connection(&self, key: Key, scratch: &mut [u8], now: Millis) {
        let Some(mut connection) = self.connections.take(key) else {
            return;
        };
        self.worker.guard("a connection", || {
            self.worker.fault("step");
            let next = connection.step(scratch, &self.worker.config, now);
            self.settle(connection, next);
        });
    }

    fn step_client(&self, client: &Arc<Client>, happened: Happened, scratch: &mut [u8], now: Millis) {
        let step = self.worker.guard("a client", || {
            if happened.writable {
                client.writable();
            }
            if happened.readable && client.read(scratch, &self.services.realtime, now) {
                self.schedule(Scheduled::Client(Arc::clone(client)));
            }
        });
        if step.is_none() {
            client.end();
        }
    }
}
