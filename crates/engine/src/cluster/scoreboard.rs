//! The scoreboard: a mapping of atomics that all workers and the supervisor share. Anyone reads it without asking.
//!
//! The layout holds nothing but atomics, so that a page of zeros is a valid scoreboard and no worker can leave it half-written.

use crate::cluster::waiting_room::Attendance;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Workers that a scoreboard has room for.
pub const SLOTS: usize = 64;

/// Shared by all processes of one server.
#[repr(C)]
#[derive(Debug)]
pub struct Scoreboard {
    /// Connections in the waiting room.
    pub(crate) attendance: Attendance,
    /// Connections that were ever put there.
    pub moved: AtomicU64,
    /// Connections that the kernel had no room for.
    pub refused: AtomicU64,
    /// Workers with a number below this one have read mail.
    mailboxes: AtomicU64,
    /// Where processes count that have no number: the supervisor, and what an app forks.
    others: Slot,
    slots: [Slot; SLOTS],
}

/// What one worker tells the others. Counters only grow; gauges are stored by the worker itself.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Slot {
    /// Milliseconds on the monotonic clock when the worker was last known alive; 0 before it starts.
    pub beat: AtomicU64,
    /// 1 from the start of the worker until it drains.
    pub serving: AtomicU64,
    /// Open connections.
    pub connections: AtomicI64,
    /// Requests that wait for a thread.
    pub queued: AtomicU64,
    /// Threads that run the app.
    pub busy_threads: AtomicU64,
    /// Threads that have been started.
    pub threads: AtomicU64,
    /// Requests answered.
    pub requests: AtomicU64,
    /// Those of them that the public folder has answered.
    pub files: AtomicU64,
    /// Threads that are about to put somebody into the waiting room, or to take somebody out.
    pub(crate) in_room: AtomicU64,
    /// Connections sent to the waiting room.
    pub moved_out: AtomicU64,
    /// Connections taken from the waiting room.
    pub moved_in: AtomicU64,
    /// Requests refused with a 4xx or 5xx status by the server itself.
    pub refused_requests: AtomicU64,
    /// Connections refused for want of descriptors or above the limit.
    pub refused_connections: AtomicU64,
    /// The mailboxes that the worker can put envelopes into: bit n is for that of worker n.
    pub(crate) known_mailboxes: AtomicU64,
    /// 1 while the worker reads its mail.
    pub reads_mail: AtomicU64,
    /// Bytes of large messages that wait in its mailbox; may be briefly off, and is set right when the mailbox is empty.
    pub mail_bytes: AtomicI64,
    /// Messages published by the worker.
    pub published: AtomicU64,
    /// Messages handed to its subscribers.
    pub delivered: AtomicU64,
    /// Messages sent to other workers.
    pub mail_sent: AtomicU64,
    /// Messages received from other processes.
    pub mail_received: AtomicU64,
    /// How often one of its publishers met a full mailbox and waited.
    pub mail_waits: AtomicU64,
    /// Messages that another worker did not take in time, or that could not be read.
    pub mail_lost: AtomicU64,
    /// Open clients: upgraded connections.
    pub clients: AtomicI64,
    /// Callbacks of clients that were run.
    pub events: AtomicU64,
    /// Messages dropped because a client was too slow.
    pub dropped: AtomicU64,
    /// Clients closed because they were too slow.
    pub overflowed: AtomicU64,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Scoreboard {
            attendance: Attendance::default(),
            moved: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            mailboxes: AtomicU64::new(0),
            others: Slot::default(),
            slots: std::array::from_fn(|_| Slot::default()),
        }
    }
}

impl Scoreboard {
    /// The place of worker number `index`.
    ///
    /// # Panics
    /// If `index` is not below [`SLOTS`].
    pub fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    /// The place of all processes that are no workers.
    pub fn others(&self) -> &Slot {
        &self.others
    }

    /// Connections in the waiting room; it may be too many for a moment, but never too few.
    pub fn waiting(&self) -> u64 {
        self.attendance.count()
    }

    /// Threads of all workers that are inside the waiting room.
    pub(crate) fn visitors(&self) -> u64 {
        self.slots.iter().map(|slot| slot.in_room.load(SeqCst)).sum()
    }

    /// Whether workers that serve have fewer connections, with those in the waiting room, than `most` each.
    pub(crate) fn has_place(&self, most: u64) -> bool {
        let serving = self.slots.iter().filter(|slot| slot.serving.load(Relaxed) == 1);
        let connections = |slot: &Slot| u64::try_from(slot.connections.load(Relaxed)).unwrap_or(0);
        let (workers, taken) = serving.fold((0u64, self.waiting()), |(workers, taken), slot| {
            (workers + 1, taken + connections(slot))
        });
        taken < workers.saturating_mul(most)
    }

    /// Workers with this number or a higher one have never read mail.
    pub(crate) fn mailboxes(&self) -> usize {
        self.mailboxes.load(SeqCst) as usize
    }

    /// Worker number `index` is about to read its mail.
    pub(crate) fn count_mailbox(&self, index: usize) {
        self.mailboxes.fetch_max(index as u64 + 1, SeqCst);
    }

    /// Whether workers other than number `index` go on serving.
    pub fn others_serve(&self, index: usize) -> bool {
        let mut slots = self.slots.iter().enumerate();
        slots.any(|(number, slot)| number != index && slot.serving.load(SeqCst) == 1)
    }

    /// The connections of the other worker that serves the fewest; `None` if no other one serves.
    pub(crate) fn fewest_elsewhere(&self, index: usize) -> Option<i64> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(number, slot)| *number != index && slot.serving.load(Relaxed) == 1)
            .map(|(_, slot)| slot.connections.load(Relaxed))
            .min()
    }
}

impl Slot {
    /// Turns that threads of the app have ended: requests, but for those that needed none, and events.
    pub(crate) fn turns(&self) -> u64 {
        let requests = self.requests.load(Relaxed).wrapping_sub(self.files.load(Relaxed));
        requests.wrapping_add(self.events.load(Relaxed))
    }

    /// Says that the worker is alive.
    pub fn beat(&self) {
        self.beat.store(crate::clock::milliseconds(), Relaxed);
    }

    /// Seconds since the last [`Slot::beat`]; `None` before the first.
    pub fn age(&self) -> Option<f64> {
        match self.beat.load(Relaxed) {
            0 => None,
            beat => Some(crate::clock::milliseconds().saturating_sub(beat) as f64 / 1000.0),
        }
    }

    /// Whether messages for the worker are to be put into its mailbox.
    pub(crate) fn reads_mail(&self) -> bool {
        self.reads_mail.load(SeqCst) == 1
    }

    /// Makes the place fresh for the next worker.
    pub fn reset(&self) {
        self.beat.store(0, Relaxed);
        for gauge in [&self.connections, &self.mail_bytes, &self.clients] {
            gauge.store(0, Relaxed);
        }
        self.in_room.store(0, SeqCst);
        self.reads_mail.store(0, SeqCst);
        for counter in [
            &self.serving,
            &self.queued,
            &self.busy_threads,
            &self.threads,
            &self.requests,
            &self.files,
            &self.moved_out,
            &self.moved_in,
            &self.refused_requests,
            &self.refused_connections,
            &self.published,
            &self.delivered,
            &self.known_mailboxes,
            &self.mail_sent,
            &self.mail_received,
            &self.mail_waits,
            &self.mail_lost,
            &self.events,
            &self.dropped,
            &self.overflowed,
        ] {
            counter.store(0, Relaxed);
        }
    }
}
