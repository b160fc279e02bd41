//! State that all parts of one worker's engine share: its configuration, poll set, log and counters, and its phase. It
//! depends on none of these parts.

mod count;

pub(crate) use count::{ActiveRequest, ClientProtocol, Count};

use crate::clock::{AtomicMillis, Millis};
use crate::cluster::membership::Membership;
use crate::cluster::pause::Pause;
use crate::cluster::queues::Heirs;
use crate::cluster::responses::ResponseKind;
use crate::cluster::running::{Place, RunningRequests};
use crate::cluster::scoreboard::{Scoreboard, Slot};
use crate::config::{Config, Logs};
use crate::home::Home;
use crate::http::refusal::Refusal;
use crate::observe::log_writer::LogWriter;
use crate::transport::listener::Listener;
use crate::transport::poller::Poller;
use crate::transport::timer::Timer;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) struct Worker {
    pub(crate) config: Config,
    pub(crate) poller: Poller,
    pub(crate) log: LogWriter,
    timer: Timer,
    counters: Counters,
    /// Shows running requests to other processes, if others can see this one.
    running: Option<(&'static RunningRequests, usize)>,
    /// A [`Lifecycle`].
    phase: AtomicU8,
    /// Time at which idle connections are closed, once draining has set it.
    drain_deadline: AtomicMillis,
    /// True if other workers continue when this one drains, so that its connections migrate to them.
    migrates_connections: AtomicBool,
    /// True if it waits for hijacked connections in a drain, because nobody has asked for its end.
    is_patient: AtomicBool,
    /// True once the app has hijacked a connection.
    has_hijacked: AtomicBool,
    /// Workers of another release that continue in place of all workers of this one.
    heirs: OnceLock<Heirs>,
    /// Inodes of the listeners that end with this worker.
    ending: OnceLock<Box<[u64]>>,
    /// True if the poller should be woken when a connection is closed.
    is_place_wanted: AtomicBool,
    home: Home,
    #[cfg(test)]
    pub(crate) faults: crate::fault::Faults,
}

enum Counters {
    Own(Box<Slot>),
    /// Other processes read them, but do not work together with this one.
    Shown(&'static Scoreboard, usize),
    Shared(&'static Scoreboard, usize),
}

/// The order of the values is the order of the phases.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Lifecycle {
    Serving,
    /// Still accepts, but each response ends its connection.
    Leaving,
    Draining,
    Stopped,
}

impl Worker {
    pub(crate) fn new(config: Config, logs: Logs, membership: Option<&Membership>) -> std::io::Result<Worker> {
        Ok(Worker {
            config,
            poller: Poller::new()?,
            log: LogWriter::new(logs),
            timer: Timer::default(),
            running: membership.map(|membership| match membership {
                Membership::Worker(queues, slot) => (queues.scoreboard().running(), *slot),
                Membership::Alone(scoreboard, slot) => (scoreboard.running(), *slot),
            }),
            counters: match membership {
                Some(Membership::Worker(queues, slot)) => Counters::Shared(queues.scoreboard(), *slot),
                Some(Membership::Alone(scoreboard, slot)) => Counters::Shown(scoreboard, *slot),
                None => Counters::Own(Box::default()),
            },
            phase: AtomicU8::new(Lifecycle::Serving as u8),
            drain_deadline: AtomicMillis::new(Millis::NEVER),
            migrates_connections: AtomicBool::new(false),
            is_patient: AtomicBool::new(false),
            has_hijacked: AtomicBool::new(false),
            heirs: OnceLock::new(),
            ending: OnceLock::new(),
            is_place_wanted: AtomicBool::new(false),
            home: Home::here(),
            #[cfg(test)]
            faults: crate::fault::Faults::default(),
        })
    }

    /// Counters that this worker publishes for the others.
    pub(crate) fn counters(&self) -> &Slot {
        match &self.counters {
            Counters::Own(slot) => slot,
            Counters::Shown(scoreboard, slot) | Counters::Shared(scoreboard, slot) => scoreboard.slot(*slot),
        }
    }

    /// Scoreboard and slot in which this worker counts; `None` if no other process reads its counters.
    fn shown(&self) -> Option<(&'static Scoreboard, usize)> {
        match self.counters {
            Counters::Own(_) => None,
            Counters::Shown(scoreboard, slot) | Counters::Shared(scoreboard, slot) => Some((scoreboard, slot)),
        }
    }

    /// Counts a response, except in a process that the app has forked.
    pub(crate) fn count_response(&self, kind: ResponseKind, time: Duration) {
        if let Some((scoreboard, slot)) = self.shown().filter(|_| self.is_at_home()) {
            scoreboard.count_response(slot, kind, time);
        }
    }

    /// Counts a request or a connection that is refused.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        if let Some((scoreboard, slot)) = self.shown() {
            scoreboard.lasting(slot).refusals.count(refusal);
        }
    }

    /// A place where this thread shows its request to other processes; `None` if there is none, or no other process can
    /// see this one.
    pub(crate) fn take_place(&self) -> Option<Place> {
        let (running, slot) = self.running?;
        running.take_place(slot)
    }

    /// Scoreboard of all workers, and the slot of this one; `None` for a single process.
    pub(crate) fn shared(&self) -> Option<(&'static Scoreboard, usize)> {
        match self.counters {
            Counters::Own(_) | Counters::Shown(..) => None,
            Counters::Shared(scoreboard, slot) => Some((scoreboard, slot)),
        }
    }

    /// The pause of the server; `None` if no other process knows of this one.
    pub(crate) fn pause(&self) -> Option<&'static Pause> {
        self.shown().map(|(scoreboard, _)| &scoreboard.pause)
    }

    /// Announces that this worker takes connections from others, as long as it does not drain. A process that serves
    /// alone takes none.
    pub(crate) fn announce(&self) {
        if let Some((scoreboard, _)) = self.shared() {
            scoreboard.begun.fetch_add(1, SeqCst);
            let (most, threads) = (self.config.max_connections as u64, self.config.max_threads as u64);
            self.counters().most_connections.store(most, SeqCst);
            self.counters().most_threads.store(threads, SeqCst);
            self.counters().generation.store(self.config.generation, SeqCst);
            self.counters().serving.store(1, SeqCst);
        }
    }

    /// Number of workers that have ever begun to serve.
    pub(crate) fn begun_workers(&self) -> u64 {
        self.shared().map_or(0, |(scoreboard, _)| scoreboard.begun.load(SeqCst))
    }

    /// True if this process serves; false in a process that the app has forked ([`note_fork`](crate::note_fork)).
    pub(crate) fn is_at_home(&self) -> bool {
        self.home.is_here()
    }

    /// Makes sure that the poller checks timeouts at `deadline`.
    pub(crate) fn expect(&self, deadline: Millis) {
        self.timer.expect(deadline, &self.poller);
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.timer
    }

    /// True if this worker is about to end.
    pub(crate) fn is_leaving(&self) -> bool {
        self.phase.load(Relaxed) != Lifecycle::Serving as u8
    }

    /// True if each response ends its connection: this worker is about to end, and its connections do not migrate.
    pub(crate) fn ends_connections(&self) -> bool {
        self.is_leaving() && !(self.migrates() && self.others_have_place())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.phase.load(Relaxed) >= Lifecycle::Draining as u8
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.phase.load(Relaxed) == Lifecycle::Stopped as u8
    }

    /// Ends each connection with its next response, from now on.
    pub(crate) fn begin_leave(&self) {
        self.phase.fetch_max(Lifecycle::Leaving as u8, SeqCst);
    }

    /// Serves only requests that have arrived, from now on. `migrates_connections`: to the workers that continue. `is_patient`: hijacked
    /// connections count as requests.
    pub(crate) fn begin_drain(&self, migrates_connections: bool, is_patient: bool) {
        self.is_patient.store(is_patient, SeqCst);
        self.migrates_connections.store(migrates_connections, SeqCst);
        self.counters().serving.store(0, SeqCst);
        self.phase.fetch_max(Lifecycle::Draining as u8, SeqCst);
    }

    /// The app has hijacked a connection: it cannot migrate, and nobody knows its end.
    pub(crate) fn note_hijack(&self) {
        self.has_hijacked.store(true, SeqCst);
        self.counters().immovable.fetch_add(1, Relaxed);
    }

    /// True if this worker must not end, because the app may still use a connection that it has hijacked.
    pub(crate) fn keeps_hijacked(&self) -> bool {
        self.is_patient.load(SeqCst) && self.has_hijacked.load(SeqCst) && !self.is_stopped()
    }

    /// Lets workers of another release continue with the connections of this one. The first call counts, before the drain.
    pub(crate) fn set_heirs(&self, heirs: Heirs) {
        let _ = self.heirs.set(heirs);
    }

    /// The workers of another release that take over the connections of this one.
    pub(crate) fn heirs(&self) -> Option<&Heirs> {
        self.heirs.get()
    }

    /// Makes these listeners, given by their inodes, end with this worker. The first call counts.
    pub(crate) fn end_listeners(&self, inodes: &[u64]) {
        let _ = self.ending.set(inodes.into());
    }

    /// True if a listener ends with this worker, so that it is shut down.
    pub(crate) fn ends_listener(&self, listener: &Listener) -> bool {
        let ending = self.ending.get().map_or(&[][..], |inodes| inodes);
        !ending.is_empty() && listener.inode().is_some_and(|inode| ending.contains(&inode))
    }

    /// True if this worker drains, and another one can take over its connections.
    pub(crate) fn migrates(&self) -> bool {
        let others_serve = || {
            self.shared()
                .is_some_and(|(scoreboard, slot)| scoreboard.others_serve(slot))
        };
        self.is_retiring() && self.heirs().map_or_else(others_serve, Heirs::are_there)
    }

    /// True if this worker drains while others continue.
    pub(crate) fn is_retiring(&self) -> bool {
        self.is_draining() && !self.is_stopped() && self.migrates_connections.load(Relaxed)
    }

    /// True if no worker that serves has newer code: only then it takes clients from other workers.
    pub(crate) fn is_newest(&self) -> bool {
        self.shared()
            .is_some_and(|(scoreboard, slot)| scoreboard.is_newest(slot))
    }

    /// The latest generation of the workers that continue, if this worker knows them.
    pub(crate) fn newest_heir(&self) -> Option<u64> {
        let shared = self.shared().filter(|_| self.heirs().is_none());
        shared.and_then(|(scoreboard, _)| scoreboard.newest())
    }

    /// True if the serving workers may have more connections.
    pub(crate) fn others_have_place(&self) -> bool {
        let most = self.config.max_connections as u64;
        self.heirs().is_some() || self.shared().is_some_and(|(scoreboard, _)| scoreboard.has_place(most))
    }

    /// Stops serving.
    pub(crate) fn stop(&self) {
        self.counters().serving.store(0, SeqCst);
        self.phase.store(Lifecycle::Stopped as u8, SeqCst);
    }

    /// Time at which idle connections are closed; `None` before it is set.
    pub(crate) fn drain_deadline(&self) -> Option<Millis> {
        Some(self.drain_deadline.load(Relaxed)).filter(|deadline| *deadline != Millis::NEVER)
    }

    pub(crate) fn set_drain_deadline(&self, deadline: Millis) {
        self.drain_deadline.store(deadline, Relaxed);
    }

    /// Postpones the deadline to at least this time, if it is set.
    pub(crate) fn put_off_drain_deadline(&self, deadline: Millis) {
        self.drain_deadline.fetch_max(deadline, Relaxed);
    }

    /// Requests that the poller be woken when a connection is closed.
    pub(crate) fn want_place(&self) {
        self.is_place_wanted.store(true, SeqCst);
    }

    /// Called when a connection was closed: wakes the poller if it waits for a slot.
    pub(crate) fn give_place_back(&self) {
        if self.is_place_wanted.load(SeqCst) {
            self.is_place_wanted.store(false, SeqCst);
            self.poller.wake();
        }
    }

    /// Longest time without progress of an unsent response.
    pub(crate) fn write_timeout(&self) -> Duration {
        self.config.write_timeout
    }

    /// Runs one turn. Logs a panic, and returns `None` in that case.
    pub(crate) fn guard<T>(&self, what: &str, turn: impl FnOnce() -> T) -> Option<T> {
        let result = catch_unwind(AssertUnwindSafe(turn));
        if result.is_err() {
            self.log
                .error(format_args!("[BUG] {what} panicked; its current work is dropped"));
        }
        result.ok()
    }

    /// A point at which a test makes the engine panic, or the next call fail (returns true). Does nothing in other
    /// builds.
    #[cfg(not(test))]
    #[inline(always)]
    pub(crate) fn fault(&self, _: &'static str) -> bool {
        false
    }

    #[cfg(test)]
    pub(crate) fn fault(&self, point: &'static str) -> bool {
        self.faults.strike(point)
    }
}
