//! The sessions of HTTP/2: what follows from what the reactor sees of them. Their requests become connections for one
//! request each, and go the way of all others.

use super::jobs::Job;
use super::Engine;
use crate::clock::Millis;
use crate::connection::place::Place;
use crate::connection::turns::{Turn, TurnLine, TurnTaker};
use crate::connection::{Connection, Next};
use crate::http2::{session_key, Arrival, Beginning, End, Session};
use crate::observe::excess::About;
use crate::reactor::Handler;
use crate::scheduler::{Workplace, PATIENCE};
use crate::stream::Stream;
use crate::transport::poller::{Dispatching, Key};
use fairlead_wire::http2::Flood;
use fairlead_wire::Version;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

impl TurnTaker for Engine {
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool) {
        self.scheduler.schedule(Job::Request(connection), self);
        if !is_leaving {
            self.pass_on();
        }
    }
}

impl Engine {
    /// A thread is about to run a request: the next one of the same session may wait among those of others. This thread
    /// finds it afterwards, or wakes another one for it when the app blocks.
    pub(super) fn end_turn(&self, connection: &mut Connection) {
        let here = Dispatching::enter();
        connection.end_turn();
        drop(here);
        if connection.stream.request.version() == Version::Http2 {
            self.pass_on();
        }
    }

    /// Lets other workers take what waits here for longer than usual, if no thread here can: in its line it was not seen
    /// by them.
    fn pass_on(&self) {
        let are_all_busy = || self.scheduler.now().busy() >= self.scheduler.threads().most();
        if !self.scheduler.ready().is_empty() && are_all_busy() {
            self.shed(PATIENCE);
        }
    }

    /// Sends what waits for other responses.
    pub(super) fn send_delayed(&self) {
        self.sessions.shared().delayed.send();
    }

    /// The client of a connection speaks HTTP/2: a session takes its place.
    pub(super) fn begin_session(&self, connection: Connection) {
        let now = Millis::now();
        let (place, mut stream) = connection.into_session();
        let ahead = std::mem::take(&mut stream.input);
        let transport = Arc::clone(stream.transport());
        let (endpoint, peers) = stream.into_peers();
        let taker: Weak<dyn TurnTaker> = self.me.clone();
        let key = session_key(place.key());
        let budget = self.budgets.budget_of(peers.owner(key), key);
        let beginning = Beginning {
            place,
            transport,
            ahead,
            endpoint,
            peers,
            line: TurnLine::new(&self.in_line, taker, budget),
            worker: Arc::clone(&self.worker),
        };
        let session = Session::new(beginning, self.sessions.shared().clone(), now);
        self.sessions.insert(&session);
        self.counters().http2_connections.fetch_add(1, Relaxed);
        if self.worker.is_stopped() {
            session.end_now(End::Usual);
        }
        self.advance(&session, &mut [0; 1024], now);
    }

    /// The socket of a session is ready.
    pub(super) fn step_session(&self, key: Key, scratch: &mut [u8], now: Millis) {
        let Some(session) = self.sessions.get(key) else { return };
        let step = self.worker.guard("a session", || {
            self.worker.fault("step a session");
            self.advance(&session, scratch, now);
        });
        if step.is_none() {
            session.end_now(End::Usual);
            self.forget_if_over(&session);
        }
    }

    /// Receives and sends what is possible, and goes on with the streams.
    fn advance(&self, session: &Arc<Session>, scratch: &mut [u8], now: Millis) {
        let arrivals = session.pull(scratch, now);
        if session.take_has_reset() {
            session.line.drop_abandoned();
        }
        for arrival in arrivals {
            self.begin_stream(session, arrival, now);
        }
        session.gather();
        self.step_streams(session, scratch, now);
        self.keep_to_response_memory();
        self.forget_if_over(session);
    }

    /// Takes in a request.
    fn begin_stream(&self, session: &Arc<Session>, arrival: Arrival, now: Millis) {
        let config = &self.worker.config;
        let opened = session.open_stream(arrival, |bytes| self.admits_stream(session, bytes));
        let Some((link, head, begun)) = opened else { return };
        let peers = session.peers.for_stream();
        let mut stream = Stream::new(link, Arc::clone(&session.endpoint), None, config);
        stream.peers = peers;
        let mut connection = self.connections.open_stream(stream, session.is_with_one_stream(), now);
        connection.share_turns(Turn::of(&session.line, begun.priority));
        self.counters().http2_requests.fetch_add(1, Relaxed);
        let next = match head {
            Ok(head) => {
                connection.stream.input = head;
                connection.begin_stream(begun.has_body, config, now)
            }
            Err(error) => Next::Refuse(error.into()),
        };
        self.settle_elsewhere(Box::new(connection), next);
    }

    /// Goes on with the streams to which something has happened.
    fn step_streams(&self, session: &Session, scratch: &mut [u8], now: Millis) {
        let due = session.due();
        for (key, happened) in &due {
            self.happened(*key, *happened, scratch, now);
        }
        if !due.is_empty() {
            // As with the poller, what is still possible is told again.
            session.look_later();
            session.push_if_due();
        }
    }

    /// Goes on with streams for which no event of a socket comes.
    pub(super) fn look_at_streams(&self, scratch: &mut [u8], now: Millis) {
        for session in self.sessions.to_look_at() {
            for arrival in session.take_arrivals() {
                self.begin_stream(&session, arrival, now);
            }
            self.step_streams(&session, scratch, now);
            session.line.resume();
            self.resume_uploads_of(&session, now);
            self.forget_if_over(&session);
            // If it has given way, and that was not enough.
            self.keep_to_response_memory();
        }
    }

    /// Ends the sessions that have lasted too long; returns when to look again.
    pub(super) fn expire_sessions(&self, now: Millis) -> Millis {
        let (expired, next) = self.sessions.expired(now);
        for session in expired {
            session.expire(now);
            self.forget_if_over(&session);
        }
        next
    }

    /// This worker is about to end: clients are told to send further requests elsewhere.
    pub(super) fn leave_sessions(&self) {
        for session in self.sessions.all() {
            session.leave();
            self.forget_if_over(&session);
        }
    }

    pub(super) fn stop_sessions(&self) {
        for session in self.sessions.all() {
            session.end_now(End::Usual);
            self.forget_if_over(&session);
        }
    }

    /// Forgets a session that has ended, once all its streams know of it.
    pub(super) fn forget_if_over(&self, session: &Session) {
        if !session.is_over() {
            return;
        }
        if let Some((place, end)) = session.bury() {
            self.bury(session, place, end);
        }
        if session.is_forgettable() {
            self.sessions.remove(session);
        }
    }

    /// Gives up the place of a session that has ended, and says why it has if that is of interest.
    fn bury(&self, session: &Session, mut place: Place, end: End) {
        session.line.clear();
        session.budget().retire();
        let why = match end {
            End::Usual | End::Idle => None,
            End::Flood(flood) => {
                self.count_flood(flood);
                Some(format!("{}: closed 11", flood.name()))
            }
            End::Violation(reason) => {
                self.counters().http2_violations.fetch_add(1, Relaxed);
                Some(format!("{}: closed {}", reason.description(), u32::from(reason)))
            }
            End::GaveWay => {
                self.counters().http2_slow.fetch_add(1, Relaxed);
                place.reset();
                None
            }
            End::Slow => {
                self.counters().http2_slow.fetch_add(1, Relaxed);
                place.reset();
                Some("it takes or sends too little: closed 11".to_string())
            }
        };
        if let Some(why) = why {
            let peers = &session.peers;
            let log = &self.worker.log;
            log.about_peer(
                About::Session,
                peers.client(),
                format_args!("ended HTTP/2 with {peers} ({why})"),
            );
        }
        drop(place);
        session.look_later();
        self.finish_if_drained();
    }

    fn count_flood(&self, flood: Flood) {
        let counters = self.counters();
        let counter = match flood {
            Flood::Resets => &counters.http2_reset_floods,
            Flood::ProvokedResets => &counters.http2_provoked_reset_floods,
            Flood::Settings => &counters.http2_settings_floods,
            Flood::Pings => &counters.http2_ping_floods,
            Flood::Priorities => &counters.http2_priority_floods,
            Flood::WindowUpdates => &counters.http2_window_floods,
            Flood::Continuations => &counters.http2_continuation_floods,
            Flood::EmptyData => &counters.http2_empty_data_floods,
        };
        counter.fetch_add(1, Relaxed);
    }
}
