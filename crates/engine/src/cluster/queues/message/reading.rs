//! Reads a message.

use super::numbers::{self, kind, versions};
use super::{IncomingMigration, IncomingResponse, Spoiled, Stage, BEGINNING, HEADER, KIND, NUMBERS};
use crate::clock::Nanos;
use crate::cluster::queues::kernel_queue::read_file;
use crate::http::body::Body;
use crate::tls::Session;
use fairlead_system::memory_file;
use fairlead_tls_record::SecretBytes;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Parses a message.
pub(in crate::cluster::queues) fn open(
    datagram: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<IncomingMigration, Spoiled> {
    let mut descriptors = descriptors.into_iter();
    let socket = descriptors.next();
    let contents = socket.as_ref().and_then(|_| read(datagram, descriptors));
    match (socket, contents) {
        (Some(socket), Some(contents)) => Ok(contents.of(socket)),
        (socket, _) => Err(Spoiled {
            socket,
            ticket: ticket(datagram),
        }),
    }
}

/// The ticket of an incomplete message: the last number.
fn ticket(datagram: &[u8]) -> u64 {
    let header = datagram.first_chunk::<HEADER>();
    let ticket = header.and_then(|header| header.last_chunk().copied());
    ticket.map_or(0, u64::from_le_bytes)
}

/// Time since when a connection has waited, from the beginning of its message.
pub(in crate::cluster::queues) fn waits_since(beginning: &[u8; BEGINNING]) -> Nanos {
    let last = beginning.last_chunk().copied().unwrap_or_default();
    Nanos::from_number(u64::from_le_bytes(last))
}

/// True if the connection of this request has stayed in its worker.
pub(in crate::cluster::queues) fn is_relayed(datagram: &[u8]) -> bool {
    let kind = datagram.get(KIND);
    kind.is_some_and(|kind| u64::from(*kind) & kind::RELAYED != 0)
}

/// A transfer without its socket.
struct Contents {
    numbers: [u64; NUMBERS],
    input: Vec<u8>,
    body: Body,
    session: Option<Arc<Session>>,
    back_channel: Option<OwnedFd>,
    tls: Option<SecretBytes>,
    response: Option<Box<IncomingResponse>>,
}

impl Contents {
    fn of(self, socket: OwnedFd) -> IncomingMigration {
        let [moment, served, _, _, origin_and_kind, peer, high, low, wait, entered, waits_since, _, _, ticket] =
            self.numbers;
        IncomingMigration {
            socket,
            origin: (origin_and_kind >> 8) as u32,
            peer: numbers::peer([peer, high, low]),
            awaited: versions(origin_and_kind),
            stage: Stage::of(origin_and_kind, moment),
            body_wait: Duration::from_millis(wait),
            entered: Nanos::from_number(entered),
            waits_since: Nanos::from_number(waits_since),
            served,
            input: self.input,
            body: self.body,
            is_http2: origin_and_kind & kind::HTTP2 != 0,
            session: self.session,
            back_channel: self.back_channel,
            is_last: origin_and_kind & kind::LAST != 0,
            tls: self.tls,
            response: self.response,
            ticket,
        }
    }
}

fn read(datagram: &[u8], mut files: impl Iterator<Item = OwnedFd>) -> Option<Contents> {
    let (header, bytes) = datagram.split_first_chunk::<HEADER>()?;
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(header.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [_, _, input_length, body_length, origin_and_kind, .., session_length, response_length, _] = numbers;
    let long = match origin_and_kind & kind::LONG {
        0 => None,
        _ => Some(read_file(&files.next()?.into())?),
    };
    let bytes = long.as_deref().unwrap_or(bytes);
    let (bytes, response) = split_end(bytes, response_length)?;
    let (bytes, session) = split_end(bytes, session_length)?;
    let (input, body) = bytes.split_at_checked(usize::try_from(input_length).ok()?)?;
    let body = match origin_and_kind & kind::BODY {
        0 => Body::Empty,
        kind::MEMORY => Body::Memory(body.to_vec()),
        _ => Body::File(File::from(files.next()?), body_length),
    };
    let sent_file = match origin_and_kind & kind::RESPONSE_FILE {
        0 => None,
        _ => Some(files.next()?),
    };
    let back_channel = match origin_and_kind & kind::RELAYED {
        0 => None,
        _ => Some(files.next()?),
    };
    let tls = match origin_and_kind & kind::TLS {
        0 => None,
        _ => Some(memory_file::take_secret(files.next()?).ok()?.into()),
    };
    let session = match session {
        [] => None,
        session => Some(Arc::new(Session::from_bytes(session)?)),
    };
    let response = (origin_and_kind & kind::RESPONSE != 0).then(|| {
        let bytes = response.to_vec();
        Box::new(IncomingResponse { bytes, file: sent_file })
    });
    (body.len() == body_length).then(|| Contents {
        numbers,
        input: input.to_vec(),
        body,
        session,
        back_channel,
        tls,
        response,
    })
}

/// Splits off the last `length` bytes.
fn split_end(bytes: &[u8], length: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(usize::try_from(length).ok()?)?)
}
