//! One queue for the requests of all workers, with TLS and HTTP/2, too. Such a connection cannot change its process,
//! but its requests can: the worker with the connection passes one end of a socket pair to the worker that runs the
//! request, and relays the response. To the other worker it is a connection for one response.
//!
//! ```text
//!   worker A (has the state)            waiting room            worker B (has a free thread)
//!     request waits ──▶ its bytes, one end of a socket pair ──▶ runs it, sends the response there
//!     encrypts it for the peer ◀──────────────────────────────────────┘
//! ```
//! WebSockets and event streams begin in the worker that has their connections: they may stay for days, and a relayed
//! one would end with either worker.

use super::outgoing::outgoing_with;
use crate::clock::Millis;
use crate::cluster::queues::{OutgoingMigration, Sent};
use crate::connection::connections::Connections;
use crate::connection::relayed::RelayedResponse;
use crate::connection::{Connection, Next};
use crate::engine::ends;
use crate::engine::sink::{Move, Sink};
use crate::exchange::relay;
use crate::transport::poller::Interest;
use crate::transport::{RelayOwner, RelayRunner};
use crate::worker::Worker;
use std::os::fd::AsFd;
use std::sync::Arc;

/// See the head of this file.
pub(in crate::engine) struct Relays {
    worker: Arc<Worker>,
    connections: Arc<Connections>,
}

impl Relays {
    pub(in crate::engine) fn new(worker: &Arc<Worker>, connections: &Arc<Connections>) -> Arc<Relays> {
        Arc::new(Relays {
            worker: Arc::clone(worker),
            connections: Arc::clone(connections),
        })
    }

    /// Sends the request of a connection that has to stay to the waiting room. If that is not possible, returns the connection and
    /// the reason, and notes if the request has to stay, too.
    pub(super) fn relay(
        &self,
        mut connection: Box<Connection>,
        send: impl FnOnce(OutgoingMigration<'_>) -> Sent,
        sink: &dyn Sink,
    ) -> Result<(), (Box<Connection>, Sent)> {
        self.worker.fault("relay");
        let request = &mut connection.stream.request;
        if request.offers_upgrade() || request.wants_event_stream() {
            request.has_to_stay = true;
            return Err((connection, Sent::TooLong));
        }
        let Some((owner, runner)) = self.open_relay() else {
            return Err((connection, Sent::TooLong));
        };
        let sent = match self.outgoing(&connection, &runner) {
            Some(outgoing) => send(outgoing),
            None => Sent::TooLong,
        };
        if sent != Sent::Done {
            return Err((connection, sent));
        }
        drop(runner);
        match RelayedResponse::of(owner, &self.worker, connection.key(), Millis::now()) {
            Ok(response) => {
                connection.await_relayed(response);
                connection.pass_turn();
                sink.put(Move::Settle(connection, Next::AwaitAnswer));
            }
            Err(_) => ends::abort(connection),
        }
        Ok(())
    }

    fn open_relay(&self) -> Option<(RelayOwner, RelayRunner)> {
        let descriptors = &self.worker.config.descriptors;
        let permits = [descriptors.for_file()?, descriptors.for_file()?];
        RelayOwner::new(permits).ok()
    }

    /// Parks a connection with a response that comes from another worker. `reads`: until more of the response arrives;
    /// otherwise until the peer takes more.
    pub(in crate::engine) fn park_for_answer(&self, mut connection: Box<Connection>, reads: bool) {
        let interest = if reads { Interest::Nothing } else { Interest::Write };
        match connection.watch_answer(reads) {
            Ok(()) => drop(self.connections.park(connection, interest)),
            Err(_) => ends::abort(connection),
        }
    }

    /// The app in the other worker has taken its end of the socket pair. From now on bytes flow both ways, and a native
    /// thread carries them.
    pub(in crate::engine) fn relay_both_ways(&self, mut connection: Box<Connection>) {
        let ahead = std::mem::take(&mut connection.stream.input);
        let answered = connection.stream.output.take_unsent();
        let joined = connection.give_socket().map(|socket| {
            let transport = Arc::clone(connection.stream.transport());
            relay::join(&transport, &socket, ahead, answered)
        });
        match joined {
            Some(Ok(())) => ends::let_go(connection),
            _ => ends::abort(connection),
        }
    }

    /// The departure with which another worker runs the request of a connection that stays here.
    fn outgoing<'a>(&self, connection: &'a Connection, runner: &'a RelayRunner) -> Option<OutgoingMigration<'a>> {
        let outgoing = outgoing_with(connection, runner.socket.as_fd())?;
        let [proxy, head, _] = outgoing.input;
        Some(OutgoingMigration {
            input: [proxy, head, &[]],
            back_channel: Some(&runner.back_channel),
            is_last: match connection.stream.transport().can_move() {
                true => self.worker.ends_connections(),
                false => self.worker.is_leaving(),
            },
            session: connection.stream.transport().session().map(|session| &**session),
            ..outgoing
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::outgoing;
    use super::*;
    use crate::clock::Nanos;
    use crate::cluster::queues::{IncomingMigration, Received, WaitingRoom};
    use crate::connection::adopting::Adopted;
    use crate::fault::Fault;
    use crate::http::body::Body;
    use crate::scheduler::states::Doing;
    use crate::support::http2::{get, Http2Client};
    use crate::support::*;
    use crate::transport::{AfterResponse, ByteStream, ConnectionOwner, Link, RelayedSocket, Socket};
    use crate::Exchange;
    use std::io::Read as _;
    use std::sync::{mpsc, Mutex};

    /// An app with requests that wait, and the sender that lets one of them go on.
    fn held() -> (mpsc::Sender<()>, Arc<impl Fn(&mut Exchange<'_>) + Send + Sync>) {
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let wait = move |exchange: &mut Exchange<'_>| {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            reply(exchange, "busy");
        };
        (release, Arc::new(wait))
    }

    #[test]
    fn a_client_that_takes_nothing_costs_its_worker_nothing() {
        let (queues, _) = shared_queues();
        let (release, wait) = held();
        let shared = |slot| Some((Arc::clone(&queues), slot));
        let busy = Server::with_tls(&listen(), config(), shared(0), wait);
        let mut first = tls::connect(&busy);
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("the worker is busy", || busy.engine.stats().busy_threads == 1);
        // Fills all buffers up to a client that reads nothing. The message that the socket is given away comes after
        // these bytes.
        let (give, _given) = mpsc::channel();
        let fill = move |exchange: &mut Exchange<'_>| {
            if path(exchange) != "/full" {
                return reply(exchange, "short");
            }
            exchange.start(200);
            exchange.end_head(Some(u64::MAX));
            let is_full = |exchange: &mut Exchange<'_>| {
                exchange.write(&[b'x'; 16 * 1024]).expect("the client is there");
                !exchange.is_flushed()
            };
            let mut looks = 0;
            while looks < 50 {
                looks = if is_full(exchange) { looks + 1 } else { 0 };
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let _ = give.send(exchange.hijack().expect("a socket"));
        };
        let free = Server::with_tls(&listen(), config(), shared(1), Arc::new(fill));
        let (mut full, mut other) = (tls::connect(&busy), tls::connect(&busy));
        full.send("GET /full HTTP/1.1\r\nHost: test\r\n\r\n");
        full.stream
            .read_exact(&mut [0; 9])
            .expect("the beginning of the response");
        eventually("the other worker has given the socket away", || {
            free.engine.stats().connections == 0
        });
        (0..1_000).for_each(|_| busy.engine.faults().plan("step", Fault::Failure));
        (0..20).for_each(|_| assert_eq!(other.get("/short").text(), "short"));
        assert!(
            !busy.engine.faults().are_over(),
            "the poller reported the connection again and again"
        );
        release.send(()).expect("the thread waits");
    }

    /// Takes a request out of the room, as a worker that is about to die.
    fn take(room: &WaitingRoom) -> IncomingMigration {
        let mut found = None;
        eventually("a request is relayed", || match room.receive(1) {
            Received::Migration(incoming) => found.replace(incoming).is_none(),
            _ => false,
        });
        found.expect("a request")
    }

    #[test]
    fn a_client_is_told_that_the_worker_with_its_request_has_died() {
        let (queues, _) = shared_queues();
        let (release, wait) = held();
        let server = Server::with_tls(&listen(), config(), Some((Arc::clone(&queues), 0)), wait);
        let mut held = tls::connect(&server);
        held.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("the worker is busy", || server.engine.stats().busy_threads == 1);
        let mut client = tls::connect(&server);
        client.send("GET /lost HTTP/1.1\r\nHost: test\r\n\r\n");
        drop(take(queues.waiting_room()));
        assert_eq!(client.response().status, 502);
        assert!(client.is_closed());
        release.send(()).expect("the thread waits");
    }

    #[test]
    fn a_request_that_has_to_stay_is_offered_to_the_other_workers_once() {
        let (queues, _) = shared_queues();
        let (release, wait) = held();
        let server = Server::on(&listen(), config(), Some((Arc::clone(&queues), 0)), wait);
        let faults = server.engine.faults();
        (0..1_000).for_each(|_| faults.plan("relay", Fault::Failure));
        let mut first = server.connect();
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("the worker is busy", || server.engine.stats().busy_threads == 1);
        let mut client = Http2Client::connect(server.address);
        client.wait_for_settings();
        let mut events = get("/events");
        let accept = "text/event-stream".parse().expect("a value");
        events.headers_mut().insert("accept", accept);
        let events = client.ask(events, false);
        eventually("it was offered", || {
            client.advance();
            faults.left("relay") < 1_000
        });
        (0..60).for_each(|_| faults.plan("monitor", Fault::Failure));
        eventually("the monitor has looked many times", || faults.left("monitor") == 0);
        assert_eq!(faults.left("relay"), 999);
        (0..2).for_each(|_| release.send(()).expect("the thread waits"));
        assert_eq!(client.response(events).expect("a response").text(), "busy");
    }

    #[test]
    fn a_request_that_could_not_leave_is_seen_by_threads_that_have_become_idle_meanwhile() {
        let (queues, _) = shared_queues();
        let (release, wait) = held();
        let server = Server::on(&listen(), config(), Some((Arc::clone(&queues), 0)), wait);
        let mut client = Http2Client::connect(server.address);
        client.wait_for_settings();
        let mut first = server.connect();
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("the worker is busy", || server.engine.stats().busy_threads == 1);
        let faults = server.engine.faults();
        faults.plan("relay", Fault::Hang);
        let mut events = get("/events");
        let accept = "text/event-stream".parse().expect("a value");
        events.headers_mut().insert("accept", accept);
        let events = client.ask(events, false);
        eventually("the monitor has it", || {
            client.advance();
            faults.left("relay") == 0
        });
        (0..2).for_each(|_| release.send(()).expect("the thread waits"));
        assert_eq!(first.response().text(), "busy");
        eventually("a thread polls", || {
            server.engine.parts.scheduler.now().any(Doing::Polling)
        });
        faults.release();
        assert_eq!(client.response(events).expect("a response").text(), "busy");
    }

    #[test]
    fn streams_of_a_worker_that_dies_are_refused_or_reset_as_failures() {
        let (queues, _) = shared_queues();
        let (release, wait) = held();
        let server = Server::on(&listen(), config(), Some((Arc::clone(&queues), 0)), wait);
        let mut client = Http2Client::connect(server.address);
        client.wait_for_settings();
        let first = client.ask(get("/first"), false);
        eventually("the worker is busy", || server.engine.stats().busy_threads == 1);
        let lost = client.ask(get("/lost"), false);
        drop(take(queues.waiting_room()));
        assert_eq!(client.response(lost).expect("a response").status, 502);
        let begun = client.ask(get("/begun"), false);
        let there = take(queues.waiting_room());
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome";
        rustix::io::write(&there.socket, head).expect("an open socket");
        drop(there);
        let reason = client.response(begun).expect_err("the rest is missing").reason();
        assert_eq!(reason, Some(h2::Reason::INTERNAL_ERROR));
        release.send(()).expect("the thread waits");
        assert_eq!(client.response(first).expect("a response").text(), "busy");
    }

    #[test]
    fn what_was_lent_goes_on_to_another_worker_as_it_came() {
        let server = Server::start(config(), |exchange| reply(exchange, "ok"));
        let engine = &server.engine;
        let permit = || engine.parts.worker.config.descriptors.for_file().expect("a permit");
        let (owner, runner) = RelayOwner::new([permit(), permit()]).expect("descriptors");
        let link: Link = Arc::new(RelayedSocket::new(
            Socket::uncounted(runner.socket),
            runner.back_channel,
            None,
        ));
        let peer = Some(([127, 0, 0, 1], 1).into());
        let opened = engine
            .parts
            .connections
            .open(&link, None, &engine.parts.endpoints[0], peer, Millis::now());
        let head = b"GET /relayed HTTP/1.1\r\nHost: test\r\n\r\n".to_vec();
        let request = Adopted {
            input: head,
            body: Body::Empty,
            is_http2: false,
            arrived: Nanos::now(),
            waits_since: Nanos::now(),
        };
        let adopted = opened
            .expect("the poller watches the transport")
            .adopted(request, 0, &config());
        let mut connection = adopted.expect("a request");
        let (queues, _) = shared_queues();
        let outgoing = outgoing(&connection).expect("a departure");
        assert_eq!(queues.waiting_room().send(&outgoing, 0), Sent::Done);
        connection.place().give_away();
        drop((connection, link));
        let Received::Migration(incoming) = queues.waiting_room().receive(1) else {
            panic!("no transfer");
        };
        let socket = Socket::uncounted(incoming.socket);
        let there = RelayedSocket::new(socket, incoming.back_channel.expect("a relayed request"), None);
        assert_eq!(there.send(b"answer", false), Ok(6));
        there.give_back(AfterResponse::NextRequest);
        assert_eq!(owner.socket.receive(&mut [0; 10]), Ok(6));
        assert_eq!(owner.heard().next, Some(AfterResponse::NextRequest));
    }
}
