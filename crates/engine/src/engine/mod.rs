//! One worker's server, as the embedding program sees it. Puts the parts together; none of them knows the engine.
//!
//! * `jobs.rs`: what the threads of the app run; `events.rs`: handles what the reactor sees.
//! * `moves.rs`: the moves of a connection between its owners; `ends.rs`: its end.
//! * `without_app/`: requests that never reach the app.
//! * `sessions.rs`: the sessions of HTTP/2, whose streams are connections for one request each.
//! * `native/`: connections that native threads work on; `uploads.rs`: those whose bodies are stored.
//! * `giving_way/`: which client gives way when what all share is used up.
//! * `parties.rs`: whom a request counts for, and whether it goes ahead of others.
//! * `sharing/`: requests and connections that come from other workers and go to them.
//! * `drain.rs`: how the engine ends. `memory.rs`: returns memory; `record.rs`: logs requests; `statistics.rs`: statistics.

mod drain;
mod ends;
mod events;
mod giving_way;
mod job;
mod jobs;
mod memory;
mod moves;
mod native;
mod parties;
mod record;
mod sessions;
mod sharing;
mod sink;
mod statistics;
mod uploads;
mod without_app;

use crate::app::App;
use crate::cluster::membership::Membership;
use crate::cluster::scoreboard::Slot;
use crate::cluster::statistics::Stats;
use crate::config::{Config, Logs};
use crate::connection::connections::Connections;
use crate::connection::turns::TurnTaker;
use crate::exchange::Services;
use crate::files::Files;
use crate::http2::Sessions;
use crate::limits::budget::Budgets;
use crate::pubsub::Hub;
use crate::reactor::Reactor;
use crate::realtime::{Host, ProcessSubscription, Realtime};
use crate::scheduler::Scheduler;
use crate::spool::{Relief, Spool};
use crate::sync::{Condvar, Mutex, TryLock};
use crate::transport::listener::{Endpoint, Listener};
use crate::worker::Worker;
use giving_way::GivingWay;
use job::Job;
use memory::Memory;
use native::{FileSender, Handshakes, LookUpThreads};
use parties::Parties;
use sessions::SessionDriver;
use sharing::{Admission, Arrivals, Handoff, Relays, Transfers};
use sink::Sink;
use statistics::Statistics;
use std::sync::{Arc, Weak};
use uploads::Uploads;
use without_app::WithoutApp;

/// One worker's server. Made after the fork. Starts no thread before [`Engine::start`].
pub struct Engine {
    me: Weak<Engine>,
    worker: Arc<Worker>,
    services: Arc<Services>,
    connections: Arc<Connections>,
    sessions: SessionDriver,
    scheduler: Arc<Scheduler<Job>>,
    statistics: Statistics,
    parties: Parties,
    /// Locked by the one thread that polls.
    reactor: TryLock<Reactor>,
    /// The endpoints of the listeners, in the order that all workers share. The reactor has the sockets.
    endpoints: Arc<[Arc<Endpoint>]>,
    without_app: Arc<WithoutApp>,
    look_ups: Arc<LookUpThreads>,
    file_sender: Arc<FileSender>,
    handshakes: Arc<Handshakes>,
    uploads: Arc<Uploads>,
    /// The budgets of all clients.
    budgets: Arc<Budgets>,
    giving_way: Arc<GivingWay>,
    memory: Arc<Memory>,
    admission: Arc<Admission>,
    transfers: Transfers,
    relays: Arc<Relays>,
    handoff: Handoff,
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
        let endpoints: Arc<[_]> = listeners.iter().map(|one| Arc::clone(one.endpoint())).collect();
        let files = Files::open(&config.files, &config.descriptors)?;
        let has_room = config.waiting_room;
        let worker = Arc::new(Worker::new(config, logs, membership.as_ref())?);
        let room = membership.and_then(Membership::into_room);
        let ledger = room.as_ref().map(|room| &room.scoreboard().ledger);
        let parties = Parties::new(&worker.config, ledger);
        let engine = Arc::new_cyclic(|me: &Weak<Engine>| {
            let (host, relief): (Weak<dyn Host>, Weak<dyn Relief>) = (me.clone(), me.clone());
            let (spool, budgets) = (Spool::new(&worker.config), budgets(&worker.config));
            let shared = (Arc::clone(&spool), Arc::clone(&budgets));
            let services = Services {
                worker: Arc::clone(&worker),
                spool,
                files,
                realtime: Realtime::new(Arc::clone(&worker), hub, shared, host),
                relief,
            };
            let services = Arc::new(services);
            let order = parties::order(&worker.config, ledger);
            let scheduler = Arc::new(Scheduler::new(Arc::clone(&worker), &order));
            let connections = Connections::new(Arc::clone(&worker));
            let memory = Memory::new(&services, &connections, &scheduler);
            let in_line = Arc::default();
            let sessions = Arc::new(Sessions::new(&services.spool));
            let giving_way = GivingWay::new(&services, &connections, &sessions, &budgets);
            let taker: Weak<dyn TurnTaker> = me.clone();
            let sink: Weak<dyn Sink> = me.clone();
            let without_app = Arc::new(WithoutApp::new(&services, &endpoints));
            let look_ups = LookUpThreads::new(&services, &connections, &without_app, Weak::clone(&sink));
            let file_sender = FileSender::new(&worker, Weak::clone(&sink));
            let handshakes = Handshakes::new(&worker, &connections, Weak::clone(&sink));
            let uploads = Uploads::new(&services, &connections, &sessions, &giving_way, sink);
            let admission = Admission::new(&worker, room.as_ref(), has_room);
            let arrivals = Arrivals::new(&worker, &connections, &endpoints);
            let relays = Relays::new(&worker, &connections);
            Engine {
                me: me.clone(),
                transfers: Transfers::new(&scheduler, &admission, &arrivals, &relays),
                handoff: Handoff::new((&worker, &connections), &admission, &arrivals, &handshakes),
                admission,
                relays,
                handshakes,
                sessions: SessionDriver::new(
                    (&worker, &connections),
                    (&budgets, &sessions),
                    (&giving_way, &uploads),
                    &in_line,
                    taker,
                ),
                statistics: Statistics::new(&services, &scheduler, &in_line),
                connections,
                budgets,
                scheduler,
                parties,
                without_app,
                worker,
                endpoints,
                reactor: TryLock::new(Reactor::new(listeners)),
                look_ups,
                file_sender,
                uploads,
                giving_way,
                memory,
                services,
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

    /// The current statistics.
    pub fn stats(&self) -> Stats {
        self.statistics.now()
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
            self.give_way(Scheduler::hand_over);
        }
    }

    /// The app on this thread, inside a call of [`App`], has released the lock of the language: wakes another thread if
    /// that has something to do. The same thread must call [`Engine::resume`] before the call ends.
    pub fn suspend(&self) {
        self.give_way(Scheduler::suspend);
    }

    /// Sends what waits for other responses, as this thread may be away for long, and then wakes another one. A panic goes
    /// no further: the hook of the language that calls this cannot unwind.
    fn give_way(&self, wake: impl FnOnce(&Scheduler<Job>)) {
        self.worker.guard("a thread that gives way", || {
            self.worker.fault("give way");
            self.sessions.send_delayed();
        });
        self.worker
            .guard("a thread that wakes another one", || wake(&self.scheduler));
    }

    /// The app on this thread wants the lock of the language back.
    pub fn resume(&self) {
        self.scheduler.threads().resume();
    }

    /// Ends every wait inside [`App::block`], so that the threads can check for interrupts of their language.
    pub fn interrupt(&self) {
        if self.is_at_home() {
            self.worker.guard("an interrupt", || self.scheduler.interrupt());
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
