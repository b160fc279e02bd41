//! Requests and responses over TLS: the cases of `tests/requests`, and the specifics of TLS.

#[path = "../requests/cases.rs"]
mod cases;
#[path = "../support/mod.rs"]
mod common;
mod connections;
mod hostile;
#[path = "../requests/http1.rs"]
mod http1;
mod relays;
mod slow_clients;
mod workers;

/// The same as for other tests, but each server has TLS.
mod support {
    pub(super) use super::common::*;
    use std::ops::Deref;
    use std::sync::Arc;

    pub(super) struct Server(super::common::Server);

    impl Server {
        pub(super) fn start(config: Config, call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> Server {
            Server(super::common::Server::with_tls(&listen(), config, None, Arc::new(call)))
        }
    }

    impl Deref for Server {
        type Target = super::common::Server;

        fn deref(&self) -> &super::common::Server {
            &self.0
        }
    }

    use fairlead_engine::{Config, Exchange};
}

use std::net::Shutdown;
use support::tls::TlsStream;
use support::{Client, Server};

fn connect(server: &Server) -> Client<TlsStream> {
    support::tls::connect(server)
}

/// Closes the client's half of the connection.
fn half_close(client: &mut Client<TlsStream>) {
    let TlsStream { conn, sock } = &mut client.stream;
    conn.send_close_notify();
    conn.write_tls(sock).expect("an open socket");
    sock.shutdown(Shutdown::Write).expect("an open socket");
}
