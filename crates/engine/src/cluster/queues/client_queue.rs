//! The queue of clients that migrate: for each its socket and its state. Short states travel in the datagram, all others in a
//! file in memory. A state with keys of TLS always does, and its receiver wipes the file.

use super::attendance::{Attendance, Visit};
use super::message::DATAGRAM_BYTES;
use super::queue::Sent;
use crate::cluster::scoreboard::Scoreboard;
use fairlead_system::sockets::{received, RECEIVE_DESCRIPTORS, SEND};
use fairlead_system::{datagrams, memory_file};
use fairlead_tls_record::SecretBytes;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{fcntl_dupfd_cloexec, retry_on_intr, Errno};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// Most descriptors of a message: the socket, and the file with the state.
const DESCRIPTORS: usize = 2;

/// In front of the state: it follows.
const INLINE: u8 = 0;

/// It is in the file.
const IN_FILE: u8 = 1;

/// It is in the file, which is to be wiped.
const IN_SECRET: u8 = 2;

/// See the head of this file.
pub(crate) struct ClientQueue {
    scoreboard: &'static Scoreboard,
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// A client that was taken out.
#[derive(Debug)]
pub(crate) struct MigratedClient {
    pub(crate) socket: OwnedFd,
    pub(crate) state: SecretBytes,
}

/// Result of an attempt to take a client out.
#[derive(Debug)]
pub(crate) enum TakenClient {
    Client(MigratedClient),
    Nobody,
    /// Nothing was taken, because this process has too few descriptors left.
    Short,
    /// Incomplete: the process ran out of descriptors.
    Spoiled,
}

impl ClientQueue {
    pub(super) fn new(scoreboard: &'static Scoreboard) -> std::io::Result<ClientQueue> {
        let (sender, receiver) = datagrams::queue()?;
        Ok(ClientQueue::of(scoreboard, sender, receiver))
    }

    pub(super) fn of(scoreboard: &'static Scoreboard, sender: OwnedFd, receiver: OwnedFd) -> ClientQueue {
        ClientQueue {
            scoreboard,
            sender,
            receiver,
        }
    }

    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.sender.as_fd(), self.receiver.as_fd()]
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    fn in_queue(&self) -> &'static Attendance {
        &self.scoreboard.migrating_clients
    }

    /// Number of clients in the queue. May be too high for a moment, but is never too low.
    pub(crate) fn len(&self) -> u64 {
        self.in_queue().count()
    }

    /// True if the queue may have a client: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.len() > 0
    }

    /// Puts a client in, from the worker in `slot`. The caller keeps the socket, too. `is_secret`: the state has keys.
    pub(crate) fn send(&self, socket: &OwnedFd, state: &SecretBytes, is_secret: bool, slot: usize) -> Sent {
        let is_short = !is_secret && state.len() < DATAGRAM_BYTES;
        let make = || match is_secret {
            true => memory_file::secret("fairlead client", state).map(|file| (IN_SECRET, file)),
            false => memory_file::constant("fairlead client", &[state]).map(|file| (IN_FILE, file)),
        };
        let Ok(file) = (!is_short).then(make).transpose() else {
            return Sent::TooLong;
        };
        let visit = Visit::enter(self.scoreboard, self.in_queue(), slot);
        visit.count_up();
        if self.put(socket, state, file.as_ref()).is_ok() {
            return Sent::Done;
        }
        visit.count_down();
        Sent::Full
    }

    fn put(&self, socket: &OwnedFd, state: &[u8], file: Option<&(u8, OwnedFd)>) -> rustix::io::Result<usize> {
        let (kind, state, file) = match file {
            Some((kind, file)) => (*kind, &[][..], Some(file)),
            None => (INLINE, state, None),
        };
        let kind = [kind];
        let datagram = [IoSlice::new(&kind), IoSlice::new(state)];
        let descriptors: Vec<BorrowedFd<'_>> = [Some(socket), file].into_iter().flatten().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        retry_on_intr(|| sendmsg(&self.sender, &datagram, &mut control, SEND))
    }

    /// Takes out the oldest client, for the worker in `slot`. The number of free descriptors is checked first, as for
    /// connections.
    pub(crate) fn receive(&self, slot: usize) -> TakenClient {
        let visit = Visit::enter(self.scoreboard, self.in_queue(), slot);
        let take = || match self.has_descriptors() {
            true => self.take(),
            false => Some(TakenClient::Short),
        };
        let taken = take().or_else(|| visit.verify(take));
        if matches!(taken, Some(TakenClient::Client(_) | TakenClient::Spoiled)) {
            visit.count_down();
        }
        taken.unwrap_or(TakenClient::Nobody)
    }

    fn has_descriptors(&self) -> bool {
        let copies: [_; DESCRIPTORS] = std::array::from_fn(|_| fcntl_dupfd_cloexec(&self.sender, 0));
        copies.iter().all(Result::is_ok)
    }

    fn take(&self) -> Option<TakenClient> {
        let mut bytes = vec![0u8; DATAGRAM_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let length = match retry_on_intr(|| recvmsg(&self.receiver, &mut pieces, &mut control, RECEIVE_DESCRIPTORS)) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN) => return None,
            Err(_) => return Some(TakenClient::Short),
        };
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.map(received).collect(),
            _ => Vec::new(),
        });
        let opened = open(&bytes[..length], descriptors.collect());
        Some(opened.map_or(TakenClient::Spoiled, TakenClient::Client))
    }
}

fn open(datagram: &[u8], descriptors: Vec<OwnedFd>) -> Option<MigratedClient> {
    let mut descriptors = descriptors.into_iter();
    let socket = descriptors.next()?;
    let state = match datagram.split_first()? {
        (&INLINE, state) => state.to_vec(),
        (&IN_FILE, []) => read_file(&descriptors.next()?.into())?,
        (&IN_SECRET, []) => memory_file::take_secret(descriptors.next()?).ok()?,
        _ => return None,
    };
    Some(MigratedClient {
        socket,
        state: state.into(),
    })
}

fn read_file(file: &File) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.metadata().ok()?.len()).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}
