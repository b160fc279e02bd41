//! What threads of the app run: requests, events of clients, messages for subscriptions of the process, and tasks.

use super::ends::after_response;
use super::job::Job;
use super::{record, Engine};
use crate::app::App;
use crate::clock::{Millis, Nanos};
use crate::connection::{Connection, Successor};
use crate::exchange::{Exchange, Outcome, Workspace};
use crate::limits::budget::Kind;
use crate::realtime::{Carrier, Client, EventEnd, Host, Lender, ProcessSubscription, Scheduled};
use crate::scheduler::states::Site;
use crate::scheduler::{Scheduler, Workplace};
use crate::transport::poller::Interest;
use crate::transport::Afterwards;
use crate::worker::Worker;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What panicked, in the log.
const AN_EVENT: &str = "an event";

impl Host for Engine {
    fn schedule(&self, turn: Scheduled) {
        let job = match turn {
            Scheduled::Client(client) => Job::Client(client),
            Scheduled::Subscription(subscription) => Job::Subscription(subscription),
        };
        self.scheduler.schedule(job);
    }

    fn make_room(&self, kind: Kind) -> bool {
        let has_given_way = self.giving_way.make_room(kind);
        self.finish_if_drained();
        has_given_way
    }
}

/// A connection that goes on when the client that uses it has ended.
struct Loan(Weak<Engine>, Box<Connection>);

impl Lender for Loan {
    fn take_back(self: Box<Self>) {
        let Loan(engine, mut connection) = *self;
        if let Some(engine) = engine.upgrade().filter(|engine| engine.is_at_home()) {
            connection.place().close();
            // The poller goes on with it: this thread may have the lock of the language.
            connection.respond_later(after_response(&engine.worker, false), Millis::now());
            engine.park(connection, Interest::Write);
        }
    }
}

/// The client that goes on with a response.
#[derive(Debug)]
struct Heir {
    engine: Weak<Engine>,
    client: Option<Arc<Client>>,
    close: bool,
}

impl Successor for Heir {
    fn take_over(mut self: Box<Self>, connection: Box<Connection>) {
        if let (Some(engine), Some(client)) = (self.engine.upgrade(), self.client.take()) {
            engine.begin_client(connection, &client, self.close);
        }
    }
}

/// The connection has ended: who writes to the client learns of it.
impl Drop for Heir {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            client.end();
        }
    }
}

impl Engine {
    /// Puts a task of the app into the ready queue: [`App::task`] is called once for it.
    pub fn defer(&self) {
        self.scheduler.schedule(Job::Task);
    }

    fn run_request(&self, mut connection: Box<Connection>, app: &impl App, workspace: &mut Workspace) {
        connection.stream.request.begin(Nanos::now());
        self.end_turn(&mut connection);
        if connection.is_abandoned() {
            return self.close(connection);
        }
        connection.stream.transport().begin();
        let mut exchange = Exchange::new(&mut connection.stream, &self.services, workspace);
        if catch_unwind(AssertUnwindSafe(|| app.call(&mut exchange))).is_err() {
            self.worker
                .log
                .error(format_args!("[BUG] the server panicked while it ran a request"));
            if !exchange.has_started() || exchange.take_back() {
                exchange.respond_plainly(500);
            } else {
                exchange.abort();
            }
        }
        let (ended, outcome) = exchange.end();
        let lock_wait = app.lock_wait();
        self.counters().requests.fetch_add(1, Relaxed);
        self.statistics
            .count_waits(connection.stream.request.waits(), lock_wait);
        record::response(&self.worker, &connection, &ended, lock_wait);
        match outcome {
            Outcome::Client { client, close } => self.open_client(connection, &client, close),
            Outcome::Hijacked => self.let_go(connection),
            Outcome::Gone => self.cut(connection),
            Outcome::Aborted => self.abort(connection),
            Outcome::Responded { close } => {
                let then = after_response(&self.worker, close);
                let next = connection.responded(then, &self.worker.config, Millis::now());
                self.settle(connection, next);
            }
        }
    }

    /// Turns a connection into a client, after the app has returned. `close`: whether it ends with that.
    fn open_client(&self, mut connection: Box<Connection>, client: &Arc<Client>, close: bool) {
        // No thread waits for the client to take what was written before. The rest follows when the kernel has that.
        if client.is_response() && !connection.stream.output.is_empty() {
            let heir = Box::new(Heir {
                engine: self.me.clone(),
                client: Some(Arc::clone(client)),
                close,
            });
            let next = connection.send_for(heir, &self.worker.config, Millis::now());
            return self.settle(connection, next);
        }
        self.begin_client(connection, client, close);
    }

    /// The kernel has what was written of a response before; or it is the head of an upgrade.
    fn begin_client(&self, mut connection: Box<Connection>, client: &Arc<Client>, close: bool) {
        // The end of a response that goes on is still to be said.
        if !client.is_response() {
            connection.stream.transport().give_back(Afterwards::GivenAway);
        }
        let head = connection.stream.output.take_unsent();
        let goes_on = client.is_response() && !close;
        if goes_on && !connection.stream.transport().is_for_one_response() {
            connection.lend();
            let carrier = Carrier::Lent(Box::new(Loan(self.me.clone(), connection)));
            return self.services.realtime.begin(client, carrier, head, Vec::new());
        }
        let ahead = std::mem::take(&mut connection.stream.input);
        let count = connection.place().become_client();
        drop(connection);
        let carrier = match goes_on {
            true => Carrier::Foreign { _count: count },
            false => Carrier::Own { _count: count },
        };
        self.services.realtime.begin(client, carrier, head, ahead);
    }

    fn run_event(&self, client: Arc<Client>, app: &impl App) {
        let run = |event| _ = self.worker.guard(AN_EVENT, || app.event(&client, event));
        match self.services.realtime.run_event(&client, run) {
            EventEnd::Nothing => {}
            EventEnd::Again => self.scheduler.ready().push(Job::Client(client)),
            EventEnd::Gone(forgotten) => {
                self.worker.guard(AN_EVENT, || app.gone(&client, forgotten));
                self.finish_if_drained();
            }
        }
    }

    fn run_published(&self, subscription: Arc<ProcessSubscription>, app: &impl App) {
        let id = subscription.id();
        let has_more = self.services.realtime.run_published(&subscription, |publication| {
            self.worker.guard(AN_EVENT, || app.published(id, publication));
        });
        if has_more {
            self.scheduler.ready().push(Job::Subscription(subscription));
        }
    }

    fn run_task(&self, app: &impl App) {
        self.worker.guard(AN_EVENT, || app.task());
        self.counters().events.fetch_add(1, Relaxed);
    }
}

impl Workplace for Engine {
    type Job = Job;
    type Workspace = Workspace;

    fn scheduler(&self) -> &Scheduler<Job> {
        &self.scheduler
    }

    fn worker(&self) -> &Worker {
        &self.worker
    }

    fn run(&self, job: Job, app: &impl App, workspace: &mut Workspace) {
        match job {
            Job::Request(connection) => self.run_request(connection, app, workspace),
            Job::Client(client) => self.run_event(client, app),
            Job::Subscription(subscription) => self.run_published(subscription, app),
            Job::Task => self.run_task(app),
            Job::Leisure => _ = self.worker.guard("the leisure of the app", || app.leisure()),
        }
    }

    fn take_transfer(&self) -> Option<Job> {
        if !self.transfers.are_due() {
            return None;
        }
        let Some(mut connection) = self.transfers.move_in() else {
            self.finish_if_drained();
            return None;
        };
        self.parties.rank(&mut connection);
        let job = Job::Request(connection);
        if self.parties.take_turns() {
            self.scheduler.ready().push(job);
            return None;
        }
        Some(job)
    }

    fn leisure(&self, app: &impl App) -> Option<Job> {
        let is_wanted = app.wants_leisure() && self.scheduler.now().busy() == 0 && !self.worker.is_leaving();
        is_wanted.then_some(Job::Leisure)
    }

    fn poll_now(&self) {
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.poll(self, Some(Duration::ZERO));
        }
    }

    fn poll_for_all(&self, time: Duration, polls: &AtomicBool) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        self.admission.watch_room(&mut reactor, false);
        polls.store(true, SeqCst);
        reactor.poll(self, Some(time));
        polls.store(false, SeqCst);
        true
    }

    fn publish_threads(&self) {
        self.statistics.write_threads();
    }

    fn publish_gauges(&self) {
        self.statistics.write_gauges();
    }

    fn shed(&self, patience: Duration) {
        self.transfers.shed(patience, self.parties.take_turns(), self);
        self.finish_if_drained();
    }

    fn needs_ticks(&self) -> bool {
        self.transfers.has_promised()
    }

    fn tick(&self) {
        self.sessions.send_delayed();
        self.transfers.check_promise();
        self.check_if_given_up();
    }
}

impl Site for Engine {
    fn calls_back(&self) -> bool {
        self.worker.is_stopped() || self.admission.has_transfers()
    }

    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        self.sessions.send_delayed();
        let watches_room = self.admission.serves_room();
        self.admission.watch_room(&mut reactor, watches_room);
        if begin() {
            reactor.poll(self, None);
            if watches_room {
                self.transfers.promise();
            }
        }
        true
    }

    fn is_polled(&self) -> bool {
        self.reactor.is_held()
    }
}
