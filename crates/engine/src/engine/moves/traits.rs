//! Traits through which the parts use the moves.

use super::Moves;
use crate::connection::stream_queue::StreamTurns;
use crate::connection::Connection;
use crate::engine::job::Job;
use crate::engine::sink::{Move, Sink};
use crate::limits::budget::Kind;
use crate::realtime::{Host, Scheduled};
use crate::spool::{Decision, Relief, Slowness};

impl Sink for Moves {
    fn put(&self, next: Move) {
        if self.go(next) {
            self.tell_of_work();
        }
    }
}

impl StreamTurns for Moves {
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool) {
        // Other workers would wait for a turn that never comes.
        let stays = is_leaving || self.parts.overload.is_overdue(&connection);
        if let Some(connection) = self.hold(connection) {
            self.parts.scheduler.schedule(Job::Request(connection));
        }
        if !stays {
            self.pass_on();
        }
    }

    fn abandon(&self, connection: Box<Connection>) {
        self.put(self.parts.overload.abandon(connection));
    }
}

impl Host for Moves {
    fn schedule(&self, turn: Scheduled) {
        let job = match turn {
            Scheduled::Client(client) => Job::Client(client),
            Scheduled::Subscription(subscription) => Job::Subscription(subscription),
        };
        self.parts.scheduler.schedule(job);
    }

    fn make_room(&self, kind: Kind) -> bool {
        let has_given_way = self.parts.giving_way.make_room(kind);
        self.end_if_drained();
        has_given_way
    }
}

impl Relief for Moves {
    fn relieve(&self, own: Option<Slowness>) -> Decision {
        let has_requests = || !self.parts.scheduler.ready().is_empty() || self.parts.admission.has_requests();
        let is_starving = self.are_all_busy() && has_requests();
        let verdict = self.parts.giving_way.relieve(own, is_starving);
        self.end_if_drained();
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Millis;
    use crate::connection::Next;
    use crate::support::*;
    use crate::transport::{Link, Socket};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    /// The thread that makes the move, such as the file sender, never looks at the ready queue itself.
    #[test]
    fn a_thread_is_told_of_a_request_whose_connection_cannot_migrate() {
        let server = Server::start(config(), |exchange| reply(exchange, "served"));
        let mut other = server.connect();
        assert_eq!(other.get("/").status, 200);
        let parts = &server.engine.parts;
        let (mut client, socket) = UnixStream::pair().expect("sockets");
        socket.set_nonblocking(true).expect("a socket");
        let link: Link = Arc::new(Socket::uncounted(socket.into()));
        let peer = Some(([127, 0, 0, 1], 1).into());
        let opened = parts
            .connections
            .open(&link, None, &parts.endpoints[0], peer, Millis::now());
        let mut connection = opened.expect("the poller watches the transport");
        connection.stream.input = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".to_vec();
        client.set_read_timeout(Some(PATIENCE)).expect("a socket");
        server
            .engine
            .moves
            .put(Move::Settle(Box::new(connection), Next::Migrate));
        client.flush().expect("a socket");
        let mut response = String::new();
        client.read_to_string(&mut response).expect("a response");
        assert!(response.ends_with("served"), "{response}");
    }
}
