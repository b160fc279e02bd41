//! Departures: everything that another worker needs to continue a connection.

use crate::clock::Nanos;
use crate::cluster::queues::OutgoingMigration;
use crate::connection::saved_response::SavedResponse;
use crate::connection::Connection;
use crate::transport::Export;
use fairlead_wire::Version;
use std::os::fd::{AsFd, BorrowedFd};

/// Departure of a connection with its own socket. `None` if another worker cannot take over the transport, or not at
/// this stage.
pub(super) fn outgoing(connection: &Connection) -> Option<OutgoingMigration<'_>> {
    let transport = connection.stream.transport();
    let outgoing = outgoing_with(connection, transport.as_plain()?.as_fd())?;
    Some(OutgoingMigration {
        // A relayed request of another worker is passed on unchanged.
        back_channel: transport.back_channel(),
        session: transport.session().map(|session| &**session),
        is_last: transport.is_relayed() && !connection.stream.request.head.keep_alive,
        ..outgoing
    })
}

/// Departure of a connection without a request, or with the rest of a response.
pub(super) fn exported<'a>(
    connection: &'a Connection,
    export: &'a Export<'a>,
    response: Option<&'a SavedResponse>,
) -> Option<OutgoingMigration<'a>> {
    Some(OutgoingMigration {
        response: response.map(SavedResponse::outgoing),
        tls: export.tls.as_ref(),
        ..outgoing_with(connection, export.socket.as_fd())?
    })
}

/// Departure with this socket.
pub(super) fn outgoing_with<'a>(connection: &'a Connection, socket: BorrowedFd<'a>) -> Option<OutgoingMigration<'a>> {
    let stream = &connection.stream;
    let (proxy_header, awaited) = connection.proxy_header();
    Some(OutgoingMigration {
        socket,
        back_channel: None,
        is_last: false,
        session: None,
        tls: None,
        response: None,
        origin: stream.origin().fingerprint(),
        peer: stream.peers.socket(),
        awaited,
        stage: connection.stage()?,
        body_wait: stream.request.body_wait,
        entered: Nanos::now() - stream.request.waits.waiting_room,
        waits_since: connection.waits_since(),
        served: connection.served(),
        input: [proxy_header, stream.request.head_bytes(), &stream.input],
        body: &stream.request.body,
        is_http2: stream.request.version() == Version::Http2,
        ticket: 0,
    })
}
