//! The queue of clients that migrate: for each its socket and its state. Short states travel in the datagram, all others in a
//! file in memory. A state with keys of TLS always does, and its receiver wipes the file.

use super::kernel_queue::{read_file, Arrived, KernelQueue};
use super::outlet::{Sent, INLINE, IN_FILE, IN_SECRET};
use crate::cluster::scoreboard::Scoreboard;
use fairlead_system::memory_file;
use fairlead_tls_record::SecretBytes;
use rustix::fd::{BorrowedFd, OwnedFd};

/// Most descriptors of a message: the socket, and the file with the state.
const DESCRIPTORS: usize = 2;

/// See the head of this file.
pub(crate) struct ClientQueue(KernelQueue);

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
        Ok(ClientQueue(KernelQueue::new(
            scoreboard,
            &scoreboard.migrating_clients,
        )?))
    }

    pub(super) fn of(scoreboard: &'static Scoreboard, sender: OwnedFd, receiver: OwnedFd) -> ClientQueue {
        let attendance = &scoreboard.migrating_clients;
        ClientQueue(KernelQueue::of(scoreboard, attendance, sender, receiver))
    }

    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        self.0.ends()
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.0.receiver()
    }

    /// Number of clients in the queue. May be too high for a moment, but is never too low.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if the queue may have a client: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.len() > 0
    }

    /// Puts a client in, from the worker in `slot`. The caller keeps the socket, too. `is_secret`: the state has keys.
    pub(crate) fn send(&self, socket: &OwnedFd, state: &SecretBytes, is_secret: bool, slot: usize) -> Sent {
        let outlet = self.0.outlet();
        outlet.send_client(socket, state, is_secret, |put| self.0.send(slot, false, put))
    }

    /// Takes out the oldest client, for the worker in `slot`.
    pub(crate) fn receive(&self, slot: usize) -> TakenClient {
        match self.0.receive(slot, DESCRIPTORS, |_| false) {
            Arrived::Datagram(bytes, descriptors) => {
                open(&bytes, descriptors).map_or(TakenClient::Spoiled, TakenClient::Client)
            }
            Arrived::Nothing => TakenClient::Nobody,
            Arrived::Short => TakenClient::Short,
        }
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
