//! The loop of one thread: take a request, run it to completion, give the connection back; with nothing to run, poll.
//!
//! At most one thread polls. Nobody else is woken while requests finish quickly; a waiting thread is woken exactly when
//! the one that runs the app stops using the language's lock ([`Engine::hand_over`]).

use crate::clock::{milliseconds, nanoseconds, DateCache};
use crate::config::Config;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::exchange::Exchange;
use crate::pubsub::Publication;
use crate::reactor::is_in_reactor;
use crate::ready::Job;
use crate::realtime::{Client, Event};
use parking_lot::{Condvar, Mutex};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// What the engine serves, and what it needs to know of the language that it is written in.
pub trait App {
    /// Answers one request, on this thread, to completion. A panic is answered with 500.
    fn call(&self, exchange: &mut Exchange<'_>);

    /// Runs one event of a client. No other event of that client runs at the same time.
    fn event(&self, _client: &Arc<Client>, _event: Event) {}

    /// The last event of a client has run: its place is free. `forgotten`: the names of channels of which it was the last
    /// subscriber in this process.
    fn gone(&self, _client: &Arc<Client>, _forgotten: Vec<Box<[u8]>>) {}

    /// Something was published that the process itself has subscribed to, by a subscription of that id.
    fn published(&self, _id: u64, _publication: &Publication) {}

    /// Runs one task; called once for each [`Engine::defer`].
    fn task(&self) {}

    /// Runs `wait`, which may sleep for long, without the lock of the language. [`Engine::interrupt`] must end it.
    fn block(&self, wait: &mut dyn FnMut()) {
        wait();
    }

    /// Whether this thread shall leave [`Engine::serve`] now.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Starts one more thread that calls [`Engine::serve`].
    fn start_thread(&self) {}

    /// Whether [`Engine::hand_over`] is called at the moment when a thread in [`App::call`] begins to wait. If not, the
    /// watchdog finds out within a millisecond.
    fn hands_over(&self) -> bool {
        false
    }
}

/// Requests for which the next thread is woken at once, after one had to be rescued by the watchdog.
const EAGER_REQUESTS: usize = 64;

/// A request that took this long is taken to have waited for something.
const LONG_NANOSECONDS: u64 = 500_000;

/// Who runs, who waits, who polls.
pub(crate) struct Threads {
    most: usize,
    total: AtomicUsize,
    busy: AtomicUsize,
    /// Threads that sleep until they are woken. Stored with the lock held, read without.
    waiting: AtomicUsize,
    /// Whether a thread (not the watchdog) waits for events.
    polling: AtomicBool,
    /// Wake-ups that were given and not yet taken.
    wakes: Mutex<usize>,
    wake: Condvar,
    /// Counts calls of [`Engine::interrupt`].
    interrupts: AtomicUsize,
    /// Requests for which hand-over happens before the app is called.
    eager: AtomicUsize,
    /// Requests that may run before the poller has to be asked again, so that no pipeline keeps the others out.
    until_poll: AtomicUsize,
}

impl Threads {
    pub(crate) fn new(config: &Config) -> Threads {
        Threads {
            most: config.max_threads.max(1),
            total: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            polling: AtomicBool::new(false),
            wakes: Mutex::new(0),
            wake: Condvar::new(),
            interrupts: AtomicUsize::new(0),
            eager: AtomicUsize::new(0),
            until_poll: AtomicUsize::new(0),
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.total.load(SeqCst)
    }

    pub(crate) fn busy(&self) -> usize {
        self.busy.load(SeqCst)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(crate) fn is_polling(&self) -> bool {
        self.polling.load(SeqCst)
    }

    /// Whether every thread that there may be runs the app.
    pub(crate) fn are_all_busy(&self) -> bool {
        self.busy() >= self.most
    }

    /// Makes the next requests hand over before they run, because one was found waiting.
    pub(crate) fn become_eager(&self) {
        self.eager.store(EAGER_REQUESTS, Relaxed);
    }

    pub(crate) fn polled(&self, ready: usize) {
        self.until_poll.store(ready, Relaxed);
    }

    pub(crate) fn wake_one(&self) {
        let mut wakes = self.wakes.lock();
        if *wakes < self.waiting() {
            *wakes += 1;
            self.wake.notify_one();
        }
    }

    pub(crate) fn wake_all(&self) {
        let mut wakes = self.wakes.lock();
        *wakes = self.waiting();
        self.wake.notify_all();
    }
}

impl Engine {
    /// Serves on this thread until the engine has drained or stopped, or the app says that the thread is interrupted.
    pub fn serve(&self, app: &impl App) {
        let mut date = DateCache::default();
        self.counters()
            .threads
            .store(self.threads.total.fetch_add(1, SeqCst) as u64 + 1, Relaxed);
        while !self.is_stopped() {
            match self.next_job() {
                Some(job) => self.run(job, app, &mut date),
                None => {
                    // Counted before the language's lock is given up: what comes from then on ends the wait.
                    let interrupts = self.threads.interrupts.load(SeqCst);
                    app.block(&mut || self.wait_for_work(interrupts));
                }
            }
            if app.is_interrupted() {
                break;
            }
        }
        self.counters()
            .threads
            .store(self.threads.total.fetch_sub(1, SeqCst) as u64 - 1, Relaxed);
        self.hand_over();
    }

    /// Threads to start at once: one that serves, and one to hand over to.
    pub fn initial_threads(&self) -> usize {
        self.config.min_threads.max(2).min(self.threads.most)
    }

    /// Wakes one waiting thread if there is something that it could do: run a request, or poll because nobody does.
    /// Callable from any thread; takes no lock when there is nothing to do.
    pub fn hand_over(&self) {
        if self.threads.waiting() > 0 && (!self.ready.is_empty() || !self.threads.is_polling()) {
            self.threads.wake_one();
        }
    }

    /// Ends every wait inside [`App::block`], so that threads can look at what their language wants of them.
    pub fn interrupt(&self) {
        self.threads.interrupts.fetch_add(1, SeqCst);
        self.threads.wake_all();
        self.poller.wake();
    }

    /// Lets somebody know that the ready queue has got something, unless this thread deals with events and is going to look.
    pub(crate) fn rouse(&self) {
        if is_in_reactor() {
            return;
        }
        if self.threads.is_polling() {
            self.poller.wake();
        } else {
            self.hand_over();
        }
        self.watchdog.look();
    }

    fn next_job(&self) -> Option<Job> {
        if self.has_guests() {
            if let Some(connection) = self.move_in() {
                return Some(Job::Request(connection));
            }
        }
        let left = self.threads.until_poll.load(Relaxed);
        if left > 0 {
            self.threads.until_poll.store(left - 1, Relaxed);
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

    /// Waits until there is a request to run, or [`Engine::interrupt`] has been called more than `interrupts` times.
    fn wait_for_work(&self, interrupts: usize) {
        let is_over = || {
            !self.ready.is_empty()
                || self.is_stopped()
                || self.threads.interrupts.load(SeqCst) != interrupts
                || self.has_guests()
        };
        while !is_over() {
            if let Some(mut reactor) = self.reactor.try_lock() {
                reactor.watch_room(self, self.serves_room());
                self.threads.polling.store(true, SeqCst);
                if !is_over() {
                    reactor.poll(self, None);
                }
                self.threads.polling.store(false, SeqCst);
            } else {
                self.sleep(&is_over);
            }
        }
    }

    fn sleep(&self, is_over: &dyn Fn() -> bool) {
        self.watchdog.release_reactor(&self.poller);
        let mut wakes = self.threads.wakes.lock();
        self.threads.waiting.fetch_add(1, SeqCst);
        // Whoever hands over looks at `waiting` after it has made work, so work made before this is seen here.
        while *wakes == 0 && !is_over() && self.reactor.is_locked() {
            self.threads.wake.wait(&mut wakes);
        }
        *wakes = wakes.saturating_sub(1);
        self.threads.waiting.fetch_sub(1, SeqCst);
    }

    fn run(&self, job: Job, app: &impl App, date: &mut DateCache) {
        let busy = self.threads.busy.fetch_add(1, SeqCst) + 1;
        self.watchdog.look();
        let total = self.threads.total();
        if busy == total && total < self.threads.most && total > 1 {
            app.start_thread();
        }
        let eager = self.threads.eager.load(Relaxed);
        let began = if eager > 0 { nanoseconds() } else { 0 };
        if eager > 0 {
            self.hand_over();
        }
        match job {
            Job::Request(connection) => self.run_request(connection, app, date),
            Job::Client(client) => self.run_event(&client, app),
            Job::Subscription(subscription) => self.run_published(&subscription, app),
            Job::Task => self.run_task(app),
        }
        self.threads.busy.fetch_sub(1, SeqCst);
        if eager > 0 {
            let quick = nanoseconds() - began < LONG_NANOSECONDS;
            self.threads
                .eager
                .store(if quick { eager - 1 } else { EAGER_REQUESTS }, Relaxed);
        }
    }

    fn run_request(&self, mut connection: Box<Connection>, app: &impl App, date: &mut DateCache) {
        let mut exchange = Exchange::new(&mut connection, self, date);
        if catch_unwind(AssertUnwindSafe(|| app.call(&mut exchange))).is_err() {
            self.journal
                .error(format_args!("[BUG] the server panicked while it ran a request"));
            if !exchange.has_started() || exchange.take_back() {
                exchange.answer_plainly(500);
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
