//! The waiting room: requests that have found no free thread in their worker, until another worker takes them.

use super::message::OutgoingMigration;
use super::outlet::Sent;
use super::queue::{Queue, Received};
use super::tickets::Tickets;
use crate::clock::Nanos;
use crate::cluster::scoreboard::Scoreboard;
use crate::transport::poller::{token, Poller};
use fairlead_system::wake_up;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::Ordering::SeqCst;

/// See the head of this file.
pub struct WaitingRoom {
    scoreboard: &'static Scoreboard,
    queue: Queue,
    /// An eventfd. The kernel wakes one worker for each request; a worker that leaves it to others wakes another one
    /// with this.
    signal: OwnedFd,
}

impl WaitingRoom {
    pub(super) fn new(scoreboard: &'static Scoreboard) -> std::io::Result<WaitingRoom> {
        Ok(WaitingRoom {
            scoreboard,
            queue: Queue::new(scoreboard, &scoreboard.attendance)?,
            signal: wake_up::open()?,
        })
    }

    /// The waiting room of another process, from its descriptors: the ends for senders and receivers, and the signal.
    pub(super) fn of(
        scoreboard: &'static Scoreboard,
        [sender, receiver]: [OwnedFd; 2],
        signal: OwnedFd,
    ) -> WaitingRoom {
        WaitingRoom {
            scoreboard,
            queue: Queue::of(scoreboard, &scoreboard.attendance, sender, receiver),
            signal,
        }
    }

    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        let [sender, receiver] = self.queue.ends();
        [sender, receiver, self.signal.as_fd()]
    }

    /// Tickets of the requests, which tell if their clients have left.
    pub(crate) fn tickets(&self) -> &'static Tickets {
        &self.scoreboard.tickets
    }

    /// Scoreboard with the counts of the room.
    pub(crate) fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// Registers the queue of requests with `poller`.
    pub(crate) fn watch(&self, poller: &Poller) -> rustix::io::Result<()> {
        let add = |fd: BorrowedFd<'_>, token| match poller.add_shared(fd, token) {
            Err(Errno::EXIST) => Ok(()),
            result => result,
        };
        add(self.queue.receiver(), token::ROOM)?;
        add(self.signal.as_fd(), token::SIGNAL)
    }

    pub(crate) fn unwatch(&self, poller: &Poller) {
        poller.remove(self.queue.receiver());
        poller.remove(&self.signal);
    }

    /// Wakes another worker that watches, if a request may be waiting. If none watches now, wakes the next worker that
    /// does.
    pub fn signal(&self) {
        if self.is_occupied() {
            wake_up::ring(&self.signal);
        }
    }

    /// Resets the eventfd.
    pub(crate) fn clear_signal(&self) {
        wake_up::take(&self.signal);
    }

    /// True if a request may be waiting: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.queue.is_occupied()
    }

    /// Puts a request into the room, from the worker in `slot`. The caller keeps it, too.
    pub(crate) fn send(&self, request: &OutgoingMigration<'_>, slot: usize) -> Sent {
        let sent = self.queue.send(request, slot);
        match sent {
            Sent::Done => _ = self.scoreboard.moved.fetch_add(1, SeqCst),
            Sent::Full => _ = self.scoreboard.refused.fetch_add(1, SeqCst),
            Sent::TooLong | Sent::Gone => {}
        }
        sent
    }

    /// Time since when the first request in the room has waited for its turn.
    pub(crate) fn first_waits_since(&self) -> Option<Nanos> {
        self.queue.first_waits_since()
    }

    /// Takes out the oldest request, for the worker in `slot`.
    pub(crate) fn receive(&self, slot: usize) -> Received {
        let received = self.queue.receive(slot);
        match &received {
            Received::Migration(incoming) => self.tickets().take(incoming.ticket),
            Received::Spoiled(spoiled) => self.tickets().take(spoiled.ticket),
            Received::Nobody | Received::Short => {}
        }
        received
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::OutgoingResponse;
    use super::super::tickets::PLACES;
    use super::super::SharedQueues;
    use super::*;
    use crate::http::body::Body;

    #[test]
    fn there_are_tickets_for_all_requests_in_the_room() {
        let queues = SharedQueues::new(Box::leak(Box::default())).expect("socket pairs");
        let (room, socket) = (queues.waiting_room(), wake_up::open().expect("a descriptor"));
        let request = OutgoingMigration::shortest(socket.as_fd());
        let mut count = 0;
        while count <= PLACES && room.send(&request, 0) == Sent::Done {
            count += 1;
        }
        assert!(count < PLACES, "{count} requests");
    }

    #[test]
    fn a_request_that_arrives_incomplete_keeps_no_ticket() {
        let queues = SharedQueues::new(Box::leak(Box::default())).expect("socket pairs");
        let (room, descriptor) = (queues.waiting_room(), wake_up::open().expect("a descriptor"));
        let body = Body::File(tempfile::tempfile().expect("a file"), 0);
        let ticket = room.tickets().issue(0);
        // A message carries one file: the second one is missing.
        let request = OutgoingMigration {
            body: &body,
            response: Some(OutgoingResponse {
                bytes: b"",
                file: Some(descriptor.as_fd()),
            }),
            ticket,
            ..OutgoingMigration::shortest(descriptor.as_fd())
        };
        assert_eq!(room.send(&request, 0), Sent::Done);
        room.tickets().leave(ticket);
        assert!(room.tickets().have_left(1));
        assert!(matches!(room.receive(0), Received::Spoiled(spoiled) if spoiled.socket.is_some()));
        assert!(!room.tickets().have_left(1), "it would raise `queue_limit`");
    }
}
