//! Scoreboard: a mapping of atomics that all workers and the supervisor share. Any process may read all of it.
//!
//! It holds only atomics, so a page of zeros is a valid scoreboard, and no worker can leave it half-written.

use crate::clock::Millis;
use crate::cluster::active::Active;
use crate::cluster::histogram::{AtomicHistogram, Histogram};
use crate::cluster::lasting::Lasting;
use crate::cluster::ledger::Ledger;
use crate::cluster::pause::Pause;
use crate::cluster::queue_delay::QueueDelay;
use crate::cluster::queues::{Attendance, Tickets};
use crate::cluster::running::RunningRequests;
use crate::cluster::statistics::{statistics, Kind, Shown, Statistic, Stats};
use crate::tls::TicketKeys;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Number of workers in a scoreboard.
pub const SLOTS: usize = 64;

/// Number of [`Lasting`] counts. Workers 0, 8, 16 and so on share one.
pub(super) const LASTING: usize = 8;

/// Shared by all processes of one server.
#[repr(C)]
#[derive(Debug)]
pub struct Scoreboard {
    /// Number of requests in the waiting room.
    pub(crate) attendance: Attendance,
    /// Tickets of these requests.
    pub(crate) tickets: Tickets,
    /// Number of connections without a request in the waiting room: a worker has sent them, and no worker has taken
    /// them over yet.
    pub(crate) migrating: Attendance,
    /// Number of clients that a worker has sent, and that no worker has taken over yet.
    pub(crate) migrating_clients: Attendance,
    /// Workers that have ever begun to serve.
    pub(crate) begun: AtomicU64,
    /// 1 while workers of another release send connections and clients, which they cannot count.
    predecessors: AtomicU64,
    /// A random number, by which workers of another release know that a cut is not of their scoreboard; 0 until it is needed.
    id: AtomicU64,
    /// Requests that were ever put into the waiting room.
    pub moved: AtomicU64,
    /// Requests that stayed with their worker, because the kernel had no room for them.
    pub refused: AtomicU64,
    /// One more than the highest index of a worker that has ever read mail.
    mailboxes: AtomicU64,
    /// One more than the index of the leader; see [`Scoreboard::lead`].
    leader: AtomicU64,
    /// The number of the last piece of work that a leader has done, for the next leader, its time in milliseconds on the
    /// monotonic clock, and the offset in the history after it; 0 for none.
    pub(crate) progress: [AtomicU64; 3],
    /// Counts of replaced workers in histograms.
    past: Slot,
    /// Keys for the encryption of session tickets.
    pub ticket_keys: TicketKeys,
    /// The pause of the server.
    pub pause: Pause,
    /// Running time of the requests of each flow.
    pub(crate) ledger: Ledger,
    /// Wait of the requests in all queues.
    pub(crate) queue_delay: QueueDelay,
    pub(super) lasting: [Lasting; LASTING],
    /// Slot for processes without an index: the supervisor, and processes that an app forks.
    others: Slot,
    pub(super) slots: [Slot; SLOTS],
    /// Requests that the threads of all workers run.
    running: RunningRequests,
}

/// A statistic of the waiting room, and the function that reads it.
struct OfRoom(Statistic, fn(&Scoreboard) -> u64);

/// Statistics of the waiting room.
const ROOM: [OfRoom; 3] = [
    OfRoom::new(
        "waiting",
        Kind::Gauge,
        "Requests in the waiting room.",
        Scoreboard::waiting,
    ),
    OfRoom::new(
        "moved",
        Kind::Counter,
        "Requests ever put into the waiting room.",
        |scoreboard| scoreboard.moved.load(Relaxed),
    ),
    OfRoom::new(
        "refused",
        Kind::Counter,
        "Requests that stayed with their worker, because the kernel had no room for them.",
        |scoreboard| scoreboard.refused.load(Relaxed),
    ),
];

impl OfRoom {
    const fn new(name: &'static str, kind: Kind, help: &'static str, read: fn(&Scoreboard) -> u64) -> OfRoom {
        let shown = Shown::Everywhere;
        OfRoom(
            Statistic {
                name,
                kind,
                shown,
                help,
            },
            read,
        )
    }
}

macro_rules! atomic {
    (Gauge) => {
        AtomicI64
    };
    (Counter) => {
        AtomicU64
    };
    (Histogram) => {
        AtomicHistogram
    };
}

macro_rules! clear {
    (Histogram, $own:expr) => {
        $own.clear()
    };
    ($kind:ident, $own:expr) => {
        $own.store(0, Relaxed)
    };
}

/// Only histograms outlive the worker that counted.
macro_rules! keep {
    (Histogram, $past:expr, $own:expr) => {
        $past.add(&$own.load(Relaxed))
    };
    ($kind:ident, $past:expr, $own:expr) => {};
}

macro_rules! owner {
    (Engine, $engine:ident, $process:ident) => {
        $engine
    };
    (Process, $engine:ident, $process:ident) => {
        $process
    };
}

macro_rules! slot {
    ($($name:ident: $kind:ident, $owner:ident, $shown:ident, $help:literal;)*) => {
        /// State and statistics that one worker publishes for the others, see `statistics.rs`. Counters only grow;
        /// gauges are stored by the worker itself.
        #[repr(C, align(64))]
        #[derive(Debug, Default)]
        pub struct Slot {
            /// Milliseconds on the monotonic clock when the worker was last known alive; 0 before it starts.
            pub beat: AtomicU64,
            /// 1 from the start of a worker until it drains: it takes connections from others.
            pub serving: AtomicU64,
            /// The generation of the worker: see [`Config::generation`](crate::Config::generation).
            pub(crate) generation: AtomicU64,
            /// Most connections of the worker.
            pub(crate) most_connections: AtomicU64,
            /// Connections that the worker has accepted, also to refuse them.
            pub(crate) accepted: AtomicU64,
            /// Most threads of the worker.
            pub(crate) most_threads: AtomicU64,
            /// 1 once the supervisor has given up the worker: it shows no sign of life, and will be killed.
            pub(crate) given_up: AtomicU64,
            /// Threads that are about to put something into the waiting room, or to take something out.
            pub(crate) in_room: AtomicU64,
            /// Mailboxes that the worker can put envelopes into: bit n stands for worker n.
            pub(crate) known_mailboxes: AtomicU64,
            /// 1 while the worker reads its mail.
            pub reads_mail: AtomicU64,
            /// Bytes of large messages in the worker's mailbox. May be briefly wrong; corrected when the mailbox is
            /// empty.
            pub mail_bytes: AtomicI64,
            /// The place in the history up to which the worker has read, plus one; 0 if it does not read it.
            pub(crate) history_place: AtomicU64,
            /// 1 while the dispatcher of the worker sleeps.
            pub(crate) asleep: AtomicU64,
            /// 1 while the worker leads, or wants to.
            pub(crate) leads: AtomicU64,
            /// Requests that have run for longer than `stuck_after`. The worker stores it; the supervisor replaces a
            /// worker that has any.
            pub stuck: AtomicU32,
            /// Requests that the threads run.
            pub(crate) active: Active,
            /// The number of the last publication to other processes. It outlives the worker: a number never comes
            /// again.
            pub(crate) last_publication: AtomicU64,
            $(#[doc = $help] pub $name: atomic!($kind),)*
        }

        impl Slot {
            /// Clears the slot for the next worker.
            pub fn reset(&self) {
                // Destructured, so that the compiler reports a missing field.
                let Slot { beat, serving, generation, most_connections, accepted, most_threads, given_up, in_room, known_mailboxes, reads_mail, mail_bytes, history_place, asleep, leads, stuck, active, last_publication: _, $($name),* } = self;
                for word in [beat, serving, generation, most_connections, accepted, most_threads, given_up, in_room, known_mailboxes, reads_mail, history_place, asleep, leads] {
                    word.store(0, SeqCst);
                }
                mail_bytes.store(0, SeqCst);
                stuck.store(0, SeqCst);
                active.clear();
                $(clear!($kind, $name);)*
            }

            /// Adds the histograms of a worker that has ended.
            fn keep(&self, ended: &Slot) {
                $(keep!($kind, self.$name, ended.$name);)*
            }

            /// Statistics of the engine that counts in this slot. `process` is the slot in which its process counts:
            /// the same one, or another.
            pub fn stats(&self, process: &Slot) -> Stats {
                let engine = self;
                Stats {
                    $($name: owner!($owner, engine, process).$name.load(Relaxed),)*
                }
            }
        }
    };
}
statistics!(slot);

impl Default for Scoreboard {
    fn default() -> Self {
        Scoreboard {
            attendance: Attendance::default(),
            tickets: Tickets::default(),
            migrating: Attendance::default(),
            migrating_clients: Attendance::default(),
            begun: AtomicU64::new(0),
            predecessors: AtomicU64::new(0),
            id: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            mailboxes: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            progress: Default::default(),
            past: Slot::default(),
            ticket_keys: TicketKeys::new(),
            pause: Pause::default(),
            ledger: Ledger::default(),
            queue_delay: QueueDelay::default(),
            lasting: [const { Lasting::new() }; LASTING],
            others: Slot::default(),
            slots: std::array::from_fn(|_| Slot::default()),
            running: RunningRequests::default(),
        }
    }
}

impl Scoreboard {
    /// Begins or ends the time in which workers of another release send connections and clients.
    pub fn set_predecessors(&self, are_there: bool) {
        self.predecessors.store(are_there.into(), SeqCst);
    }

    pub(crate) fn has_predecessors(&self) -> bool {
        self.predecessors.load(Relaxed) == 1
    }

    /// A number that no other scoreboard has.
    pub(crate) fn id(&self) -> u64 {
        let id = self.id.load(SeqCst);
        if id != 0 {
            return id;
        }
        let random = RandomState::new().hash_one(std::process::id()).max(1);
        self.id
            .compare_exchange(0, random, SeqCst, SeqCst)
            .map_or_else(|other| other, |_| random)
    }

    /// Slot of worker `index`.
    ///
    /// # Panics
    /// If `index` is not below [`SLOTS`].
    pub fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    /// Requests that the threads of all workers run.
    pub fn running(&self) -> &RunningRequests {
        &self.running
    }

    /// Clears the slot of worker `index` for the next worker. Its histograms go to [`Scoreboard::times`].
    ///
    /// # Panics
    /// If `index` is not below [`SLOTS`].
    pub fn reset(&self, index: usize) {
        self.past.keep(self.slot(index));
        self.slot(index).reset();
        self.running.reset(index);
    }

    /// Histograms of all workers, including replaced workers.
    pub fn times(&self) -> impl Iterator<Item = (&'static Statistic, Histogram)> {
        let mut times: Vec<(&'static Statistic, Histogram)> = histograms(&self.past).collect();
        for slot in &self.slots {
            for ((_, sum), (_, own)) in times.iter_mut().zip(histograms(slot)) {
                *sum = sum.plus(own);
            }
        }
        times.into_iter()
    }

    /// Slot of all processes that are not workers.
    pub fn others(&self) -> &Slot {
        &self.others
    }

    /// The slots of all processes that publish: of those without an index first, then of each worker.
    pub(crate) fn senders(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.others).chain(&self.slots)
    }

    /// Requests in the waiting room. May be too high for a moment, but is never too low.
    pub fn waiting(&self) -> u64 {
        self.attendance.count()
    }

    /// Statistics of the waiting room.
    pub fn room(&self) -> impl Iterator<Item = (Statistic, u64)> + '_ {
        ROOM.iter().map(|OfRoom(statistic, read)| (*statistic, read(self)))
    }

    /// The statistics that [`Scoreboard::room`] returns, without the values.
    pub fn room_statistics() -> impl Iterator<Item = Statistic> {
        ROOM.iter().map(|OfRoom(statistic, _)| *statistic)
    }

    /// Number of threads of all workers inside the waiting room.
    pub(crate) fn visitors(&self) -> u64 {
        self.slots.iter().map(|slot| slot.in_room.load(SeqCst)).sum()
    }

    /// Migrating connections that no worker has taken over yet. As exact as [`Scoreboard::waiting`].
    pub fn migrating(&self) -> u64 {
        self.migrating.count()
    }

    /// True if the serving workers have, together with the waiting room, fewer than `most` connections each. A request
    /// without its connection is none, but as many as the workers have threads get a place: it is relayed through a socket.
    pub(crate) fn has_place(&self, most: u64) -> bool {
        let serving = self.slots.iter().filter(|slot| slot.serving.load(Relaxed) == 1);
        let (workers, threads, connections) =
            serving.fold((0u64, 0u64, 0u64), |(workers, threads, connections), slot| {
                let more = u64::try_from(slot.connections.load(Relaxed)).unwrap_or(0);
                (
                    workers + 1,
                    threads + slot.most_threads.load(Relaxed),
                    connections + more,
                )
            });
        let (waiting, relayed) = self.attendance.connections_and_relayed();
        let under_way = waiting + relayed.min(threads) + self.migrating() + self.migrating_clients.count();
        under_way + connections < workers.saturating_mul(most)
    }

    /// Makes the worker of this slot the leader, if there is none. Returns true if it leads. A worker that has ended leads no
    /// more, as soon as its slot is cleared.
    pub fn lead(&self, slot: usize) -> bool {
        let own = slot as u64 + 1;
        let leader = self.leader.load(SeqCst);
        let leads = |leader: u64| {
            self.slots
                .get(leader as usize - 1)
                .is_some_and(|slot| slot.leads.load(SeqCst) != 0)
        };
        if leader == own && leads(own) {
            return true;
        }
        if leader != 0 && leads(leader) {
            return false;
        }
        self.slots[slot].leads.store(1, SeqCst);
        let has_won = self.leader.compare_exchange(leader, own, SeqCst, SeqCst).is_ok();
        if !has_won {
            self.slots[slot].leads.store(0, SeqCst);
        }
        has_won
    }

    /// Lets another worker lead.
    pub fn stop_leading(&self, slot: usize) {
        self.slots[slot].leads.store(0, SeqCst);
    }

    /// One more than the highest index of a worker that has ever read mail.
    pub(crate) fn mailboxes(&self) -> usize {
        self.mailboxes.load(SeqCst) as usize
    }

    /// Called before worker `index` reads its mail for the first time.
    pub(crate) fn count_mailbox(&self, index: usize) {
        self.mailboxes.fetch_max(index as u64 + 1, SeqCst);
    }

    /// True if a worker other than `index` serves and does not drain.
    pub fn others_serve(&self, index: usize) -> bool {
        let mut slots = self.slots.iter().enumerate();
        slots.any(|(number, slot)| number != index && slot.serving.load(SeqCst) == 1)
    }

    /// The latest generation that serves.
    pub(crate) fn newest(&self) -> Option<u64> {
        let serving = self.slots.iter().filter(|slot| slot.serving.load(SeqCst) == 1);
        serving.map(|slot| slot.generation.load(SeqCst)).max()
    }

    /// True if no worker that serves has a later generation than the worker `index`.
    pub(crate) fn is_newest(&self, index: usize) -> bool {
        let own = self.slots[index].generation.load(SeqCst);
        self.newest().is_none_or(|newest| newest <= own)
    }

    /// True if the workers of the latest generation that serves have places for the clients under way, and for one more.
    pub(crate) fn has_place_for_clients(&self) -> bool {
        let serving = || self.slots.iter().filter(|slot| slot.serving.load(SeqCst) == 1);
        let newest = self.newest();
        let newest = serving().filter(|slot| Some(slot.generation.load(SeqCst)) == newest);
        let free = |slot: &Slot| {
            let taken = u64::try_from(slot.connections.load(Relaxed)).unwrap_or(0);
            slot.most_connections.load(Relaxed).saturating_sub(taken)
        };
        newest.map(free).sum::<u64>() > self.migrating_clients.count()
    }
}

fn histograms(slot: &Slot) -> impl Iterator<Item = (&'static Statistic, Histogram)> {
    slot.stats(slot).histograms()
}

impl Slot {
    /// Turns that threads of the app have ended: events, and requests except requests for files, which need no thread.
    pub(crate) fn turns(&self) -> u64 {
        let requests = self.requests.load(Relaxed).wrapping_sub(self.files.load(Relaxed));
        requests.wrapping_add(self.events.load(Relaxed))
    }

    /// Records that the worker is alive.
    pub fn beat(&self) {
        self.beat.store(Millis::now().to_number(), Relaxed);
    }

    /// Tells the worker, which no longer responds to the supervisor, to migrate its connections as far as possible.
    pub fn give_up(&self) {
        self.given_up.store(1, SeqCst);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed) == 1
    }

    /// Seconds since the last [`Slot::beat`]; `None` before the first.
    pub fn age(&self) -> Option<f64> {
        match self.beat.load(Relaxed) {
            0 => None,
            beat => Some((Millis::now() - Millis::from_number(beat)).as_secs_f64()),
        }
    }

    /// True if messages for the worker should be put into its mailbox.
    pub(crate) fn reads_mail(&self) -> bool {
        self.reads_mail.load(SeqCst) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_leads_until_it_stops_or_ends() {
        let scoreboard: Box<Scoreboard> = Box::default();
        assert!(scoreboard.lead(3) && scoreboard.lead(3));
        assert!(!scoreboard.lead(0));
        scoreboard.stop_leading(3);
        assert!(scoreboard.lead(0) && !scoreboard.lead(3));
        scoreboard.reset(0);
        assert!(scoreboard.lead(5) && !scoreboard.lead(0));
    }

    #[test]
    fn the_next_worker_of_a_slot_continues_the_numbers_of_publications() {
        let scoreboard: Box<Scoreboard> = Box::default();
        scoreboard.slot(3).last_publication.store(7, Relaxed);
        scoreboard.reset(3);
        assert_eq!(scoreboard.slot(3).last_publication.load(Relaxed), 7);
    }
}
