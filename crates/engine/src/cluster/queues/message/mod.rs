//! Format of a connection in the waiting room, with its request or without one: one datagram with metadata and the
//! bytes that were read, and the descriptor of the socket. A body in a temporary file travels as a second descriptor.
//! If the connection stays in its worker, the socket is one end of a pair, and one more descriptor is for the end of
//! the response. Long input travels in a file in memory, with one more descriptor, because the kernel only
//! takes short datagrams. The state of a TLS connection travels in a file of its own, which the receiver wipes. The rest of
//! a response travels behind the input, and its file as one more descriptor. `numbers.rs`: the numbers at the beginning;
//! `reading.rs`: makes a connection of it again.

mod numbers;
mod reading;

pub(crate) use numbers::{peer, peer_numbers, Stage};
pub(super) use reading::{is_relayed, open, waits_since};

use crate::clock::Nanos;
use crate::http::body::Body;
use crate::tls::Session;
use fairlead_system::memory_file;
use fairlead_tls_record::SecretBytes;
use fairlead_wire::ProxyVersions;
use numbers::{kind, versions_kind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longest datagram.
pub(super) const DATAGRAM_BYTES: usize = 32 * 1024;

/// Most descriptors of a message.
pub(crate) const DESCRIPTORS: usize = 4;

/// Number of this format. Change it with the format, and with the counts in `attendance.rs`, so that processes of two versions do
/// not share a room.
pub(super) const FORMAT: u32 = 10;

/// Count of numbers at the beginning: time of the current stage ([`Stage`]), requests served, lengths of input and
/// body, origin and kind, the peer (three numbers), time spent on waiting for the body, time of entering the room, time
/// since when it has waited for its turn, the lengths of the session and of the rest of a response, and the ticket.
const NUMBERS: usize = 14;
const HEADER: usize = 8 * NUMBERS;

/// Bytes of a message that [`waits_since`] needs.
pub(super) const BEGINNING: usize = 8 * 11;

/// Offset of the byte that holds the kind.
const KIND: usize = 32;

/// Received message, before it becomes a connection again.
#[derive(Debug)]
pub(crate) struct IncomingMigration {
    pub(crate) socket: OwnedFd,
    /// See [`Origin::fingerprint`](crate::Origin::fingerprint).
    pub(crate) origin: u32,
    /// Peer of the socket; `None` for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    /// PROXY header at the beginning of the input, or still expected.
    pub(crate) awaited: Option<ProxyVersions>,
    pub(crate) stage: Stage,
    /// Time of entering the room, minus the time spent in the room before.
    pub(crate) entered: Nanos,
    /// Time since when it has waited for its turn, here and in its previous worker.
    pub(crate) waits_since: Nanos,
    pub(crate) body_wait: Duration,
    pub(crate) served: u64,
    pub(crate) input: Vec<u8>,
    pub(crate) body: Body,
    /// True if the head is from an HTTP/2 request.
    pub(crate) is_http2: bool,
    /// Result of the TLS handshake in the worker that has the connection.
    pub(crate) session: Option<Arc<Session>>,
    /// Descriptor that reports the step after the response to the worker that has the connection, if the request is
    /// relayed.
    pub(crate) back_channel: Option<OwnedFd>,
    /// True if the response is to end the connection, because the worker that has it ends.
    pub(crate) is_last: bool,
    /// State of the TLS connection on the socket: see [`Transport::export`](crate::transport::Transport::export).
    pub(crate) tls: Option<SecretBytes>,
    pub(crate) response: Option<Box<IncomingResponse>>,
    /// Ticket in the waiting room: see [`Tickets`](super::Tickets); 0 for none.
    pub(crate) ticket: u64,
}

/// An incomplete message.
#[derive(Debug)]
pub(crate) struct Spoiled {
    /// The socket, if it has arrived.
    pub(crate) socket: Option<OwnedFd>,
    /// As in [`IncomingMigration`].
    pub(crate) ticket: u64,
}

/// Rest of a response, as the connection in the other worker has written it.
#[derive(Debug)]
pub(crate) struct IncomingResponse {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: Option<OwnedFd>,
}

/// The same, to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingResponse<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) file: Option<BorrowedFd<'a>>,
}

/// Data to be sent.
#[derive(Debug)]
pub(crate) struct OutgoingMigration<'a> {
    pub(crate) socket: BorrowedFd<'a>,
    pub(crate) origin: u32,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) awaited: Option<ProxyVersions>,
    pub(crate) stage: Stage,
    /// Time of entering the room, minus the time spent in the room before.
    pub(crate) entered: Nanos,
    /// Time since when it has waited for its turn.
    pub(crate) waits_since: Nanos,
    pub(crate) body_wait: Duration,
    pub(crate) served: u64,
    /// PROXY header, bytes of the head, and bytes after the request.
    pub(crate) input: [&'a [u8]; 3],
    pub(crate) body: &'a Body,
    pub(crate) is_http2: bool,
    pub(crate) session: Option<&'a Session>,
    pub(crate) back_channel: Option<&'a OwnedFd>,
    /// True if the response is to end the connection.
    pub(crate) is_last: bool,
    /// State of the TLS connection on the socket.
    pub(crate) tls: Option<&'a SecretBytes>,
    pub(crate) response: Option<OutgoingResponse<'a>>,
    /// Ticket in the waiting room; 0 for none.
    pub(crate) ticket: u64,
}

#[cfg(test)]
impl<'a> OutgoingMigration<'a> {
    /// The shortest request, of the client at this socket.
    pub(crate) fn shortest(socket: BorrowedFd<'a>) -> OutgoingMigration<'a> {
        OutgoingMigration {
            socket,
            origin: 0,
            peer: None,
            awaited: None,
            stage: Stage::Request { arrived: Nanos::START },
            entered: Nanos::START,
            waits_since: Nanos::START,
            body_wait: Duration::ZERO,
            served: 0,
            input: [b"", b"GET / HTTP/1.0\r\n\r\n", b""],
            body: &Body::Empty,
            is_http2: false,
            session: None,
            back_channel: None,
            is_last: false,
            tls: None,
            response: None,
            ticket: 0,
        }
    }
}

/// Message to be sent.
pub(super) struct Message<'a> {
    header: [u8; HEADER],
    input: [&'a [u8]; 3],
    body: &'a [u8],
    session: Vec<u8>,
    response: &'a [u8],
    socket: BorrowedFd<'a>,
    /// File with input, body, session and response, if they do not travel in the datagram.
    long: Option<OwnedFd>,
    /// File with the body, or of the response.
    file: Option<BorrowedFd<'a>>,
    back_channel: Option<BorrowedFd<'a>>,
    /// File with the state of the TLS connection.
    tls: Option<OwnedFd>,
}

impl<'a> Message<'a> {
    /// # Errors
    /// If there is no file for the state of the TLS connection.
    pub(super) fn new(request: &OutgoingMigration<'a>) -> io::Result<Message<'a>> {
        let (body_kind, body, file): (u64, &[u8], Option<&File>) = match request.body {
            Body::Empty => (0, &[], None),
            Body::Memory(bytes) => (kind::MEMORY, bytes, None),
            Body::File(file, _) => (kind::FILE, &[], Some(file)),
        };
        let [peer, address_high, address_low] = peer_numbers(request.peer);
        let proxy = versions_kind(request.awaited);
        let relayed = if request.back_channel.is_some() {
            kind::RELAYED
        } else {
            0
        };
        let http2 = if request.is_http2 { kind::HTTP2 } else { 0 };
        let last = if request.is_last { kind::LAST } else { 0 };
        let tls = if request.tls.is_some() { kind::TLS } else { 0 };
        let session = request.session.map_or_else(Vec::new, Session::to_bytes);
        let response = request.response.map_or(&[][..], |response| response.bytes);
        let sent_file = request.response.and_then(|response| response.file);
        let response_file = if sent_file.is_some() { kind::RESPONSE_FILE } else { 0 };
        let numbers = [
            request.stage.moment(),
            request.served,
            request.input.map(<[u8]>::len).iter().sum::<usize>() as u64,
            request.body.len(),
            u64::from(request.origin) << 8
                | (body_kind | proxy | relayed | http2 | last | tls | response_file)
                | request.stage.kind(),
            peer,
            address_high,
            address_low,
            request.body_wait.as_millis() as u64,
            request.entered.to_number(),
            request.waits_since.to_number(),
            session.len() as u64,
            response.len() as u64,
            request.ticket,
        ];
        let mut header = [0; HEADER];
        for (space, number) in header.chunks_exact_mut(8).zip(numbers) {
            space.copy_from_slice(&number.to_le_bytes());
        }
        let tls = request
            .tls
            .map(|state| memory_file::secret("fairlead connection", state));
        Ok(Message {
            header,
            input: request.input,
            body,
            session,
            response,
            socket: request.socket,
            long: None,
            file: file.map(AsFd::as_fd).or(sent_file),
            back_channel: request.back_channel.map(AsFd::as_fd),
            tls: tls.transpose()?,
        })
    }

    pub(super) fn is_short(&self) -> bool {
        let parts = self.parts();
        self.long.is_none() && HEADER + parts.map(<[u8]>::len).iter().sum::<usize>() <= DATAGRAM_BYTES
    }

    fn parts(&self) -> [&[u8]; 6] {
        let [proxy, head, ahead] = self.input;
        [proxy, head, ahead, self.body, &self.session, self.response]
    }

    /// Moves input, body, session and response to a file in memory.
    pub(super) fn lengthen(&mut self) -> io::Result<()> {
        let mut long = File::from(memory_file::open("fairlead request")?);
        self.parts().into_iter().try_for_each(|part| long.write_all(part))?;
        self.long = Some(long.into());
        self.header[KIND] |= kind::LONG as u8;
        Ok(())
    }

    pub(super) fn datagram(&self) -> [IoSlice<'_>; 7] {
        let [proxy, head, ahead, body, session, response] = match self.long {
            Some(_) => [&[][..]; 6],
            None => self.parts(),
        };
        [&self.header, proxy, head, ahead, body, session, response].map(IoSlice::new)
    }

    /// In this order: the socket, the file in memory, the file with the body or of the response, the descriptor that
    /// reports the end to the worker that has the connection, and the file with the state of the TLS connection. At most [`DESCRIPTORS`], because
    /// a connection that has a TLS state has no request.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let long = self.long.as_ref().map(AsFd::as_fd);
        let tls = self.tls.as_ref().map(AsFd::as_fd);
        let all = [Some(self.socket), long, self.file, self.back_channel, tls];
        all.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
