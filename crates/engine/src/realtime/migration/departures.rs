//! The clients of a worker that leave it: a few at a time, so that each of them is unread for a short time only.

use super::departure::Step;
use super::leaving::Prepared;
use super::retirement::{Hindrance, Retirement};
use super::SavedClient;
use crate::clock::Millis;
use crate::pubsub::Targets;
use crate::realtime::client::Client;
use crate::realtime::spread::Spread;
use crate::realtime::Realtime;
use crate::sync::Mutex;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Most clients that leave at a time.
const MOST: usize = 256;

/// After this time a client counts no more among them: its app takes long, and the others must not wait.
const USUAL: Duration = Duration::from_millis(500);

/// A client with more unsent bytes, or a longer state, is large.
pub(crate) const LARGE: usize = 256 * 1024;

/// The time for which clients that no worker takes are kept open.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Departures {
    has_begun: AtomicBool,
    /// The server ends, or no other worker continues: the app is told, and clients close.
    is_end: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Client>>,
    leaving: Vec<Arc<Client>>,
    /// The dispatcher has to hand these publications out before clients leave; see [`State::aim`].
    targets: Option<Targets>,
    /// Number of workers that had begun at that time.
    aimed_at: Option<u64>,
    /// The time of the first failed attempt to send a client since one was sent.
    stuck: Option<Millis>,
    retirement: Retirement,
    /// The time when it began.
    begun: Option<Millis>,
    /// Of the times at which clients close that stay.
    staying: Spread,
}

impl State {
    fn retire(&mut self, retirement: Retirement) {
        (self.retirement, self.begun) = (retirement, Some(Millis::now()));
    }

    /// Aims at everything that was published before the departure, and before the start of each worker that may take clients: it
    /// does not know these publications, so that the clients must have them.
    fn aim(&mut self, realtime: &Realtime) {
        let begun = realtime.worker.begun_workers();
        if self.aimed_at.replace(begun) != Some(begun) {
            self.targets = Some(realtime.hub.targets());
        }
    }
}

/// The result of sending a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Sent,
    /// The queue is full, or no worker has room.
    Full,
    /// This one cannot be sent now.
    NotNow,
    /// No other worker serves, and the server ends.
    Impossible,
}

/// The way to other workers.
pub(crate) trait Way {
    /// The reason why no client can be sent now. `is_large`: nor a large one.
    fn obstacle(&self, is_large: bool) -> Option<Sending>;

    /// Sends a client.
    fn send(&self, saved: &SavedClient, socket: &OwnedFd) -> Sending;
}

impl Departures {
    /// True if clients leave.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(SeqCst)
    }

    /// Lets all clients leave, and later ones: see [`Departures::add`]. A second call shortens the stay of the others.
    pub(crate) fn begin(&self, realtime: &Realtime, retirement: Retirement) {
        self.state.lock().retire(retirement);
        // First: a client that begins now is among all clients, or adds itself. Twice does no harm.
        self.has_begun.store(true, SeqCst);
        let mut state = self.state.lock();
        state.aim(realtime);
        state.waiting.extend(realtime.clients.all());
        drop(state);
        realtime.worker.poller.wake();
    }

    /// Tells all clients, and later ones, that the server ends.
    pub(crate) fn announce_end(&self, realtime: &Realtime) {
        self.is_end.store(true, SeqCst);
        realtime.announce_shutdown();
    }

    /// A client has begun. It is among all clients already, for a drain that begins now.
    pub(in crate::realtime) fn add(&self, client: &Arc<Client>) {
        if self.has_begun() {
            self.state.lock().waiting.push_back(Arc::clone(client));
        } else if self.is_end.load(SeqCst) {
            client.announce_end();
        }
    }

    /// True if clients leave, or are about to.
    pub(crate) fn has_left(&self) -> bool {
        let state = self.state.lock();
        self.has_begun() && !(state.waiting.is_empty() && state.leaving.is_empty())
    }

    /// True if one of them does not wait for the app alone.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.lock();
        let is_waiting = |client: &Arc<Client>| matches!(client.departure_step(), Step::Wait(_));
        let can_begin = !state.waiting.is_empty() && state.leaving.len() < MOST;
        self.has_begun() && (can_begin || !state.leaving.iter().all(is_waiting))
    }

    /// The time at which one more client that stays here closes.
    pub(in crate::realtime) fn close_time(&self, realtime: &Realtime, hindrance: Hindrance) -> Millis {
        let state = self.state.lock();
        let (now, configured) = (Millis::now(), realtime.worker.config.drain_spread);
        let stay = state.retirement.stay(hindrance, configured);
        let spread = state.retirement.spread(configured);
        (state.begun.unwrap_or(now) + stay).max(now) + spread.mul_f64(state.staying.next())
    }

    /// Continues with all clients that leave. Called by the poller.
    pub(crate) fn go_on(&self, realtime: &Realtime, now: Millis, way: &dyn Way) {
        if !self.has_begun() {
            return;
        }
        let mut state = self.state.lock();
        state.aim(realtime);
        let mut leaving = std::mem::take(&mut state.leaving);
        let targets = state.targets.clone();
        let stuck = state.stuck;
        drop(state);
        let is_prepared = targets.is_none_or(|targets| realtime.hub.has_reached(&targets));
        let mut turn = Turn {
            realtime,
            way,
            now,
            stuck,
            is_prepared,
            is_full: false,
            has_large: false,
            slow: 0,
        };
        leaving.retain(|client| turn.guarded(client));
        let (stuck, most) = (turn.stuck, MOST + turn.slow);
        let mut state = self.state.lock();
        state.stuck = stuck;
        // Until then all clients are served as before.
        while is_prepared && leaving.len() < most {
            let Some(client) = state.waiting.pop_front() else { break };
            drop(state);
            if client.leave(now) {
                leaving.push(client);
            }
            state = self.state.lock();
        }
        state.leaving = leaving;
        if state.leaving.is_empty() && state.waiting.is_empty() {
            state.stuck = None;
        }
    }
}

/// One turn of the poller.
struct Turn<'a> {
    realtime: &'a Realtime,
    way: &'a dyn Way,
    now: Millis,
    stuck: Option<Millis>,
    /// All publications from before the departure were handed out.
    is_prepared: bool,
    is_full: bool,
    /// A client with much unsent was tried.
    has_large: bool,
    slow: usize,
}

impl Turn<'_> {
    /// As [`Turn::go_on`], but the client closes if that panics.
    fn guarded(&mut self, client: &Client) -> bool {
        let worker = Arc::clone(&self.realtime.worker);
        let goes_on = worker.guard("a client that leaves", || self.go_on(client));
        goes_on.unwrap_or_else(|| self.give_up(client, self.now))
    }

    /// Continues with one client. Returns false if there is nothing more to do.
    fn go_on(&mut self, client: &Client) -> bool {
        match client.departure_step() {
            Step::Over => false,
            Step::AwaitCut => true,
            Step::Wait(since) => {
                self.slow += usize::from(self.now - since > USUAL);
                true
            }
            Step::Prepare => {
                let is_possible = !self.is_prepared || client.prepare_departure(self.realtime);
                is_possible || self.give_up(client, self.now)
            }
            Step::Send if self.is_full => true,
            Step::Send => self.send(client),
        }
    }

    fn send(&mut self, client: &Client) -> bool {
        let is_large = client.unsent_bytes() > LARGE;
        // One large client in a turn: copies take memory and time.
        if is_large && std::mem::replace(&mut self.has_large, true) {
            return true;
        }
        let (prepared, sending) = match self.way.obstacle(is_large) {
            Some(obstacle) => (Prepared::Later, obstacle),
            None => {
                let mut sending = Sending::NotNow;
                let prepared = client.send_away(&mut |saved, socket| {
                    sending = self.way.send(saved, socket);
                    sending == Sending::Sent
                });
                (prepared, sending)
            }
        };
        match (prepared, sending) {
            (Prepared::Sent, _) => {
                self.stuck = None;
                false
            }
            (Prepared::Never, _) | (Prepared::Later, Sending::Impossible) => self.give_up(client, self.now),
            (Prepared::Later, _) if self.now - *self.stuck.get_or_insert(self.now) > PATIENCE => {
                let departures = &self.realtime.departures;
                self.give_up(client, departures.close_time(self.realtime, Hindrance::Workers))
            }
            (Prepared::Later, sending) => {
                self.is_full |= sending == Sending::Full;
                true
            }
        }
    }

    /// Closes a client that no worker takes, at this time.
    fn give_up(&self, client: &Client, closes_at: Millis) -> bool {
        client.give_departure_up(closes_at);
        self.realtime.expect(client, closes_at);
        false
    }
}
