//! Requests in the waiting room that their clients have abandoned. They stay there until their turn, but no longer count for
//! `queue_limit`.
//!
//! A worker that has sent a request has closed its socket. The poller here reports a hang-up of it nevertheless: the system
//! watches the open socket, which is in the room, and not the descriptor. It goes on after another worker has taken the request;
//! so the report is worth something only as long as the ticket says that the request waits. Where the system cannot do this
//! (docs/porting.md), nothing is reported, and all requests count.

use crate::cluster::queues::{OutgoingMigration, Sent, WaitingRoom};
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

/// See the head of this file.
pub(in crate::engine) struct AbandonedRequests {
    worker: Arc<Worker>,
    /// Watches the sockets that this worker has sent since the waiting room was empty.
    poller: Mutex<Option<Poller>>,
    /// A ticket of a request that could not be sent, for the next one; 0 for none.
    unused: AtomicU64,
}

impl AbandonedRequests {
    pub(in crate::engine) fn new(worker: &Arc<Worker>) -> Arc<AbandonedRequests> {
        Arc::new(AbandonedRequests {
            worker: Arc::clone(worker),
            poller: Mutex::new(None),
            unused: AtomicU64::new(0),
        })
    }

    /// Puts a request into the waiting room, from the worker in `slot`, and watches its client if requests are limited.
    pub(super) fn send(&self, outgoing: OutgoingMigration<'_>, room: &WaitingRoom, slot: usize) -> Sent {
        if self.worker.config.queue_limit == 0 || IS_PORTABLE {
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
        let mut poller = self.poller.lock();
        if poller.is_none() {
            *poller = Poller::new().ok();
        }
        if let Some(poller) = &*poller {
            // It may have been here before, with the same descriptor.
            if poller.add(socket, ticket, Interest::HangUp).is_err() {
                let _ = poller.change(socket, ticket, Interest::HangUp);
            }
        }
    }

    /// True if at least `count` requests in the room are abandoned.
    pub(in crate::engine) fn are_in(&self, room: &WaitingRoom, count: usize) -> bool {
        self.look(room);
        room.tickets().have_left(count)
    }

    /// Notes clients that have left. Called every millisecond while a thread runs something.
    pub(in crate::engine) fn look(&self, room: &WaitingRoom) {
        let mut opened = self.poller.lock();
        let Some(poller) = &*opened else { return };
        let mut space = EventBuffer::<REPORTS>::new();
        let reports = poller.wait(&mut space, Some(Duration::ZERO));
        for report in reports.into_iter().flatten() {
            room.tickets().leave(report.token());
        }
        if !room.is_occupied() {
            // All that it watches was taken out.
            *opened = None;
        }
    }
}
