//! HTTP/2 connections: drives them on events from the reactor. Each of their requests becomes a connection for one
//! request, and is served like any other.

use super::giving_way::GivingWay;
use super::sink::{Move, Sink};
use super::uploads::Uploads;
use crate::agenda::MOST_OF_A_TURN;
use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::stream_queue::{StreamQueue, StreamTurn, StreamTurns};
use crate::connection::{Connection, Next};
use crate::http2::{http2_key, Arrival, Beginning, End, Http2Connection, Http2Connections};
use crate::limits::budget::Budgets;
use crate::stream::Stream;
use crate::transport::poller::{Happened, Key};
use crate::worker::Worker;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Takes the connections that an HTTP/2 connection has begun, and the events of its streams.
pub(super) trait Streams: Sink + Sized {
    /// Handles an event of a stream. `scratch` is space to read into.
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis);
}

/// See the head of this file.
pub(super) struct Http2Driver {
    pub(super) worker: Arc<Worker>,
    pub(super) connections: Arc<Connections>,
    pub(super) budgets: Arc<Budgets>,
    pub(super) http2_connections: Arc<Http2Connections>,
    pub(super) giving_way: Arc<GivingWay>,
    pub(super) uploads: Arc<Uploads>,
    /// Requests that wait behind others of their HTTP/2 connection.
    pub(super) queued_streams: Arc<AtomicUsize>,
    /// Puts the next one of them into the ready queue.
    pub(super) taker: Weak<dyn StreamTurns>,
}

impl Http2Driver {
    /// Requests that wait behind others of their HTTP/2 connection.
    pub(super) fn queued_streams(&self) -> usize {
        self.queued_streams.load(Relaxed)
    }

    /// Sends the output that waits for other responses.
    pub(super) fn send_delayed(&self) {
        self.http2_connections.shared().delayed.send();
    }

    /// True if [`Http2Driver::look_at_streams`] has something to do.
    pub(super) fn is_any_due(&self) -> bool {
        self.http2_connections.is_any_due()
    }

    /// Replaces a connection by an HTTP/2 connection, because its client speaks HTTP/2.
    pub(super) fn begin(&self, connection: Connection, streams: &impl Streams) {
        let now = Millis::now();
        let (place, mut stream) = connection.into_http2();
        let ahead = std::mem::take(&mut stream.input);
        let transport = Arc::clone(stream.transport());
        let (endpoint, peers) = stream.into_peers();
        let key = http2_key(place.key());
        let budget = self.budgets.budget_of(peers.owner(key), key);
        let beginning = Beginning {
            place,
            transport,
            ahead,
            endpoint,
            peers,
            queue: StreamQueue::new(&self.queued_streams, Weak::clone(&self.taker), budget),
            worker: Arc::clone(&self.worker),
        };
        let http2 = Http2Connection::new(beginning, self.http2_connections.shared().clone(), now);
        self.http2_connections.insert(&http2);
        self.worker.counters().http2_connections.fetch_add(1, Relaxed);
        if self.worker.is_stopped() {
            http2.end_now(End::Usual);
        }
        self.advance(&http2, &mut [0; 1024], now, streams);
    }

    /// The socket of an HTTP/2 connection is ready.
    pub(super) fn step(&self, key: Key, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        let Some(http2) = self.http2_connections.get(key) else {
            return;
        };
        let step = self.worker.guard("an HTTP/2 connection", || {
            self.worker.fault("step an HTTP/2 connection");
            self.advance(&http2, scratch, now, streams);
        });
        if step.is_none() {
            http2.end_now(End::Usual);
            self.forget_if_over(&http2);
        }
    }

    /// Receives and sends as much as possible, and continues the streams.
    fn advance(&self, http2: &Arc<Http2Connection>, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        http2.begin_look();
        let arrivals = http2.pull(scratch, now);
        if http2.take_has_reset() {
            http2.queue.drop_abandoned();
        }
        for arrival in arrivals {
            self.begin_stream(http2, arrival, now, streams);
        }
        http2.gather();
        step_streams(http2, scratch, now, streams);
        self.giving_way.keep_to_response_memory();
        self.forget_if_over(http2);
    }

    /// Begins a request.
    fn begin_stream(&self, http2: &Arc<Http2Connection>, arrival: Arrival, now: Millis, sink: &dyn Sink) {
        let config = &self.worker.config;
        let opened = http2.open_stream(arrival, |bytes| self.giving_way.admits_stream(http2, bytes));
        let Some((link, head, begun)) = opened else { return };
        let peers = http2.peers.for_stream();
        let mut stream = Stream::new(link, Arc::clone(&http2.endpoint), None, config);
        stream.peers = peers;
        let mut connection = self.connections.open_stream(stream, http2.is_with_one_stream(), now);
        connection.share_turns(StreamTurn::of(&http2.queue, begun.priority));
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

    /// Continues the streams that get no event from a socket.
    pub(super) fn look_at_streams(&self, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
        for http2 in self.http2_connections.to_look_at() {
            for arrival in http2.take_arrivals() {
                self.begin_stream(&http2, arrival, now, streams);
            }
            step_streams(&http2, scratch, now, streams);
            http2.queue.resume();
            self.uploads.resume_of(&http2, now, streams);
            self.forget_if_over(&http2);
            // In case the closing of an HTTP/2 connection has not freed enough memory.
            self.giving_way.keep_to_response_memory();
        }
    }

    /// Ends HTTP/2 connections that have lasted too long; returns the time of the next check, which is `now` if there may be
    /// more of them.
    pub(super) fn expire(&self, now: Millis) -> Millis {
        self.http2_connections.begin_check(self.worker.drain_deadline(), now);
        for http2 in (0..MOST_OF_A_TURN).map_while(|_| self.http2_connections.next_expired(now)) {
            http2.expire(now);
            self.forget_if_over(&http2);
        }
        self.http2_connections.next_check(now)
    }

    /// This worker is about to end: tells clients to send further requests elsewhere.
    pub(super) fn leave(&self) {
        for http2 in self.http2_connections.to_tell() {
            http2.leave();
            self.forget_if_over(&http2);
        }
    }

    /// Ends all HTTP/2 connections.
    pub(super) fn stop(&self) {
        for http2 in self.http2_connections.all() {
            http2.end_now(End::Usual);
            self.forget_if_over(&http2);
        }
    }

    fn forget_if_over(&self, http2: &Http2Connection) {
        self.http2_connections.forget_if_over(http2, &self.worker);
    }
}

/// Continues the streams that have events.
fn step_streams(http2: &Http2Connection, scratch: &mut [u8], now: Millis, streams: &impl Streams) {
    let due = http2.due();
    for (key, happened) in &due {
        streams.happened(*key, *happened, scratch, now);
    }
    if !due.is_empty() {
        // As with the poller, events that still hold are reported again.
        http2.look_later();
        http2.push_if_due();
    }
}
