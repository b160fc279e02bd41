//! The turns of a client in the ready queue: it begins, has a turn for each of its events, one at a time and in order,
//! and ends.

use super::carrier::Carrier;
use super::client::{Beginning, Client, Protocol};
use super::encoding;
use super::frames::Frame;
use super::inbox::Event;
use super::migration::{Hindrance, SERVICE_RESTART};
use super::process::ProcessSubscription;
use super::remainder::Remainder;
use super::{Realtime, Scheduled};
use crate::clock::Millis;
use crate::config::fair_by::Flow;
use crate::limits::holders::Owner;
use crate::pubsub::Publication;
use crate::transport::poller::Key;
use crate::transport::Link;
use crate::worker::{ClientProtocol, Count};
use fairlead_wire::websocket::Deflate;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// Close code of a server that is going away (RFC 6455 §7.4.1).
pub(super) const GOING_AWAY: u16 = 1001;

/// Event streams reconnect after this time, unless the app sends another `retry`, if the worker is killed or their
/// connection is lost.
const EARLIEST_RETRY: Duration = Duration::from_secs(1);

/// … and at most this time later, each at another time.
const RETRY: Duration = Duration::from_secs(4);

/// The step after a turn of a client.
#[derive(Debug)]
pub(crate) enum EventEnd {
    /// Nothing, until there is another event.
    Nothing,
    /// Another turn: there are more events.
    Again,
    /// This was the last event, and the client is released. Has the names of channels that lost their last subscriber
    /// in this process.
    Gone(Vec<Box<[u8]>>),
}

/// The program at the other end of a client.
pub(crate) struct Peer<O> {
    pub(crate) address: Option<SocketAddr>,
    /// Of the connection: see [`Origin::fingerprint`](crate::Origin::fingerprint).
    pub(crate) origin: u32,
    /// The flow that its events count for.
    pub(crate) flow: Option<Flow>,
    /// Returns the owner that it counts for in the totals, given its key.
    pub(crate) owner: O,
}

impl Realtime {
    /// A client that is about to begin. Its first event follows when [`Realtime::begin`] is called.
    pub(crate) fn new_client(
        &self,
        transport: &Link,
        peer: Peer<impl FnOnce(Key) -> Owner>,
        protocol: Protocol,
        deflate: Option<Deflate>,
    ) -> Arc<Client> {
        let key = self.clients.reserve();
        let http2 = transport.budget().map_or(key, |http2| http2.key());
        let beginning = Beginning {
            key,
            owner: (peer.owner)(http2),
            protocol,
            deflate,
            deflate_min_bytes: self.worker.config.deflate_min_bytes,
            peer: peer.address,
            origin: peer.origin,
            flow: peer.flow,
            transport: Arc::clone(transport),
            count: Count::client(&self.worker, counted_as(protocol)),
            timeout: match protocol {
                Protocol::Stream { .. } => 0,
                _ => self.worker.config.ping_interval,
            },
        };
        let client = Client::new(self.me.clone(), beginning);
        self.clients.put(&client);
        client
    }

    /// Begins a client over the socket of `carrier`: `head` is sent first, and `ahead` was already read from the peer.
    pub(crate) fn begin(&self, client: &Arc<Client>, carrier: Carrier, mut head: Vec<u8>, mut ahead: Vec<u8>) {
        if let Protocol::EventStream { chunked } = client.protocol() {
            let after = RETRY.mul_f64(self.retries.next()) + EARLIEST_RETRY;
            head.extend(encoding::retry(after.as_millis() as u64, chunked));
        }
        client.outbox.lock().carrier = Some(carrier);
        client.mobility.begin(client.can_migrate(), &self.worker);
        // The first event is added before all others, but runs only when nothing can overtake the head. The poller
        // starts to read only after `ahead` was decoded.
        let is_there = client.inbox.lock().push(Event::Open);
        client.send_first(client.outbox.lock(), Frame::Own(head));
        let has_more = !ahead.is_empty() && client.read_ahead(&mut ahead, self);
        client.start_reading(self);
        if is_there || has_more {
            self.schedule(Scheduled::Client(Arc::clone(client)));
        }
        self.departures.add(client);
        if self.worker.is_stopped() {
            // The thread that has stopped the engine may have ended all clients before this one was added.
            self.end_client(client);
        }
        if let Some(period) = client.keep_alive.period() {
            self.expect(client, Millis::now() + period);
        }
    }

    /// Announces to every client that the server is about to end.
    pub(super) fn announce_shutdown(&self) {
        self.clients.all().iter().for_each(|client| client.announce_end());
    }

    /// Runs the next event of a client with `run`.
    pub(crate) fn run_event(&self, client: &Client, run: impl FnOnce(Event)) -> EventEnd {
        let mut inbox = client.inbox.lock();
        let Some(event) = inbox.take() else {
            inbox.end_turn();
            return EventEnd::Nothing;
        };
        drop(inbox);
        let is_shutdown = matches!(event, Event::Shutdown);
        let is_close = matches!(event, Event::Close | Event::Departed);
        let asks = matches!(event, Event::HandOver);
        let bytes = event.own_bytes();
        run(event);
        if bytes > 0 {
            self.intake.remove(bytes, &self.worker.poller);
        }
        self.worker.counters().events.fetch_add(1, Relaxed);
        if is_shutdown {
            client.close(Some(self.reason_of_shutdown()), "");
        }
        if asks && !client.departure.is_handed_over() {
            client.stay(Hindrance::App);
        }
        if is_close {
            client.inbox.lock().end_turn();
            return EventEnd::Gone(self.release(client));
        }
        client.resume(self);
        let mut inbox = client.inbox.lock();
        let last_event = inbox.take_last_word();
        let has_more = inbox.end_turn();
        drop(inbox);
        if let Some(last_event) = last_event {
            client.answer_last(last_event);
        }
        if has_more {
            EventEnd::Again
        } else {
            EventEnd::Nothing
        }
    }

    fn reason_of_shutdown(&self) -> u16 {
        match self.worker.is_retiring() {
            true => SERVICE_RESTART,
            false => GOING_AWAY,
        }
    }

    /// Runs the next message of a subscription of the process with `run`. Returns true if there are more messages.
    pub(crate) fn run_published(&self, subscription: &ProcessSubscription, run: impl FnOnce(&Publication)) -> bool {
        if let Some(publication) = subscription.take() {
            run(&publication);
            self.worker.counters().events.fetch_add(1, Relaxed);
        }
        subscription.end_turn()
    }

    /// Ends every client without its last events, because the engine was stopped.
    pub(crate) fn end_clients(&self) {
        self.clients.all().iter().for_each(|client| self.end_client(client));
    }

    fn end_client(&self, client: &Client) {
        client.say_goodbye();
        client.end_now();
        self.release(client);
    }

    /// Releases everything after the last event has run. Returns the names of channels that have no subscriber left in
    /// this process.
    fn release(&self, client: &Client) -> Vec<Box<[u8]>> {
        client.reader.lock().end();
        let unheard = client.inbox.lock().clear();
        self.intake.remove(unheard, &self.worker.poller);
        let mut outbox = client.outbox.lock();
        let transport = outbox.transport.take();
        let counts = (outbox.count.take(), outbox.carrier.take());
        outbox.remainder = Remainder::Open;
        drop(outbox);
        client.encoder.release();
        client.mobility.end();
        drop(transport);
        self.clients.release(client.key);
        drop(counts);
        client.unsubscribe_all(self)
    }
}

pub(super) fn counted_as(protocol: Protocol) -> ClientProtocol {
    match protocol {
        Protocol::WebSocket => ClientProtocol::WebSocket,
        Protocol::EventStream { .. } => ClientProtocol::EventStream,
        Protocol::Stream { .. } => ClientProtocol::Other,
    }
}
