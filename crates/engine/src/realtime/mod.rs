//! Long-lived connections: WebSockets, event streams, and responses that continue after the app has returned.
//!
//! * [`Client`] (`client.rs`) is one of them, shared by all that write to it (`sending.rs`). `encoder.rs` and
//!   `encoding.rs` make frames; `outbox.rs` has the frames that the peer has not taken yet, in order in `frames.rs`,
//!   and `remainder.rs` the missing part of a response; `flushing.rs` gives frames to the kernel.
//! * `closing.rs` ends a client through the states of `ending.rs`; `ticking.rs` checks its deadlines, with the silence
//!   in `keep_alive.rs`.
//! * `reading.rs` reads, and `reader.rs` decodes the peer's bytes into events (`half_closed.rs`: the end of its input).
//!   `inbox.rs` keeps the events in order until a thread runs them, one at a time (`turns.rs`). `backpressure.rs` stops a
//!   client with a full inbox; `intake.rs` bounds the bytes in all inboxes, `unfinished.rs` incomplete messages.
//! * `carrier.rs` is the connection under a client, which may continue afterwards.
//! * `subscriptions.rs` has the subscriptions of a client, and the messages for blocks of the app.
//! * `cable/` delivers messages in the frames of Action Cable.
//! * `clients.rs` has all clients of an engine.
//! * `migration/` moves clients between workers.
//! * `spread.rs` has numbers that keep clients apart in time.
//! * `process.rs` is a subscription that belongs to the process instead of a client.

mod backpressure;
mod cable;
mod carrier;
mod client;
mod clients;
mod closing;
mod encoder;
mod encoding;
mod ending;
mod flushing;
mod frames;
mod half_closed;
mod inbox;
mod intake;
mod keep_alive;
mod migration;
mod mobility;
mod outbox;
mod process;
mod reader;
mod reading;
mod remainder;
mod sending;
mod spread;
mod subscriptions;
mod ticking;
mod turns;
mod unfinished;

pub use cable::{SignedStreams, StreamOptions, StreamStart, Streamed};
pub(crate) use carrier::{Carrier, Owner};
pub use client::{Client, Events, Protocol};
pub(crate) use clients::is_client;
pub use inbox::Event;
pub(crate) use migration::{say_farewell, SavedClient, Sending, Way, CLIENT_FORMAT, LARGE as LARGE_CLIENT};
pub use migration::{Handover, Retirement};
pub use process::ProcessSubscription;
pub(crate) use remainder::Remainder;
pub use sending::Offered;
pub(crate) use turns::{EventEnd, Peer};

use crate::clock::Millis;
use crate::limits::budget::{Budgets, Kind};
use crate::pubsub::Hub;
use crate::spool::{Slowness, Spool};
use crate::worker::Worker;
use cable::Identifiers;
use clients::Clients;
use intake::Intake;
use migration::{ArrivedForms, Departures, Resuming};
use spread::Spread;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The clients of one engine, and the parts of it that they need.
pub(crate) struct Realtime {
    me: Weak<Realtime>,
    worker: Arc<Worker>,
    hub: Arc<Hub>,
    clients: Clients,
    identifiers: Identifiers,
    intake: Intake,
    departures: Departures,
    resuming: Resuming,
    arrived_forms: ArrivedForms,
    /// Of the times after which event streams come back.
    retries: Spread,
    spool: Arc<Spool>,
    budgets: Arc<Budgets>,
    host: Weak<dyn Host>,
}

/// Schedules the turns of clients, and makes room for them.
pub(crate) trait Host: Send + Sync {
    /// Puts a turn into the ready queue.
    fn schedule(&self, turn: Scheduled);

    /// Makes one client give way: the client with the highest-ranked share of this kind. Returns false if there is
    /// none.
    fn make_room(&self, kind: Kind) -> bool;
}

/// A client or subscription that gets a turn on a thread of the app.
pub(crate) enum Scheduled {
    /// A client with at least one event.
    Client(Arc<Client>),
    /// A subscription of the process that has a message.
    Subscription(Arc<ProcessSubscription>),
}

impl Realtime {
    /// Creates it without clients. `hub` has their subscriptions.
    pub(crate) fn new(
        worker: Arc<Worker>,
        hub: Arc<Hub>,
        spool: Arc<Spool>,
        budgets: Arc<Budgets>,
        host: Weak<dyn Host>,
    ) -> Arc<Realtime> {
        Arc::new_cyclic(|me| Realtime {
            me: me.clone(),
            intake: Intake::new(worker.config.messages_pending_bytes),
            worker,
            hub,
            clients: Clients::default(),
            identifiers: Identifiers::default(),
            departures: Departures::default(),
            resuming: Resuming::default(),
            arrived_forms: ArrivedForms::default(),
            retries: Spread::default(),
            spool,
            budgets,
            host,
        })
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The clients that migrate to other workers.
    pub(crate) fn departures(&self) -> &Departures {
        &self.departures
    }

    /// Lets the app resume clients that have migrated to this worker, as far as they are due.
    pub(crate) fn resume_clients(&self) {
        self.resuming.go_on(self);
    }

    fn schedule(&self, turn: Scheduled) {
        if let Some(host) = self.host.upgrade() {
            host.schedule(turn);
        }
    }

    /// Makes a client give way; not to be called with a locked outbox.
    fn make_room(&self, kind: Kind) -> bool {
        self.host.upgrade().is_some_and(|host| host.make_room(kind))
    }

    /// The slowest client that would not be done within `limit`.
    pub(crate) fn slowest(&self, now: Millis, limit: Duration) -> Option<(Slowness, Arc<Client>)> {
        let all = self.clients.all().into_iter();
        let slow = all.filter_map(|client| Some((client.slowness(now)?, client)));
        slow.filter(|(slowness, _)| slowness.is_too_much(limit))
            .max_by_key(|(slowness, _)| *slowness)
    }

    /// Makes sure that the client is checked at `deadline`.
    fn expect(&self, client: &Client, deadline: Millis) {
        self.clients.expect(client, deadline);
        self.worker.expect(deadline);
    }
}
