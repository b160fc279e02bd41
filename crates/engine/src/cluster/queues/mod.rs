//! The queues that all workers share: the kernel keeps them, so nothing is lost when a worker dies.
//!
//! * [`WaitingRoom`] (`waiting_room.rs`): requests. A request that has waited in a worker with only busy threads is sent
//!   there, and a worker with a free thread receives it. The engine decides which requests go in and which worker takes
//!   them out (`engine/migration/requests.rs`).
//! * Connections without a request, or with the rest of a response, which a draining worker sends to the others
//!   (`engine/migration/connections.rs`). To take one over needs no thread of the app, so none of them may wait in front of
//!   a request.
//! * Clients, which a draining worker sends to workers of its generation or a later one (`client_queue.rs`,
//!   `engine/migration/clients.rs`).
//!
//! Each is a socket pair that every worker has inherited (`kernel_queue.rs`), with a count beside it (`attendance.rs`).
//! `tickets.rs` knows requests of clients that have left.
//! `outlet.rs` is its end for senders. `queue.rs` and `message.rs` have the messages about connections. If another release
//! continues, a worker sends to the queues of that release ([`Heirs`], `heirs.rs`).

mod attendance;
mod client_queue;
mod heirs;
mod kernel_queue;
mod message;
mod outlet;
mod queue;
mod tickets;
mod waiting_room;

pub(crate) use attendance::Attendance;
pub(crate) use client_queue::{ClientQueue, MigratedClient, TakenClient};
pub use heirs::Heirs;
pub(crate) use message::{
    peer, peer_numbers, IncomingMigration, IncomingResponse, OutgoingMigration, OutgoingResponse, Stage,
};
pub(crate) use outlet::Sent;
pub(crate) use queue::{Queue, Received};
pub(crate) use tickets::Tickets;
pub use waiting_room::WaitingRoom;

use crate::cluster::scoreboard::Scoreboard;
use crate::transport::poller::{token, Interest, Poller};
use rustix::fd::{BorrowedFd, OwnedFd};

/// The queues of all workers, inherited by each of them together with the [`Scoreboard`].
pub struct SharedQueues {
    scoreboard: &'static Scoreboard,
    waiting_room: WaitingRoom,
    connections: Queue,
    clients: ClientQueue,
}

impl SharedQueues {
    /// Number of descriptors.
    pub const DESCRIPTORS: usize = 7;

    /// Processes can share queues only if this number is the same for all.
    pub const FORMAT: u32 = message::FORMAT;

    /// Opens the queues; to be called before the first fork.
    ///
    /// # Errors
    /// If the socket pairs cannot be made.
    pub fn new(scoreboard: &'static Scoreboard) -> std::io::Result<SharedQueues> {
        Ok(SharedQueues {
            scoreboard,
            waiting_room: WaitingRoom::new(scoreboard)?,
            connections: Queue::new(scoreboard, &scoreboard.migrating)?,
            clients: ClientQueue::new(scoreboard)?,
        })
    }

    /// The queues of another process, from the [`SharedQueues::descriptors`] there.
    pub fn adopt(scoreboard: &'static Scoreboard, descriptors: [OwnedFd; SharedQueues::DESCRIPTORS]) -> SharedQueues {
        let [requests_in, requests_out, connections_in, connections_out, signal, clients_in, clients_out] = descriptors;
        SharedQueues {
            scoreboard,
            waiting_room: WaitingRoom::of(scoreboard, [requests_in, requests_out], signal),
            connections: Queue::of(scoreboard, &scoreboard.migrating, connections_in, connections_out),
            clients: ClientQueue::of(scoreboard, clients_in, clients_out),
        }
    }

    /// The descriptors that a process needs to [`SharedQueues::adopt`] these queues.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; SharedQueues::DESCRIPTORS] {
        let [requests_in, requests_out, signal] = self.waiting_room.descriptors();
        let [connections_in, connections_out] = self.connections.ends();
        let [clients_in, clients_out] = self.clients.ends();
        [
            requests_in,
            requests_out,
            connections_in,
            connections_out,
            signal,
            clients_in,
            clients_out,
        ]
    }

    /// The ends for senders of the queues of connections and of clients, for [`Heirs::new`] in a worker of another release.
    pub fn outlets(&self) -> [BorrowedFd<'_>; Heirs::DESCRIPTORS] {
        let [connections, _] = self.connections.ends();
        let [clients, _] = self.clients.ends();
        [connections, clients]
    }

    /// The scoreboard that counts the contents of the queues.
    pub fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// The queue of requests.
    pub fn waiting_room(&self) -> &WaitingRoom {
        &self.waiting_room
    }

    /// The queue of connections without a request.
    pub(crate) fn connections(&self) -> &Queue {
        &self.connections
    }

    /// The queue of clients.
    pub(crate) fn clients(&self) -> &ClientQueue {
        &self.clients
    }

    /// Registers the queue of clients with `poller`, or removes it.
    pub(crate) fn watch_clients(&self, poller: &Poller) -> rustix::io::Result<()> {
        poller.add(self.clients.receiver(), token::CLIENTS, Interest::Read)
    }

    pub(crate) fn unwatch_clients(&self, poller: &Poller) {
        poller.remove(self.clients.receiver());
    }

    /// Registers the queue of connections with `poller`. Each of them wakes all workers that watch, so a worker that
    /// leaves one to others need not signal them.
    pub(crate) fn watch_connections(&self, poller: &Poller) -> rustix::io::Result<()> {
        poller.add(self.connections.receiver(), token::MIGRATION, Interest::Read)
    }

    pub(crate) fn unwatch_connections(&self, poller: &Poller) {
        poller.remove(self.connections.receiver());
    }
}
