//! Server of one worker, as the embedding program uses it. [`Engine`] starts and stops it; its parts do the work.
//!
//! ```text
//!                    Engine (mod.rs, life.rs)
//!   threads of the app   │          the reactor
//!                 │      │               │
//!              jobs.rs ──┼──────▶ events.rs
//!                 └──────▼──────────────┘
//!                     moves/ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ sink.rs ◀── the parts put moves there
//!                        │
//!      ┌───────────┬─────┴─────┬────────────────┐
//!   migration/ ──▶ native/   clients.rs      http2.rs ──▶ uploads.rs
//!                  │                            └─────┬───────┘
//!             without_app/                       giving_way/
//! ```
//! * `jobs.rs` runs the jobs for the threads of the app; `events.rs` handles events from the reactor.
//! * `moves/` gives a connection to its next owner, and checks with `drain.rs` after each step if the engine is over.
//! * `migration/`: requests and connections that migrate from and to other workers.
//! * `native/`: connections that native threads work on. `uploads.rs`: requests with stored bodies.
//! * `without_app/`: requests that never reach the app. `clients.rs`: connections that become clients.
//! * `http2.rs`: HTTP/2 connections. Each of their streams is a connection for one request.
//! * `giving_way/`: the client that gives way when a total is used up.
//! * `overload.rs`: requests that wait and are not run.
//! * `flows.rs`: flow and priority of a request. `ends.rs`: the ends of connections. `memory.rs`: returns memory.
//!   `record.rs`: logs requests. `statistics.rs`: statistics.
//!
//! Arrows point down: a part knows neither the parts above it nor the engine. A part returns the next move of the
//! connection that it has worked on. If it runs on its own thread, or works on several connections, it puts the moves
//! into the sink, which is `moves/`. `parts.rs` makes the parts.

mod clients;
mod drain;
mod ends;
mod events;
mod flows;
mod giving_way;
mod held;
mod http2;
mod job;
mod jobs;
mod life;
#[cfg(test)]
mod many_connections;
mod memory;
mod migration;
mod moves;
mod native;
mod on_thread;
mod overload;
mod parts;
mod record;
mod sink;
mod statistics;
mod uploads;
mod without_app;

use crate::app::App;
use crate::cluster::membership::Membership;
use crate::cluster::scoreboard::Slot;
use crate::cluster::statistics::Stats;
use crate::config::{Config, Logs};
use crate::files::Files;
use crate::pubsub::Hub;
use crate::realtime::ProcessSubscription;
use crate::scheduler::Scheduler;
use crate::transport::listener::Listener;
use crate::worker::Worker;
use job::Job;
use jobs::Jobs;
use moves::Moves;
use parts::{Foundation, Parts};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Server of one worker. Made after the fork. Starts no thread before [`Engine::start`].
pub struct Engine {
    parts: Arc<Parts>,
    moves: Arc<Moves>,
    jobs: Arc<Jobs>,
}

impl Engine {
    /// Makes an engine for `listeners`. `membership`: its slot in its server; `None` if no other process knows of it.
    /// `hub` has the subscriptions of its clients; all engines of a process share it.
    ///
    /// # Errors
    /// If the poller cannot be made, or a served folder cannot be opened.
    pub fn new(
        config: Config,
        listeners: Vec<Listener>,
        logs: Logs,
        membership: Option<Membership>,
        hub: Arc<Hub>,
    ) -> std::io::Result<Arc<Engine>> {
        let files = Files::open(&config.files, &config.descriptors)?;
        let worker = Arc::new(Worker::new(config, logs, membership.as_ref())?);
        let moves = Moves::new(Foundation {
            worker: Arc::clone(&worker),
            endpoints: listeners.iter().map(|one| Arc::clone(one.endpoint())).collect(),
            files,
            hub,
            queues: membership.and_then(Membership::into_queues),
        });
        let engine = Engine {
            parts: Arc::clone(moves.parts()),
            jobs: Jobs::new(&moves, listeners),
            moves,
        };
        worker.announce();
        Ok(Arc::new(engine))
    }

    /// Counters that this worker publishes for the others.
    pub fn counters(&self) -> &Slot {
        self.parts.worker.counters()
    }

    /// Current statistics.
    pub fn stats(&self) -> Stats {
        self.parts.statistics.now()
    }

    /// True in the process that serves; false in a process that the app has forked ([`note_fork`](crate::note_fork)).
    pub fn is_at_home(&self) -> bool {
        self.parts.worker.is_at_home()
    }

    /// True if response fields may name files (sendfile), so that the embedding program can tell the app.
    pub fn sends_named_files(&self) -> bool {
        self.parts.services.files.has_roots()
    }

    /// Returns a descriptor that is readable when a request has run longer than its timeout: see
    /// [`Deadline::take_expired`](crate::Deadline::take_expired).
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn deadline_signal(&self) -> std::io::Result<OwnedFd> {
        Ok(self.parts.services.deadlines.signal()?)
    }

    /// Returns a new subscription of the process, for [`Hub::subscribe`]. Its events run in this engine.
    pub fn new_subscription(&self) -> Arc<ProcessSubscription> {
        ProcessSubscription::new(&self.parts.services.realtime)
    }

    /// Makes the events of a subscription run in this engine, after its previous engine has ended.
    pub fn take_over(&self, subscription: &ProcessSubscription) {
        subscription.move_to(&self.parts.services.realtime);
    }

    /// Serves on this thread until the engine has drained or stopped, the app reports an interrupt of the thread, or
    /// the thread is in a forked child. Returns at once if `max_threads` threads serve already.
    pub fn serve(&self, app: &impl App) {
        self.parts.scheduler.serve(&*self.jobs, app);
    }

    /// Puts a task of the app into the ready queue: [`App::task`] is called once for it. A drain waits for it.
    pub fn defer(&self) {
        self.moves.defer();
    }

    /// True once the engine accepts nothing new, until it has ended.
    pub fn is_draining(&self) -> bool {
        self.parts.worker.is_draining()
    }

    /// Counts the initial threads as starting, and returns their number: at least one to serve and one to wake next.
    /// Each of them must call [`Engine::serve`]; otherwise call [`Engine::cancel_thread`] for it.
    pub fn initial_threads(&self) -> usize {
        let threads = self.parts.scheduler.threads();
        let wanted = self.parts.worker.config.min_threads.max(2).min(threads.most());
        (0..wanted).take_while(|_| threads.reserve()).count()
    }

    /// Counts one more thread as starting. Returns false if there are `max_threads`, or if the other threads are
    /// enough.
    pub fn replace_thread(&self) -> bool {
        self.parts.scheduler.threads().reserve()
    }

    /// Cancels a thread that was counted as starting.
    pub fn cancel_thread(&self) {
        self.parts.scheduler.threads().cancel_start();
    }

    /// Wakes one waiting thread if there is work for it: a request, or the poll if no thread polls. May be called on
    /// any thread; takes no lock if there is no work.
    pub fn wake_next(&self) {
        if self.is_at_home() {
            self.give_way(Scheduler::wake_next);
        }
    }

    /// The app on this thread, inside a call of [`App`], has released the lock of the language. Wakes another thread if
    /// there is work for it. The same thread must call [`Engine::resume`] before the call ends.
    pub fn suspend(&self) {
        self.give_way(Scheduler::suspend);
    }

    /// Sends the output that waits for other responses, because this thread may block for long, and then wakes another
    /// thread. Stops a panic here: the caller, a hook of the language, cannot unwind.
    fn give_way(&self, wake: impl FnOnce(&Scheduler<Job>)) {
        let parts = &self.parts;
        parts.worker.guard("a thread that gives way", || {
            parts.worker.fault("give way");
            parts.http2.send_delayed();
        });
        let wake = || wake(&parts.scheduler);
        parts.worker.guard("a thread that wakes another one", wake);
    }

    /// The app on this thread wants the lock of the language again.
    pub fn resume(&self) {
        self.parts.scheduler.threads().resume();
    }

    /// Ends every wait inside [`App::block`], so that the threads can check for interrupts of their language.
    pub fn interrupt(&self) {
        self.parts.scheduler.interrupt();
    }

    #[cfg(test)]
    pub(crate) fn faults(&self) -> &crate::fault::Faults {
        &self.parts.worker.faults
    }

    /// Adds a connection that no listener accepted.
    #[cfg(test)]
    pub(crate) fn attach(&self, transport: crate::transport::Link) {
        let (interest, endpoint) = (crate::transport::poller::Interest::Read, &self.parts.endpoints[0]);
        let peer = Some(([127, 0, 0, 1], 1).into());
        let (connections, now) = (&self.parts.connections, crate::clock::Millis::now());
        let connection = connections.open(&transport, Some(interest), endpoint, peer, now);
        let connection = Box::new(connection.expect("the poller watches the transport"));
        assert!(connections.park(connection, interest).is_ok());
    }
}
