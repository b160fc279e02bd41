//! Requests in the waiting room that their clients have abandoned. They stay there until their turn, but no longer count for
//! `queue_limit`. With turns by flow no request in the room counts, and nothing is watched.
//!
//! A worker that has sent a request has closed its socket. The poller here reports a hang-up of it nevertheless: the system
//! watches the open socket, which is in the room, and not the descriptor. It goes on after another worker has taken the request;
//! so the report is worth something only as long as the ticket says that the request waits. Where the system cannot do this
//! (docs/porting.md), nothing is reported, and all requests count.
//!
//! A connection that is sent again and again has a place in the poller for each descriptor that it had here. So after some requests
//! another poller watches, and the first one is closed when its last request is taken out, with all before that one:
//!
//! ```text
//!   newest watches ── REPLACED requests, and there is no older one ──▶ older ── its last request is taken out ──▶ closed
//! ```

use crate::cluster::queues::{OutgoingMigration, Sent, Tickets, WaitingRoom};
use crate::sync::Mutex;
use crate::worker::Worker;
use fairlead_system::poller::{EventBuffer, Interest, Poller};
use fairlead_system::IS_PORTABLE;
use rustix::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// Most reports in a look.
const REPORTS: usize = 64;

/// Requests that a poller watches at least before another one does.
const REPLACED: u64 = 256;

/// See the head of this file.
pub(in crate::engine) struct AbandonedRequests {
    worker: Arc<Worker>,
    pollers: Mutex<Pollers>,
    /// A ticket of a request that could not be sent, for the next one; 0 for none.
    unused: AtomicU64,
}

impl AbandonedRequests {
    pub(in crate::engine) fn new(worker: &Arc<Worker>) -> Arc<AbandonedRequests> {
        Arc::new(AbandonedRequests {
            worker: Arc::clone(worker),
            pollers: Mutex::default(),
            unused: AtomicU64::new(0),
        })
    }

    /// Puts a request into the waiting room, from the worker in `slot`, and watches its client if requests are limited.
    pub(super) fn send(&self, outgoing: OutgoingMigration<'_>, room: &WaitingRoom, slot: usize) -> Sent {
        let config = &self.worker.config;
        if config.queue_limit == 0 || config.fair_by.has_flows() || IS_PORTABLE {
            return room.send(&outgoing, slot);
        }
        let ticket = room.tickets().issue(self.unused.swap(0, Relaxed));
        let socket = outgoing.socket;
        let sent = room.send(&OutgoingMigration { ticket, ..outgoing }, slot);
        if sent == Sent::Done {
            self.watch(socket, ticket);
        } else {
            room.tickets().take(ticket);
            self.unused.store(ticket, Relaxed);
        }
        sent
    }

    fn watch(&self, socket: BorrowedFd<'_>, ticket: u64) {
        let mut pollers = self.pollers.lock();
        let Pollers { older, newest } = &mut *pollers;
        if older.is_none() && newest.as_ref().is_some_and(|newest| newest.requests >= REPLACED) {
            *older = newest.take();
        }
        if newest.is_none() {
            *newest = Watching::new();
        }
        if let Some(newest) = newest {
            newest.watch(socket, ticket);
        }
    }

    /// True if at least `count` requests in the room are abandoned.
    pub(in crate::engine) fn are_in(&self, room: &WaitingRoom, count: usize) -> bool {
        self.look(room);
        room.tickets().have_left(count)
    }

    /// Notes clients that have left. Called every millisecond while a thread runs something.
    pub(in crate::engine) fn look(&self, room: &WaitingRoom) {
        let mut pollers = self.pollers.lock();
        let Pollers { older, newest } = &mut *pollers;
        let opened = older.iter().chain(&*newest);
        opened.for_each(|watching| watching.look(room.tickets()));
        if !room.is_occupied() {
            // All that they watch was taken out.
            *pollers = Pollers::default();
        } else if older.as_ref().is_some_and(|older| !room.tickets().waits(older.last)) {
            *older = None;
        }
    }
}

/// The pollers that watch the sockets that this worker has sent since the waiting room was empty.
#[derive(Default)]
struct Pollers {
    older: Option<Watching>,
    newest: Option<Watching>,
}

struct Watching {
    poller: Poller,
    requests: u64,
    /// Ticket of the last one.
    last: u64,
}

impl Watching {
    fn new() -> Option<Watching> {
        let poller = Poller::new().ok()?;
        Some(Watching {
            poller,
            requests: 0,
            last: 0,
        })
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, ticket: u64) {
        // It may have been here before, with the same descriptor.
        if self.poller.add(socket, ticket, Interest::HangUp).is_err() {
            let _ = self.poller.change(socket, ticket, Interest::HangUp);
        }
        self.requests += 1;
        self.last = ticket;
    }

    fn look(&self, tickets: &Tickets) {
        let mut space = EventBuffer::<REPORTS>::new();
        let reports = self.poller.wait(&mut space, Some(Duration::ZERO));
        for report in reports.into_iter().flatten() {
            tickets.leave(report.token());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::membership::Membership;
    use crate::cluster::queues::{Received, SharedQueues};
    use crate::config::{Config, Logs};
    use crate::support::config;
    use rustix::fd::{AsFd, AsRawFd};
    use rustix::io::fcntl_dupfd_cloexec;
    use std::os::unix::net::UnixStream;

    /// Number of descriptors that it watches.
    fn watched(pollers: &Pollers) -> usize {
        let information = |watching: &Watching| {
            let number = watching.poller.as_fd().as_raw_fd();
            std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("information about it")
        };
        let opened = pollers.older.iter().chain(&pollers.newest);
        opened.map(|one| information(one).matches("tfd:").count()).sum()
    }

    /// A connection that stays open has another descriptor each time, and the room is never empty.
    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "nothing watches")]
    fn connections_that_are_sent_again_and_again_have_no_growing_number_of_places() {
        if IS_PORTABLE {
            return;
        }
        let queues = Arc::new(SharedQueues::new(Box::leak(Box::default())).expect("socket pairs"));
        let membership = Membership::Worker(Arc::clone(&queues), 0);
        let limited = Config {
            queue_limit: 1,
            ..config()
        };
        let worker = Arc::new(Worker::new(limited, Logs::default(), Some(&membership)).expect("a poll set"));
        let (abandoned, room) = (AbandonedRequests::new(&worker), queues.waiting_room());
        let send = |socket: BorrowedFd<'_>| {
            let sent = abandoned.send(OutgoingMigration::shortest(socket), room, 0);
            assert_eq!(sent, Sent::Done);
        };
        let take = || assert!(matches!(room.receive(1), Received::Migration(_)));
        let (clients, sockets): (Vec<_>, Vec<_>) = (0..32).map(|_| UnixStream::pair().expect("sockets")).unzip();
        send(sockets[0].as_fd());
        let mut most = 0;
        for first in 0..64 {
            let copies = sockets
                .iter()
                .map(|socket| fcntl_dupfd_cloexec(socket, 300 + 4 * first).expect("a copy"));
            let copies: Vec<_> = copies.collect();
            for copy in &copies {
                send(copy.as_fd());
                take();
                abandoned.look(room);
            }
            most = most.max(watched(&abandoned.pollers.lock()));
        }
        assert!(most as u64 <= 2 * REPLACED, "{most}");
        send(sockets[1].as_fd());
        take();
        drop((clients, sockets));
        assert!(abandoned.are_in(room, 1), "it still watches");
    }
}
