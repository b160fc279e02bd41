//! Waiting room: requests and connections on their way between workers, in two queues that the kernel keeps for all of
//! them.
//!
//! A request that has waited in a worker with all threads busy is sent into a socket pair that every worker inherited
//! (`queue.rs`, `message.rs`). A worker with a free thread receives it. The kernel keeps the order and the messages, so
//! nothing is lost when a worker dies. The number of requests is counted beside the queue (`attendance.rs`). The engine
//! decides which requests go in and which worker takes them out (`engine/migration/requests.rs`).
//!
//! A second queue of the same kind is for connections without a request: a worker migrates them when it drains
//! (`engine/migration/connections.rs`). Taking one over needs no thread of the app, so they must not queue in front of
//! requests.

mod attendance;
mod message;
mod queue;

pub(crate) use attendance::Attendance;
pub(crate) use message::{IncomingMigration, OutgoingMigration, Stage};
pub(crate) use queue::{Queue, Received, Sent};

use crate::clock::Nanos;
use crate::cluster::scoreboard::Scoreboard;
use crate::transport::poller::{token, Interest, Poller};
use rustix::event::{eventfd, EventfdFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, write, Errno};
use std::sync::atomic::Ordering::SeqCst;

/// Inherited by all workers, together with the [`Scoreboard`].
pub struct WaitingRoom {
    scoreboard: &'static Scoreboard,
    requests: Queue,
    migrations: Queue,
    /// An eventfd. The kernel wakes one worker for each request; a worker that leaves the request to others wakes
    /// another worker with it.
    signal: OwnedFd,
}

impl WaitingRoom {
    /// Number of descriptors of a room.
    pub const DESCRIPTORS: usize = 5;

    /// Processes can share a room only if this number is the same for all.
    pub const FORMAT: u32 = message::FORMAT;

    /// Opens the room; called before the first fork.
    ///
    /// # Errors
    /// If the socket pairs cannot be made.
    pub fn new(scoreboard: &'static Scoreboard) -> std::io::Result<WaitingRoom> {
        Ok(WaitingRoom {
            scoreboard,
            requests: Queue::new(scoreboard, &scoreboard.attendance)?,
            migrations: Queue::new(scoreboard, &scoreboard.migrating)?,
            signal: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Opens the room of another process, from the descriptors that [`WaitingRoom::descriptors`] returned there.
    pub fn adopt(scoreboard: &'static Scoreboard, descriptors: [OwnedFd; WaitingRoom::DESCRIPTORS]) -> WaitingRoom {
        let [requests_in, requests_out, migrations_in, migrations_out, signal] = descriptors;
        WaitingRoom {
            scoreboard,
            requests: Queue::of(scoreboard, &scoreboard.attendance, requests_in, requests_out),
            migrations: Queue::of(scoreboard, &scoreboard.migrating, migrations_in, migrations_out),
            signal,
        }
    }

    /// Descriptors that a process needs to [`WaitingRoom::adopt`] this room.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; WaitingRoom::DESCRIPTORS] {
        let ([requests_in, requests_out], [migrations_in, migrations_out]) =
            (self.requests.ends(), self.migrations.ends());
        [
            requests_in,
            requests_out,
            migrations_in,
            migrations_out,
            self.signal.as_fd(),
        ]
    }

    /// Scoreboard with the counts of the room.
    pub fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// Queue of connections without a request.
    pub(crate) fn migrations(&self) -> &Queue {
        &self.migrations
    }

    /// Registers the queue of requests with `poller`.
    pub(crate) fn watch(&self, poller: &Poller) -> rustix::io::Result<()> {
        let add = |fd: BorrowedFd<'_>, token| match poller.add_shared(fd, token) {
            Err(Errno::EXIST) => Ok(()),
            result => result,
        };
        add(self.requests.receiver(), token::ROOM)?;
        add(self.signal.as_fd(), token::SIGNAL)
    }

    pub(crate) fn unwatch(&self, poller: &Poller) {
        poller.remove(self.requests.receiver());
        poller.remove(&self.signal);
    }

    /// Registers the queue of connections with `poller`. Each connection wakes all workers that watch: a worker that
    /// leaves it to others need not tell them.
    pub(crate) fn watch_migrations(&self, poller: &Poller) -> rustix::io::Result<()> {
        poller.add(self.migrations.receiver(), token::MIGRATION, Interest::Read)
    }

    pub(crate) fn unwatch_migrations(&self, poller: &Poller) {
        poller.remove(self.migrations.receiver());
    }

    /// Wakes another worker that watches, if a request may be waiting. If none watches now, wakes the next worker that
    /// does.
    pub fn signal(&self) {
        if self.is_occupied() {
            let _ = write(&self.signal, &1u64.to_ne_bytes());
        }
    }

    /// Resets the eventfd.
    pub(crate) fn clear_signal(&self) {
        let _ = read(&self.signal, &mut [0; 8]);
    }

    /// True if a request may be waiting: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.requests.is_occupied()
    }

    /// Puts a request into the room, from the worker in `slot`. The caller keeps it, too.
    pub(crate) fn send(&self, request: &OutgoingMigration<'_>, slot: usize) -> Sent {
        let sent = self.requests.send(request, slot);
        match sent {
            Sent::Done => _ = self.scoreboard.moved.fetch_add(1, SeqCst),
            Sent::Full => _ = self.scoreboard.refused.fetch_add(1, SeqCst),
            Sent::TooLong => {}
        }
        sent
    }

    /// Time since when the first request in the room has waited for its turn.
    pub(crate) fn first_waits_since(&self) -> Option<Nanos> {
        self.requests.first_waits_since()
    }

    /// Takes out the oldest request, for the worker in `slot`.
    pub(crate) fn receive(&self, slot: usize) -> Received {
        self.requests.receive(slot)
    }
}
