//! The workers of another release, which continue in place of all workers of this one. They have a scoreboard of their own, which
//! this release cannot read, so a worker that ends knows only the queues.

use super::outlet::{Outlet, Sent};
use super::OutgoingMigration;
use fairlead_tls_record::SecretBytes;
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Most bytes in a queue, as the kernel counts them: some hundred connections, so that none of them waits long.
const UNDER_WAY: usize = 256 * 1024;

/// The same for a connection or a client with a large state. The kernel counts its descriptor only: a few of them.
const UNDER_WAY_LARGE: usize = 4 * 1024;

/// See the head of this file.
pub struct Heirs {
    connections: Outlet,
    clients: Outlet,
    /// No process reads the queues any more: the other release has failed.
    are_gone: AtomicBool,
}

impl Heirs {
    /// Number of descriptors.
    pub const DESCRIPTORS: usize = 2;

    /// `[connections, clients]`: the ends of these queues for senders.
    pub fn new([connections, clients]: [OwnedFd; Heirs::DESCRIPTORS]) -> Heirs {
        Heirs {
            connections: Outlet::new(connections),
            clients: Outlet::new(clients),
            are_gone: AtomicBool::new(false),
        }
    }

    pub(crate) fn are_there(&self) -> bool {
        !self.are_gone.load(Relaxed)
    }

    /// True if a connection can be put in now.
    pub(crate) fn take_connections(&self, is_large: bool) -> bool {
        self.connections.under_way() <= most(is_large)
    }

    /// Puts a connection in. The caller keeps it, too.
    pub(crate) fn send_connection(&self, outgoing: &OutgoingMigration<'_>) -> Sent {
        self.note(self.connections.send_connection(outgoing, |put| put()))
    }

    /// True if a client can be put in now.
    pub(crate) fn take_clients(&self, is_large: bool) -> bool {
        self.clients.under_way() <= most(is_large)
    }

    /// Puts a client in. `is_secret`: the state has keys.
    pub(crate) fn send_client(&self, socket: &OwnedFd, state: &SecretBytes, is_secret: bool) -> Sent {
        self.note(self.clients.send_client(socket, state, is_secret, |put| put()))
    }

    fn note(&self, sent: Sent) -> Sent {
        if sent == Sent::Gone {
            self.are_gone.store(true, Relaxed);
        }
        sent
    }
}

fn most(is_large: bool) -> usize {
    if is_large {
        UNDER_WAY_LARGE
    } else {
        UNDER_WAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::queues::{SharedQueues, TakenClient};
    use crate::cluster::scoreboard::Scoreboard;

    #[test]
    fn heirs_take_clients_until_nobody_reads_the_queues() {
        let scoreboard: &'static Scoreboard = Box::leak(Box::default());
        let queues = SharedQueues::new(scoreboard).expect("queues");
        let copy = |outlet: rustix::fd::BorrowedFd<'_>| outlet.try_clone_to_owned().expect("a descriptor");
        let heirs = Heirs::new(queues.outlets().map(copy));
        let (socket, state) = (
            fairlead_system::wake_up::open().expect("a descriptor"),
            vec![7; 10].into(),
        );
        assert!(heirs.take_clients(true));
        assert_eq!(heirs.send_client(&socket, &state, false), Sent::Done);
        assert_eq!(queues.clients().len(), 0, "nobody has counted it");
        scoreboard.set_predecessors(true);
        assert_eq!(queues.clients().len(), 1);
        assert!(matches!(queues.clients().receive(0), TakenClient::Client(client) if *client.state == *state));
        assert_eq!(queues.clients().len(), 0);
        // Some systems do not tell how full a queue is.
        let is_known = fairlead_system::datagrams::under_way(heirs.clients.sender()).is_some();
        while is_known && heirs.take_clients(false) {
            assert_eq!(heirs.send_client(&socket, &state, false), Sent::Done);
        }
        assert_eq!(heirs.take_clients(true), !is_known);
        drop(queues);
        assert_eq!(heirs.send_client(&socket, &state, false), Sent::Gone);
        assert!(!heirs.are_there());
    }
}
