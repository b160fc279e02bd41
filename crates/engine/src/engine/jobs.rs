//! Runs the jobs for the threads of the app: requests, events of clients, messages for subscriptions of the process,
//! and tasks.

use super::drain::AwaitedTask;
use super::events::Events;
use super::job::Job;
use super::moves::Moves;
use super::on_thread::OnThread;
use super::parts::Parts;
use super::record;
use crate::app::App;
use crate::clock::Nanos;
use crate::connection::Connection;
use crate::engine::ends::after_response;
use crate::exchange::{Ended, Exchange, Outcome, Workspace};
use crate::reactor::Reactor;
use crate::realtime::{Client, EventEnd, ProcessSubscription};
use crate::scheduler::states::Site;
use crate::scheduler::{Scheduler, Workplace};
use crate::sync::TryLock;
use crate::transport::listener::Listener;
use crate::worker::{ActiveRequest, Worker};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Name in the log for an event that panicked.
const AN_EVENT: &str = "an event";

/// See the head of this file.
pub(super) struct Jobs {
    parts: Arc<Parts>,
    moves: Arc<Moves>,
    events: Events,
    /// Locked by the thread that polls.
    reactor: TryLock<Reactor>,
}

impl Jobs {
    pub(super) fn new(moves: &Arc<Moves>, listeners: Vec<Listener>) -> Arc<Jobs> {
        Arc::new(Jobs {
            parts: Arc::clone(moves.parts()),
            moves: Arc::clone(moves),
            events: Events::new(moves),
            reactor: TryLock::new(Reactor::new(listeners)),
        })
    }

    /// Closes the listeners, unless a thread polls: that thread closes them once the engine has stopped.
    pub(super) fn close_listeners(&self) {
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.close_listeners(&self.events);
        }
    }

    fn run_request(&self, mut connection: Box<Connection>, app: &impl App, on_thread: &mut OnThread) {
        let now = Nanos::now();
        connection.stream.request.begin(now);
        self.moves.end_turn(&mut connection);
        self.moves.at_turn(connection, now, |connection| {
            on_thread.begin(&self.parts.worker, &connection.stream.request, now);
            self.respond(connection, app, on_thread);
        });
    }

    fn respond(&self, mut connection: Box<Connection>, app: &impl App, on_thread: &mut OnThread) {
        let worker = &self.parts.worker;
        let active = ActiveRequest::new(worker, record::kind(worker, &connection.stream));
        let (ended, outcome) = self.call(&mut connection, app, &mut on_thread.workspace);
        drop(active);
        on_thread.end();
        let lock_wait = app.lock_wait();
        worker.counters().requests.fetch_add(1, Relaxed);
        let waits = connection.stream.request.waits();
        self.parts.statistics.count_waits(waits, lock_wait);
        let now = Nanos::now();
        record::response(worker, &mut connection, &ended, lock_wait, now);
        match outcome {
            Outcome::Client { client, close } => {
                let next = self.parts.clients.open(connection, &client, close);
                self.moves.go_on(next);
            }
            Outcome::Hijacked => self.moves.let_go(connection),
            Outcome::Gone => self.moves.cut(connection),
            Outcome::Expired => self.moves.end_expired(connection),
            Outcome::Aborted => self.moves.abort(connection),
            Outcome::Responded { close } => {
                let then = after_response(worker, close);
                let next = connection.responded(then, &worker.config, now.millis());
                self.moves.settle(connection, next);
            }
        }
    }

    /// Lets the app respond. A panic of our own code becomes a 500, or ends the response.
    fn call(&self, connection: &mut Connection, app: &impl App, workspace: &mut Workspace) -> (Ended, Outcome) {
        connection.stream.transport().begin();
        let timeout = self.parts.worker.config.timeout_of(connection.stream.request.path());
        let lock_wait = || app.lock_wait();
        let mut exchange = Exchange::new(&mut connection.stream, &self.parts.services, workspace);
        exchange.times_app(&lock_wait);
        if timeout.is_some() {
            exchange.set_timeout(timeout);
        }
        if catch_unwind(AssertUnwindSafe(|| app.call(&mut exchange))).is_err() {
            let log = &self.parts.worker.log;
            log.error(format_args!("[BUG] the server panicked during a request"));
            if !exchange.has_started() || exchange.take_back() {
                exchange.respond_plainly(500);
            } else {
                exchange.abort();
            }
        }
        exchange.end()
    }

    fn run_event(&self, client: Arc<Client>, app: &impl App) {
        let worker = &self.parts.worker;
        let run = |event| _ = worker.guard(AN_EVENT, || app.event(&client, event));
        match self.parts.services.realtime.run_event(&client, run) {
            EventEnd::Nothing => {}
            EventEnd::Again => self.parts.scheduler.ready().push(Job::Client(client)),
            EventEnd::Gone(forgotten) => {
                worker.guard(AN_EVENT, || app.gone(&client, forgotten));
                self.moves.end_if_drained();
            }
        }
    }

    fn run_published(&self, subscription: Arc<ProcessSubscription>, app: &impl App) {
        let (id, realtime) = (subscription.id(), &self.parts.services.realtime);
        let has_more = realtime.run_published(&subscription, |publication| {
            self.parts.worker.guard(AN_EVENT, || app.published(id, publication));
        });
        if has_more {
            self.parts.scheduler.ready().push(Job::Subscription(subscription));
        }
    }

    fn run_task(&self, awaited: AwaitedTask, app: &impl App) {
        let worker = &self.parts.worker;
        worker.guard(AN_EVENT, || app.task());
        worker.counters().events.fetch_add(1, Relaxed);
        drop(awaited);
        self.moves.end_if_drained();
    }
}

impl Workplace for Jobs {
    type Job = Job;
    type Workspace = OnThread;

    fn scheduler(&self) -> &Scheduler<Job> {
        &self.parts.scheduler
    }

    fn worker(&self) -> &Worker {
        &self.parts.worker
    }

    fn run(&self, job: Job, app: &impl App, on_thread: &mut OnThread) {
        match job {
            Job::Request(connection) => self.run_request(connection, app, on_thread),
            Job::Client(client) => self.run_event(client, app),
            Job::Subscription(subscription) => self.run_published(subscription, app),
            Job::Task(awaited) => self.run_task(awaited, app),
            Job::Leisure => _ = self.parts.worker.guard("idle work of the app", || app.leisure()),
            Job::Collection(garbage) => {
                let collect = || {
                    _ = self
                        .parts
                        .worker
                        .guard("garbage collection", || app.collect_garbage(garbage))
                };
                self.parts.memory.collect(garbage, collect);
            }
        }
    }

    fn take_transfer(&self) -> Option<Job> {
        let parts = &self.parts;
        if !parts.request_migration.are_due() {
            return None;
        }
        let Some(mut connection) = parts.request_migration.move_in() else {
            self.moves.end_if_drained();
            return None;
        };
        parts.flows.rank(&mut connection);
        let job = Job::Request(self.moves.hold(connection)?);
        if parts.flows.take_turns() {
            parts.scheduler.ready().push(job);
            return None;
        }
        Some(job)
    }

    fn leisure(&self, app: &impl App) -> Option<Job> {
        let (scheduler, worker) = (&self.parts.scheduler, &self.parts.worker);
        let is_wanted = app.wants_leisure() && scheduler.now().busy() == 0 && !worker.is_leaving();
        is_wanted.then_some(Job::Leisure)
    }

    fn poll_now(&self) {
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.poll(&self.events, Some(Duration::ZERO));
        }
    }

    fn poll_for_all(&self, time: Duration, polls: &AtomicBool) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        self.parts.admission.watch_room(&mut reactor, false);
        polls.store(true, SeqCst);
        reactor.poll(&self.events, Some(time));
        polls.store(false, SeqCst);
        true
    }

    fn publish_threads(&self) {
        self.parts.statistics.write_threads();
    }

    fn publish_gauges(&self) {
        self.parts.statistics.write_gauges();
    }

    fn shed(&self, patience: Duration) {
        // Overdue requests would take the places of others in the room.
        self.moves.sweep_queue();
        self.moves.shed(patience);
    }

    fn needs_ticks(&self) -> bool {
        self.parts.request_migration.has_promised() || self.parts.held.count() > 0
    }

    fn tick(&self) {
        self.parts.http2.send_delayed();
        self.parts.request_migration.check_promise();
        self.moves.check_if_given_up();
        self.moves.drop_overdue();
        if let Some(stuck) = self.parts.services.deadlines.check(&self.parts.services) {
            self.parts.worker.counters().stuck.store(stuck, Relaxed);
        }
        self.moves.tend_held();
    }

    fn rest(&self) -> Duration {
        self.parts.memory.rest()
    }
}

impl Site for Jobs {
    fn calls_back(&self) -> bool {
        self.parts.worker.is_stopped() || self.parts.admission.has_requests()
    }

    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        self.parts.http2.send_delayed();
        let watches_room = self.parts.admission.serves_room();
        self.parts.admission.watch_room(&mut reactor, watches_room);
        if begin() {
            reactor.poll(&self.events, None);
            if watches_room {
                self.parts.request_migration.promise();
            }
        }
        true
    }

    fn is_polled(&self) -> bool {
        self.reactor.is_held()
    }
}
