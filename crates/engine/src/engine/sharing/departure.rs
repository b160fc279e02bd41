//! Departures: all that another worker needs to go on with a connection.

use crate::clock::Nanos;
use crate::cluster::waiting_room::Departure;
use crate::connection::Connection;
use fairlead_wire::Version;
use std::os::fd::{AsFd, OwnedFd};

/// The departure of a connection with its own socket. `None` if another worker cannot take over the transport, or not at
/// this stage.
pub(super) fn departure(connection: &Connection) -> Option<Departure<'_>> {
    let transport = connection.stream.transport();
    let departure = departure_with(connection, transport.as_plain()?)?;
    Some(Departure {
        // What another worker has lent goes on as it came.
        afterwards: transport.word(),
        session: transport.session().map(|session| &**session),
        is_last: transport.is_relayed() && !connection.stream.request.head.keep_alive,
        ..departure
    })
}

/// The same with another socket.
pub(super) fn departure_with<'a>(connection: &'a Connection, socket: &'a OwnedFd) -> Option<Departure<'a>> {
    let stream = &connection.stream;
    let (introduction, awaited) = connection.introduction();
    Some(Departure {
        socket: socket.as_fd(),
        afterwards: None,
        is_last: false,
        session: None,
        origin: stream.origin().fingerprint(),
        peer: stream.peers.socket(),
        awaited,
        stage: connection.stage()?,
        body_wait: stream.request.body_wait,
        entered: Nanos::now() - stream.request.waits.waiting_room,
        waits_since: connection.waits_since(),
        served: connection.served(),
        input: [introduction, stream.request.head_bytes(), &stream.input],
        body: &stream.request.body,
        is_http2: stream.request.version() == Version::Http2,
    })
}
