//! The sessions of HTTP/2: drives them when the reactor sees something of them. Their requests become connections for one
//! request each, and go the way of all others.

use super::giving_way::GivingWay;
use super::sink::{Move, Sink};
use super::uploads::Uploads;
use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::turns::{Turn, TurnLine, TurnTaker};
use crate::connection::{Connection, Next};
use crate::http2::{session_key, Arrival, Beginning, End, Session, Sessions};
use crate::limits::budget::Budgets;
use crate::stream::Stream;
use crate::transport::poller::{Happened, Key};
use crate::worker::Worker;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Takes the connections that a session has begun, and the events of its streams.
pub(super) trait Streams: Sink + Sized {
    /// Something has happened to a stream. `scratch` is space to read into.
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis);
}

/// See the head of this file.
pub(super) struct SessionDriver {
    worker: Arc<Worker>,
    connections: Arc<Connections>,
    budgets: Arc<Budgets>,
    sessions: Arc<Sessions>,
    giving_way: Arc<GivingWay>,
    uploads: Arc<Uploads>,
    /// Requests that wait behind others of their session.
    in_line: Arc<AtomicUsize>,
    taker: Weak<dyn TurnTaker>,
}

impl SessionDriver {
    /// `in_line`: counts the requests that wait behind others of their session. `taker`: lets the next one of them wait for
    /// a thread.
    pub(super) fn new(
        (worker, connections): (&Arc<Worker>, &Arc<Connections>),
        (budgets, sessions): (&Arc<Budgets>, &Arc<Sessions>),
        (giving_way, uploads): (&Arc<GivingWay>, &Arc<Uploads>),
        in_line: &Arc<AtomicUsize>,
        taker: Weak<dyn TurnTaker>,
    ) -> SessionDriver {
        SessionDriver {
            worker: Arc::clone(worker),
            connections: Arc::clone(connections),
            budgets: Arc::clone(budgets),
            sessions: Arc::clone(sessions),
            giving_way: Arc::clone(giving_way),
            uploads: Arc::clone(uploads),
            in_line: Arc::clone(in_line),
            taker,
        }
    }

    /// Requests that wait behind others of their session.
    pub(super) fn in_line(&self) -> usize {
        self.in_line.load(Relaxed)
    }

    /// Sends what waits for other responses.
    pub(super) fn send_delayed(&self) {
        self.sessions.shared().delayed.send();
    }

    /// True if [`SessionDriver::look_at_streams`] has something to do.
    pub(super) fn is_any_due(&self) -> bool {
        self.sessions.is_any_due()
    }

    /// The client of a connection speaks HTTP/2: a session takes its place.
    pub(super) fn begin(&self, connection: Connection, streams: &impl Streams) {
        let now = Millis::now();
        let (place, mut stream) = connection.into_session();
        let ahead = std::mem::take(&mut stream.input);
        let transport = Arc::clone(stream.transport());
        let (endpoint, peers) = stream.into_peers();
        let key = session_key(place.key());
        let budget = self.budgets.budget_of(peers.owner(key), key);
        let beginning = Beginning {
            place,
            transport,
            ahead,
            endpoint,
            peers,
            line: TurnLine::new(&self.in_line, Weak::clone(&self.taker), budget),
            worker: Arc::clone(&self.worker),
        };
        let session = Session::new(beginning, self.sessions.shared().clone(), now);
        self.sessions.insert(&session);
        self.worker.counters().http2_connections.fetch_add(1, Relaxed);
        if self.worker.is_stopped() {
            session.end_now(End::Usual);
        }
        self.advance(&session, &mut [0; 1024], now, streams);
    }

    /// The socket of a session is ready.
    pub(super) fn step(&self, key: Key, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        let Some(session) = self.sessions.get(key) else { return };
        let step = self.worker.guard("a session", || {
            self.worker.fault("step a session");
            self.advance(&session, scratch, now, streams);
        });
        if step.is_none() {
            session.end_now(End::Usual);
            self.forget_if_over(&session);
        }
    }

    /// Receives and sends what is possible, and goes on with the streams.
    fn advance(&self, session: &Arc<Session>, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        let arrivals = session.pull(scratch, now);
        if session.take_has_reset() {
            session.line.drop_abandoned();
        }
        for arrival in arrivals {
            self.begin_stream(session, arrival, now, streams);
        }
        session.gather();
        step_streams(session, scratch, now, streams);
        self.giving_way.keep_to_response_memory();
        self.forget_if_over(session);
    }

    /// Takes in a request.
    fn begin_stream(&self, session: &Arc<Session>, arrival: Arrival, now: Millis, sink: &dyn Sink) {
        let config = &self.worker.config;
        let opened = session.open_stream(arrival, |bytes| self.giving_way.admits_stream(session, bytes));
        let Some((link, head, begun)) = opened else { return };
        let peers = session.peers.for_stream();
        let mut stream = Stream::new(link, Arc::clone(&session.endpoint), None, config);
        stream.peers = peers;
        let mut connection = self.connections.open_stream(stream, session.is_with_one_stream(), now);
        connection.share_turns(Turn::of(&session.line, begun.priority));
        self.worker.counters().http2_requests.fetch_add(1, Relaxed);
        let next = match head {
            Ok(head) => {
                connection.stream.input = head;
                connection.begin_stream(begun.has_body, config, now)
            }
            Err(error) => Next::Refuse(error.into()),
        };
        sink.put(Move::Settle(Box::new(connection), next));
    }

    /// Goes on with streams for which no event of a socket comes.
    pub(super) fn look_at_streams(&self, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        for session in self.sessions.to_look_at() {
            for arrival in session.take_arrivals() {
                self.begin_stream(&session, arrival, now, streams);
            }
            step_streams(&session, scratch, now, streams);
            session.line.resume();
            self.uploads.resume_of(&session, now, streams);
            self.forget_if_over(&session);
            // If it has given way, and that was not enough.
            self.giving_way.keep_to_response_memory();
        }
    }

    /// Ends the sessions that have lasted too long; returns when to look again.
    pub(super) fn expire(&self, now: Millis) -> Millis {
        let (expired, next) = self.sessions.expired(now);
        for session in expired {
            session.expire(now);
            self.forget_if_over(&session);
        }
        next
    }

    /// This worker is about to end: clients are told to send further requests elsewhere.
    pub(super) fn leave(&self) {
        for session in self.sessions.all() {
            session.leave();
            self.forget_if_over(&session);
        }
    }

    /// Ends all sessions.
    pub(super) fn stop(&self) {
        for session in self.sessions.all() {
            session.end_now(End::Usual);
            self.forget_if_over(&session);
        }
    }

    fn forget_if_over(&self, session: &Session) {
        self.sessions.forget_if_over(session, &self.worker);
    }
}

/// Goes on with the streams to which something has happened.
fn step_streams(session: &Session, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
    let due = session.due();
    for (key, happened) in &due {
        streams.happened(*key, *happened, scratch, now);
    }
    if !due.is_empty() {
        // As with the poller, what is still possible is told again.
        session.look_later();
        session.push_if_due();
    }
}
