//! Turns connections into clients: WebSockets, event streams, and responses that continue after the app has returned.

use super::ends::after_response;
use super::sink::{Move, Sink};
use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::{Connection, Next, Successor};
use crate::exchange::Services;
use crate::realtime::{Carrier, Client, Owner};
use crate::transport::poller::Interest;
use crate::transport::AfterResponse;
use std::sync::{Arc, Weak};

/// See the head of this file.
pub(super) struct NewClients {
    me: Weak<NewClients>,
    services: Arc<Services>,
    connections: Arc<Connections>,
    sink: Weak<dyn Sink>,
}

/// A connection that stays in use after its client has ended.
struct SharedConnection(Weak<NewClients>, Box<Connection>);

impl Owner for SharedConnection {
    fn take_back(self: Box<Self>) {
        let SharedConnection(clients, connection) = *self;
        if let Some(clients) = clients.upgrade() {
            clients.take_back(connection);
        }
    }
}

/// The client that continues a response.
#[derive(Debug)]
struct Heir {
    clients: Weak<NewClients>,
    client: Option<Arc<Client>>,
    close: bool,
}

impl Successor for Heir {
    fn take_over(mut self: Box<Self>, connection: Box<Connection>) {
        if let (Some(clients), Some(client)) = (self.clients.upgrade(), self.client.take()) {
            clients.begin(connection, &client, self.close);
        }
    }
}

/// The connection has ended. Ends the client, too, so that the app is told.
impl Drop for Heir {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            client.end();
        }
    }
}

impl NewClients {
    pub(super) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        sink: Weak<dyn Sink>,
    ) -> Arc<NewClients> {
        Arc::new_cyclic(|me| NewClients {
            me: me.clone(),
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            sink,
        })
    }

    /// Turns a connection into a client, after the app has returned. `close`: the connection ends with the client. If
    /// the client begins later, returns the next move of the connection until then.
    pub(super) fn open(&self, mut connection: Box<Connection>, client: &Arc<Client>, close: bool) -> Option<Move> {
        // No thread waits until the peer has taken the earlier output. The client begins when the kernel has all of it.
        if client.is_response() && !connection.stream.output.is_empty() {
            let heir = Box::new(Heir {
                clients: Weak::clone(&self.me),
                client: Some(Arc::clone(client)),
                close,
            });
            let next = connection.send_for(heir, &self.services.worker.config, Millis::now());
            return Some(Move::Settle(connection, next));
        }
        self.begin(connection, client, close);
        None
    }

    /// Begins the client. The kernel has all earlier output of the response, or the output is the head of an upgrade.
    fn begin(&self, mut connection: Box<Connection>, client: &Arc<Client>, close: bool) {
        // A response that continues still has to send its end.
        if !client.is_response() {
            connection.stream.transport().give_back(AfterResponse::GivenAway);
        }
        let head = connection.stream.output.take_unsent();
        let goes_on = client.is_response() && !close;
        if goes_on && !connection.stream.transport().is_for_one_response() {
            connection.share_with_client();
            let carrier = Carrier::Shared(Box::new(SharedConnection(Weak::clone(&self.me), connection)));
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

    /// Takes back the connection of a client that has ended.
    fn take_back(&self, mut connection: Box<Connection>) {
        let worker = &self.services.worker;
        let Some(sink) = self.sink.upgrade().filter(|_| worker.is_at_home()) else {
            return;
        };
        connection.place().close();
        // The poller continues with it: this thread may have the lock of the language.
        connection.respond_later(after_response(worker, false), Millis::now());
        if let Err(connection) = self.connections.park(connection, Interest::Write) {
            sink.put(Move::Settle(connection, Next::Close));
        }
    }
}
