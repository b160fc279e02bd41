//! Queue of the waiting room: carries connections from worker to worker. Any worker puts connections in and takes them out.

use super::attendance::Attendance;
use super::kernel_queue::{Arrived, KernelQueue};
use super::message::{is_relayed, open, waits_since, IncomingMigration, OutgoingMigration, Spoiled, DESCRIPTORS};
use super::outlet::Sent;
use crate::clock::Nanos;
use crate::cluster::scoreboard::Scoreboard;
use rustix::fd::{BorrowedFd, OwnedFd};

/// See the head of this file.
pub(crate) struct Queue(KernelQueue);

/// Result of an attempt to take a connection out.
#[derive(Debug)]
pub(crate) enum Received {
    Migration(IncomingMigration),
    Nobody,
    /// Nothing was taken, because this process has too few descriptors left.
    Short,
    /// Incomplete: the process ran out of descriptors during the receive.
    Spoiled(Spoiled),
}

impl Queue {
    /// Makes a queue that is counted in `attendance`.
    pub(super) fn new(scoreboard: &'static Scoreboard, attendance: &'static Attendance) -> std::io::Result<Queue> {
        Ok(Queue(KernelQueue::new(scoreboard, attendance)?))
    }

    pub(super) fn of(
        scoreboard: &'static Scoreboard,
        attendance: &'static Attendance,
        sender: OwnedFd,
        receiver: OwnedFd,
    ) -> Queue {
        Queue(KernelQueue::of(scoreboard, attendance, sender, receiver))
    }

    /// Ends for senders and for receivers.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        self.0.ends()
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.0.receiver()
    }

    /// True if the queue may have a connection: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.len() > 0
    }

    /// Number of connections in the queue. May be too high for a moment, but is never too low.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Puts a connection in, from the worker in `slot`. The caller keeps it, too.
    pub(crate) fn send(&self, outgoing: &OutgoingMigration<'_>, slot: usize) -> Sent {
        let outlet = self.0.outlet();
        let is_relayed = outgoing.back_channel.is_some();
        outlet.send_connection(outgoing, |put| self.0.send(slot, is_relayed, put))
    }

    /// Takes out the oldest connection, for the worker in `slot`.
    pub(crate) fn receive(&self, slot: usize) -> Received {
        match self.0.receive(slot, DESCRIPTORS, is_relayed) {
            Arrived::Datagram(bytes, descriptors) => {
                open(&bytes, descriptors).map_or_else(Received::Spoiled, Received::Migration)
            }
            Arrived::Nothing => Received::Nobody,
            Arrived::Short => Received::Short,
        }
    }

    /// Time since when the first connection has waited, without taking it out; `None` if there is none. Another worker
    /// may take it at any time.
    pub(super) fn first_waits_since(&self) -> Option<Nanos> {
        Some(waits_since(&self.0.peek()?))
    }
}
