//! One worker's server, as the embedding program sees it. Puts the parts together; none of them knows the engine.
//!
//! * `jobs.rs`: what the threads of the app run; `events.rs`: handles what the reactor sees.
//! * `moves.rs`: the moves of a connection between its owners; `static_files.rs`, `challenges.rs`, `redirect.rs`: requests
//!   that never reach the app.
//! * `http2.rs`: the sessions of HTTP/2, whose streams are connections for one request each.
//! * `look_ups.rs`, `file_sender.rs` and `send_queue.rs`, `uploads.rs`, `handshakes.rs`: connections that native threads work on.
//! * `giving_way.rs`: which client gives way when what all share is used up.
//! * `parties.rs`: whom a request counts for, and whether it goes ahead of others.
//! * `transfers.rs`: requests that come from other workers and go to them; `relays.rs`: those of connections that have to
//!   stay; `handoff.rs`: the same for connections without
//!   a request, in a drain.
//! * `drain.rs`: how the engine ends. `memory.rs`: returns memory; `record.rs`: logs requests; `stats.rs`: statistics.

mod challenges;
mod drain;
mod events;
mod file_sender;
mod giving_way;
mod handoff;
mod handshakes;
mod http2;
mod jobs;
mod look_ups;
mod memory;
mod moves;
mod parties;
mod record;
mod redirect;
mod relays;
mod send_queue;
mod static_files;
mod stats;
mod transfers;
mod uploads;

use crate::acme::Challenges;
use crate::app::App;
use crate::cluster::membership::Membership;
use crate::cluster::scoreboard::Slot;
use crate::cluster::waiting_room::WaitingRoom;
use crate::config::{Config, Logs};
use crate::connection::connections::Connections;
use crate::exchange::Services;
use crate::files::{Files, LookUps};
use crate::http2::Sessions;
use crate::limits::budget::Budgets;
use crate::pubsub::Hub;
use crate::reactor::Reactor;
use crate::realtime::{Host, ProcessSubscription, Realtime};
use crate::scheduler::states::Threads;
use crate::scheduler::Scheduler;
use crate::spool::{Relief, Spool};
use crate::sync::{Condvar, Mutex, TryLock};
use crate::transport::listener::{Endpoint, Listener};
use crate::worker::Worker;
use file_sender::FileSender;
use giving_way::GivingWay;
use handoff::Handoff;
use handshakes::Handshakes;
use jobs::Job;
use memory::Memory;
use parties::Parties;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use transfers::Admission;
use uploads::Uploads;

/// One worker's server. Made after the fork. Starts no thread before [`Engine::start`].
pub struct Engine {
    me: Weak<Engine>,
    worker: Arc<Worker>,
    services: Arc<Services>,
    connections: Arc<Connections>,
    sessions: Sessions,
    /// Requests that wait behind others of their session.
    in_line: Arc<AtomicUsize>,
    scheduler: Scheduler<Job>,
    /// Tells the parties of requests apart; `None` if neither turns by party nor paths with priority are set.
    parties: Option<Parties>,
    /// Locked by the one thread that polls.
    reactor: TryLock<Reactor>,
    /// Those of the listeners, in the order that all workers share. The reactor has the sockets.
    endpoints: Vec<Arc<Endpoint>>,
    challenges: Option<Challenges>,
    look_ups: Arc<LookUps>,
    file_sender: Arc<FileSender>,
    handshakes: Arc<Handshakes>,
    uploads: Uploads,
    /// The budgets of all clients.
    budgets: Arc<Budgets>,
    giving_way: GivingWay,
    memory: Memory,
    /// What all workers share; `None` for a single process.
    room: Option<Arc<WaitingRoom>>,
    /// The same, if requests may move.
    waiting_room: Option<Arc<WaitingRoom>>,
    handoff: Handoff,
    admission: Admission,
    finished: (Mutex<bool>, Condvar),
}

impl Engine {
    /// An engine for `listeners`. `membership`: its place in its server; `None` if no other process knows of it. `hub` has the
    /// subscriptions of its clients; all engines of a process share it.
    ///
    /// # Errors
    /// If the poller cannot be made, or a folder that is served cannot be opened.
    pub fn new(
        config: Config,
        listeners: Vec<Listener>,
        logs: Logs,
        membership: Option<Membership>,
        hub: Arc<Hub>,
    ) -> std::io::Result<Arc<Engine>> {
        let files = Files::open(&config.files, &config.descriptors)?;
        let has_room = config.waiting_room;
        let worker = Arc::new(Worker::new(config, logs, membership.as_ref())?);
        let room = membership.and_then(Membership::into_room);
        let ledger = room.as_ref().map(|room| &room.scoreboard().ledger);
        let parties = Parties::new(&worker.config, ledger);
        let engine = Arc::new_cyclic(|me: &Weak<Engine>| {
            let (host, relief): (Weak<dyn Host>, Weak<dyn Relief>) = (me.clone(), me.clone());
            let (spool, budgets) = (Spool::new(&worker.config), budgets(&worker.config));
            let realtime = Realtime::new(Arc::clone(&worker), hub, Arc::clone(&spool), Arc::clone(&budgets), host);
            let services = Services {
                worker: Arc::clone(&worker),
                spool,
                files,
                realtime,
                relief,
            };
            Engine {
                me: me.clone(),
                sessions: Sessions::new(&services.spool),
                services: Arc::new(services),
                connections: Connections::new(Arc::clone(&worker)),
                budgets,
                in_line: Arc::default(),
                scheduler: Scheduler::new(worker.config.max_threads, &parties::order(&worker.config, ledger)),
                parties,
                challenges: worker.config.acme_challenges.clone().map(Challenges::new),
                worker,
                endpoints: listeners
                    .iter()
                    .map(|listener| Arc::clone(listener.endpoint()))
                    .collect(),
                reactor: TryLock::new(Reactor::new(listeners)),
                look_ups: Arc::default(),
                file_sender: Arc::default(),
                handshakes: Arc::default(),
                uploads: Uploads::default(),
                giving_way: GivingWay::default(),
                memory: Memory::default(),
                waiting_room: room.clone().filter(|_| has_room),
                room,
                handoff: Handoff::default(),
                admission: Admission::default(),
                finished: Default::default(),
            }
        });
        engine.worker.announce();
        Ok(engine)
    }

    /// What this worker publishes for the others.
    pub fn counters(&self) -> &Slot {
        self.worker.counters()
    }

    /// Whether this is the process that serves, and not one that the app has forked ([`note_fork`](crate::note_fork)).
    pub fn is_at_home(&self) -> bool {
        self.worker.is_at_home()
    }

    /// Whether response fields may name files (sendfile), so that the app can be told.
    pub fn sends_named_files(&self) -> bool {
        self.services.files.has_roots()
    }

    /// A new subscription of the process, for [`Hub::subscribe`]. Its events run in this engine.
    pub fn new_subscription(&self) -> Arc<ProcessSubscription> {
        ProcessSubscription::new(&self.services.realtime)
    }

    /// Makes the events of a subscription run in this engine, after its former engine has ended.
    pub fn take_over(&self, subscription: &ProcessSubscription) {
        subscription.move_to(&self.services.realtime);
    }

    /// Serves on this thread until the engine has drained or stopped, the app says that the thread is interrupted, or
    /// it has forked and this is the child. Returns at once if `max_threads` threads serve already.
    pub fn serve(&self, app: &impl App) {
        self.scheduler.serve(self, app);
    }

    /// Counts the threads to start at first as starting, and returns how many they are: at least one that serves and
    /// one to hand over to. Each of them must call [`Engine::serve`], or be given up with [`Engine::cancel_thread`].
    pub fn initial_threads(&self) -> usize {
        let threads = self.scheduler.threads();
        let wanted = self.worker.config.min_threads.max(2).min(threads.most());
        (0..wanted).take_while(|_| threads.reserve()).count()
    }

    /// Counts one more thread as starting. False if there are `max_threads`, or the remaining threads are enough.
    pub fn replace_thread(&self) -> bool {
        self.scheduler.threads().reserve()
    }

    /// Gives up a thread that was counted as starting.
    pub fn cancel_thread(&self) {
        self.scheduler.threads().cancel_start();
    }

    /// Wakes one waiting thread if it has something to do: a request to run, or to poll because no thread polls. May be
    /// called on any thread; takes no lock if there is nothing to do.
    pub fn hand_over(&self) {
        if self.is_at_home() {
            self.give_way(|threads| threads.hand_over(self));
        }
    }

    /// The app on this thread, inside a call of [`App`], has released the lock of the language: wakes another thread if
    /// that has something to do. The same thread must call [`Engine::resume`] before the call ends.
    pub fn suspend(&self) {
        self.give_way(|threads| threads.suspend(self));
    }

    /// Sends what waits for other responses, as this thread may be away for long, and then wakes another one. A panic goes
    /// no further: the hook of the language that calls this cannot unwind.
    fn give_way(&self, wake: impl FnOnce(&Threads)) {
        self.worker.guard("a thread that gives way", || {
            self.worker.fault("give way");
            self.send_delayed();
        });
        self.worker
            .guard("a thread that wakes another one", || wake(self.scheduler.threads()));
    }

    /// The app on this thread wants the lock of the language back.
    pub fn resume(&self) {
        self.scheduler.threads().resume();
    }

    /// Ends every wait inside [`App::block`], so that the threads can check for interrupts of their language.
    pub fn interrupt(&self) {
        if self.is_at_home() {
            let interrupt = || self.scheduler.threads().interrupt(self);
            self.worker.guard("an interrupt", interrupt);
        }
    }

    #[cfg(test)]
    pub(crate) fn faults(&self) -> &crate::fault::Faults {
        &self.worker.faults
    }
}

/// Divides the totals of an engine into budgets.
fn budgets(config: &Config) -> Arc<Budgets> {
    let requests = config.request_totals.most_memory();
    let responses = config.response_memory_total_bytes;
    let (bodies, files) = (config.descriptors.most_bodies(), config.descriptors.most_files());
    Budgets::new([requests, responses, bodies as u64, files as u64, 0])
}
