//! The loop of one thread: take a request, run it to completion, give the connection back; with nothing to run, poll.
//!
//! At most one thread polls. Nobody else is woken while requests finish quickly; a waiting thread is woken exactly when
//! the one that runs the app stops using the language's lock ([`Engine::suspend`]). The rules are in `scheduler/states/`.

use crate::app::App;
use crate::clock::{milliseconds, nanoseconds, DateCache};
use crate::connection::Connection;
use crate::engine::Engine;
use crate::http::exchange::Exchange;
use crate::reactor::is_in_reactor;
use crate::scheduler::queue::Job;
use crate::scheduler::states::{Doing, Seat, Site};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Requests for which the next thread is woken at once, after one had to be rescued by the monitor.
const EAGER_REQUESTS: usize = 64;

/// A request that took this long is taken to have waited for something.
const LONG_NANOSECONDS: u64 = 500_000;

/// After a turn that panicked: one that always does shall not fill the log.
const PANIC_PAUSE: Duration = Duration::from_millis(10);

/// What the threads go by from job to job; none of it is a state that another thread relies on.
#[derive(Default)]
pub(crate) struct Cadence {
    /// Requests for which hand-over happens before the app is called.
    eager: AtomicUsize,
    /// Jobs that may run before the poller has to be asked again, so that no pipeline keeps the others out.
    until_poll: AtomicUsize,
}

impl Cadence {
    /// Makes the next requests hand over before they run, because one was found waiting.
    pub(crate) fn become_eager(&self) {
        self.eager.store(EAGER_REQUESTS, Relaxed);
    }

    /// A poll has left that many jobs in the ready queue.
    pub(crate) fn polled(&self, ready: usize) {
        self.until_poll.store(ready, Relaxed);
    }

    /// Whether another job may run before the next poll.
    fn may_go_on(&self) -> bool {
        let left = self.until_poll.load(Relaxed);
        if left > 0 {
            self.until_poll.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Hands over before a job if one was found waiting lately. The result is for [`Cadence::end`].
    fn begin(&self, hand_over: impl FnOnce()) -> Option<(usize, u64)> {
        let eager = self.eager.load(Relaxed);
        (eager > 0).then(|| {
            let began = nanoseconds();
            hand_over();
            (eager, began)
        })
    }

    fn end(&self, begun: Option<(usize, u64)>) {
        if let Some((eager, began)) = begun {
            let was_quick = nanoseconds() - began < LONG_NANOSECONDS;
            self.eager
                .store(if was_quick { eager - 1 } else { EAGER_REQUESTS }, Relaxed);
        }
    }
}

impl Engine {
    /// Serves on this thread until the engine has drained or stopped, or the app says that the thread is interrupted, or has
    /// forked and this is the child. Returns at once if `max_threads` serve already.
    pub fn serve(&self, app: &impl App) {
        let Some(seat) = self.threads.enter() else { return };
        self.publish_threads();
        let mut date = DateCache::default();
        while !self.is_stopped() {
            if self.guard("a thread", || self.turn(&seat, app, &mut date)).is_none() {
                seat.becomes(Doing::Looking);
                std::thread::sleep(PANIC_PAUSE);
            }
            if app.is_interrupted() || !self.is_at_home() {
                break;
            }
        }
        drop(seat);
        self.publish_threads();
        self.hand_over();
    }

    /// Counts the threads to start at once (one that serves, and one to hand over to) as starting, and says how many they are.
    /// Each has to [`Engine::serve`], or be given up by [`Engine::cancel_thread`].
    pub fn initial_threads(&self) -> usize {
        let wanted = self.config.min_threads.max(2).min(self.threads.most());
        (0..wanted).take_while(|_| self.threads.reserve()).count()
    }

    /// Counts one more thread as starting; false if there are `max_threads`, or those that are left will do.
    pub fn replace_thread(&self) -> bool {
        self.threads.reserve()
    }

    /// A thread that was counted as starting will not come.
    pub fn cancel_thread(&self) {
        self.threads.cancel_start();
    }

    /// Wakes one waiting thread if there is something that it could do: run a request, or poll because nobody does.
    /// Callable from any thread; takes no lock when there is nothing to do.
    pub fn hand_over(&self) {
        self.threads.hand_over(self);
    }

    /// The app on this thread, which is in one of the calls of [`App`], has given the language's lock up: another thread is
    /// woken if it could do something. [`Engine::resume`] must follow on the same thread, before the call ends.
    pub fn suspend(&self) {
        self.threads.suspend(self);
    }

    /// The app on this thread wants the lock back.
    pub fn resume(&self) {
        self.threads.resume();
    }

    /// Ends every wait inside [`App::block`], so that threads can look at what their language wants of them.
    pub fn interrupt(&self) {
        self.threads.interrupt(self);
    }

    /// Lets somebody know that the ready queue has got something, unless this thread deals with events and is going to look.
    pub(crate) fn notify(&self) {
        if !is_in_reactor() {
            self.threads.announce(self);
        }
    }

    fn publish_threads(&self) {
        let begun = self.threads.now().begun();
        self.counters().threads.store(begun as i64, Relaxed);
    }

    /// One job, or one wait for it.
    fn turn(&self, seat: &Seat<'_>, app: &impl App, date: &mut DateCache) {
        self.fault("turn");
        match self.next_job() {
            Some(job) => self.run(seat, job, app, date),
            None => {
                // Counted before the language's lock is given up: what comes from then on ends the wait.
                let interrupts = self.threads.interrupts();
                let mut has_waited = false;
                app.block(&mut || {
                    has_waited = true;
                    self.threads.wait(seat, self, interrupts);
                });
                if has_waited {
                    seat.becomes(Doing::Looking);
                }
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        if self.has_transfers() {
            if let Some(connection) = self.move_in() {
                return Some(Job::Request(connection));
            }
        }
        if self.cadence.may_go_on() {
            if let Some(job) = self.ready.pop() {
                return Some(job);
            }
        }
        // This poll keeps the language's lock: it does not wait.
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.poll(self, Some(Duration::ZERO));
        }
        self.ready.pop()
    }

    fn run(&self, seat: &Seat<'_>, job: Job, app: &impl App, date: &mut DateCache) {
        let now = seat.becomes(Doing::Running);
        self.monitor.look();
        if now.free() == 0 && self.threads.reserve_for(self.ready.len()) && !app.start_thread() {
            self.threads.cancel_start();
        }
        self.fault("run");
        let begun = self.cadence.begin(|| self.hand_over());
        match job {
            Job::Request(connection) => self.run_request(connection, app, date),
            Job::Client(client) => self.run_event(&client, app),
            Job::Subscription(subscription) => self.run_published(&subscription, app),
            Job::Task => self.run_task(app),
        }
        seat.becomes(Doing::Looking);
        self.cadence.end(begun);
    }

    fn run_request(&self, mut connection: Box<Connection>, app: &impl App, date: &mut DateCache) {
        let mut exchange = Exchange::new(&mut connection, self, date);
        if catch_unwind(AssertUnwindSafe(|| app.call(&mut exchange))).is_err() {
            self.log
                .error(format_args!("[BUG] the server panicked while it ran a request"));
            if !exchange.has_started() || exchange.take_back() {
                exchange.respond_plainly(500);
            } else {
                exchange.abort();
            }
        }
        let ended = exchange.end();
        self.counters().requests.fetch_add(1, Relaxed);
        self.record(&mut connection, &ended);
        if let Some(client) = ended.client {
            return self.open_client(connection, &client);
        }
        if ended.hijacked {
            return self.let_go(connection);
        }
        if ended.gone {
            return self.close(connection);
        }
        let next = connection.answered(ended.close, &self.config, milliseconds());
        self.settle(connection, next);
    }
}

impl Site for Engine {
    fn has_jobs(&self) -> bool {
        !self.ready.is_empty()
    }

    fn calls_back(&self) -> bool {
        self.is_stopped() || self.has_transfers()
    }

    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        let watches_room = self.serves_room();
        reactor.watch_room(self, watches_room);
        if begin() {
            reactor.poll(self, None);
            if watches_room {
                self.answer_for_transfers();
            }
        }
        true
    }

    fn is_polled(&self) -> bool {
        self.reactor.is_locked()
    }

    fn end_poll(&self) {
        self.poller.wake();
    }

    fn relieve_monitor(&self) {
        self.monitor.release_reactor(&self.poller);
    }

    fn notify_monitor(&self) {
        self.monitor.look();
    }
}
