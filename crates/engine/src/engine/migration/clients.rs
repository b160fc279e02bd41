//! Migration of clients in a drain: a worker that drains sends its WebSockets and event streams to workers with the same code or
//! newer code. Both sides. `realtime/migration/` has the clients; here are the queue and the sockets.

use super::Admission;
use crate::clock::Millis;
use crate::cluster::queues::{MigratedClient, Sent, TakenClient};
use crate::exchange::Services;
use crate::limits::descriptors::Counted;
use crate::realtime::{say_farewell, Retirement, SavedClient, Sending, Way, LARGE_CLIENT};
use crate::transport::listener::Endpoint;
use crate::worker::{Count, Worker};
use fairlead_tls_record::SecretBytes;
use rustix::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// Most clients that are under way to another worker, so that none of them waits long, also if the worker with the fewest connections
/// takes them all.
const UNDER_WAY: u64 = 32;

/// While more clients than that are under way, no large state is sent: up to this many large ones take memory at a time.
const MOST_LARGE: u64 = 4;

/// Longest time for which a client is passed on to a worker that has all publications that the client has not got.
const PASSED_ON: Duration = Duration::from_secs(2);

/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(1);

/// The same while all clients that leave wait for their app, which wakes the poller.
const LONG_PAUSE: Duration = Duration::from_millis(50);

/// See the head of this file.
pub(in crate::engine) struct ClientMigration {
    services: Arc<Services>,
    admission: Arc<Admission>,
    /// Endpoints of the listeners, in the order that all workers share.
    endpoints: Arc<[Arc<Endpoint>]>,
}

impl ClientMigration {
    pub(in crate::engine) fn new(
        services: &Arc<Services>,
        admission: &Arc<Admission>,
        endpoints: &Arc<[Arc<Endpoint>]>,
    ) -> ClientMigration {
        ClientMigration {
            services: Arc::clone(services),
            admission: Arc::clone(admission),
            endpoints: Arc::clone(endpoints),
        }
    }

    fn worker(&self) -> &Arc<Worker> {
        &self.services.worker
    }
}

/// Sending side.
impl ClientMigration {
    /// The drain begins: all clients leave, or, if no other worker continues, the app is told that the server ends.
    pub(in crate::engine) fn begin(&self, retirement: Retirement) {
        let realtime = &self.services.realtime;
        match self.worker().migrates() {
            true => realtime.departures().begin(realtime, retirement),
            false => realtime.departures().announce_end(realtime),
        }
    }

    /// Longest wait of the poller while clients leave.
    pub(in crate::engine) fn drain_pause(&self) -> Option<Duration> {
        let departures = self.services.realtime.departures();
        match () {
            () if self.worker().is_stopped() => None,
            () if departures.is_busy() || self.admission.awaits_clients() => Some(PAUSE),
            () => departures.has_left().then_some(LONG_PAUSE),
        }
    }

    /// Continues with the clients that leave, and takes over clients that no other worker would take. Called by the
    /// poller, after all events of a poll were handled.
    pub(in crate::engine) fn go_on(&self, now: Millis) {
        if self.worker().is_stopped() {
            return;
        }
        let realtime = &self.services.realtime;
        realtime.departures().go_on(realtime, now, self);
        while self.admission.inherits_clients() && self.take_over() {}
    }
}

impl Way for ClientMigration {
    fn obstacle(&self, is_large: bool) -> Option<Sending> {
        let Some(queues) = self.admission.queues().filter(|_| self.worker().is_retiring()) else {
            return Some(Sending::Impossible);
        };
        if let Some(heirs) = self.worker().heirs() {
            let is_free = heirs.are_there() && heirs.take_clients(is_large);
            return (!is_free).then_some(if is_large { Sending::NotNow } else { Sending::Full });
        }
        let (under_way, has_place) = (queues.clients().len(), queues.scoreboard().has_place_for_clients());
        // Without another worker, the supervisor may be about to replace it.
        if !self.worker().migrates() || under_way >= UNDER_WAY || !has_place {
            return Some(Sending::Full);
        }
        (is_large && under_way > MOST_LARGE).then_some(Sending::NotNow)
    }

    fn send(&self, saved: &SavedClient, socket: &OwnedFd) -> Sending {
        let Some((queues, (_, slot))) = self.admission.queues().zip(self.worker().shared()) else {
            return Sending::Impossible;
        };
        let bytes = saved.to_bytes();
        if let Some(obstacle) = self.obstacle(bytes.len() > LARGE_CLIENT) {
            return obstacle;
        }
        let is_secret = saved.tls.is_some();
        let sent = match self.worker().heirs() {
            Some(heirs) => heirs.send_client(socket, &bytes, is_secret),
            None => queues.clients().send(socket, &bytes, is_secret, slot),
        };
        match sent {
            Sent::Done => {
                self.worker().counters().handed_off.fetch_add(1, Relaxed);
                self.admission.await_client();
                Sending::Sent
            }
            Sent::Full | Sent::Gone => Sending::Full,
            Sent::TooLong => Sending::NotNow,
        }
    }
}

/// Receiving side.
impl ClientMigration {
    /// Takes over one client. Returns false if there is none, or it cannot be taken now.
    pub(in crate::engine) fn take_over(&self) -> bool {
        let Some((queues, (_, slot))) = self.admission.queues().zip(self.worker().shared()) else {
            return false;
        };
        match queues.clients().receive(slot) {
            TakenClient::Client(client) => self.go_on_with(client),
            TakenClient::Nobody => return false,
            TakenClient::Short => {
                self.admission.lack_descriptors("migrated clients");
                return false;
            }
            TakenClient::Spoiled => self.admission.log("closed a migrated client: out of file descriptors"),
        }
        true
    }

    fn go_on_with(&self, client: MigratedClient) {
        self.worker().guard("a client that has migrated", || {
            if let Err(reason) = self.adopt(client) {
                self.admission.log(&format!("closed a migrated client: {reason}"));
            }
        });
    }

    fn adopt(&self, client: MigratedClient) -> Result<(), &'static str> {
        let MigratedClient { socket, state } = client;
        let socket = Counted::new(socket, self.worker().config.descriptors.for_transfer());
        let (saved, endpoint) = match self.prepare(&state) {
            Ok((saved, _)) if self.should_pass_on(&saved) => {
                return self.pass_on(&socket, &state, saved.tls.is_some());
            }
            Ok(prepared) => prepared,
            Err(reason) => {
                say_farewell(&state, &*socket);
                return Err(reason);
            }
        };
        let transport = match &saved.tls {
            None => endpoint.plain_transport(socket),
            Some(state) => endpoint.transport_with_tls(socket, state)?,
        };
        let count = Count::connection(self.worker());
        match self.services.realtime.adopt(saved, &transport, count) {
            true => {
                self.worker().counters().taken_over.fetch_add(1, Relaxed);
                Ok(())
            }
            false => Err("its state is not valid"),
        }
    }

    /// The client, and its listener.
    fn prepare(&self, state: &[u8]) -> Result<(SavedClient, &Arc<Endpoint>), &'static str> {
        let saved = SavedClient::from_bytes(state).map_err(|_| "another version has saved it")?;
        if !self.services.realtime.has_code_for(&saved) {
            return Err("newer code has saved it");
        }
        let mut known = self.endpoints.iter();
        let endpoint = known.find(|one| one.origin.fingerprint() == saved.origin);
        Ok((saved, endpoint.ok_or("its listener is unknown")?))
    }

    /// True if this worker has begun after the client left: it does not have all publications that the client has not got.
    fn should_pass_on(&self, saved: &SavedClient) -> bool {
        let has_others = self
            .worker()
            .shared()
            .is_some_and(|(scoreboard, slot)| scoreboard.others_serve(slot));
        let is_fresh = Millis::now() - saved.left < PASSED_ON;
        has_others && is_fresh && !self.services.realtime.has_messages_since(saved)
    }

    /// Puts a client back into the queue, and leaves the queue to other workers for a moment.
    fn pass_on(&self, socket: &OwnedFd, state: &SecretBytes, is_secret: bool) -> Result<(), &'static str> {
        self.admission.leave_clients_to_others();
        let sent = self.admission.queues().zip(self.worker().shared());
        let sent = sent.map(|(queues, (_, slot))| queues.clients().send(socket, state, is_secret, slot));
        match sent {
            Some(Sent::Done) => Ok(()),
            _ => Err("no worker has the messages that it has missed"),
        }
    }
}
