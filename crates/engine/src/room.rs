//! The waiting room: one queue for all workers, kept by the kernel.
//!
//! A request that has waited in a worker whose threads are all busy is sent into a socket pair that every worker
//! inherited: its descriptor, when it arrived, and the bytes already read. The worker that has a thread to spare receives
//! it. The kernel keeps the order and the messages, so nothing is lost when a worker dies.

use crate::board::Board;
use crate::body::Body;
use crate::connection::Connection;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{
    recvmsg, sendmsg, socketpair, sockopt, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Longest message: a request with more bytes than this stays where it is.
const MESSAGE_BYTES: usize = 32 * 1024;

/// Asked of the kernel for messages that wait; it may give less.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// Fixed part of a message: arrival, requests served, length of the input, length of the body, origin and kind of body, and
/// the peer.
const HEADER: usize = 64;

/// Fruitless looks into a room that the board says is not empty, after which the board is set right: a worker was
/// killed between taking a message and counting it.
const MISSES: u32 = 1024;

/// Inherited by all workers, together with the [`Board`].
pub struct Room {
    board: &'static Board,
    sender: OwnedFd,
    receiver: OwnedFd,
    misses: AtomicU32,
}

/// What came out of the room, before it is a connection again.
pub(crate) struct Guest {
    pub(crate) socket: OwnedFd,
    pub(crate) origin: usize,
    /// `None` for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) arrived: u64,
    pub(crate) served: u64,
    pub(crate) input: Vec<u8>,
    pub(crate) body: Body,
}

impl Room {
    /// Opens the room; to be called before the first fork.
    ///
    /// # Errors
    /// If the socket pair cannot be made.
    pub fn new(board: &'static Board) -> std::io::Result<Room> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (sender, receiver) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let forced = sockopt::set_socket_send_buffer_size_force(&sender, QUEUE_BYTES);
        if forced.is_err() {
            let _ = sockopt::set_socket_send_buffer_size(&sender, QUEUE_BYTES);
        }
        Ok(Room {
            board,
            sender,
            receiver,
            misses: AtomicU32::new(0),
        })
    }

    /// The board that counts who waits.
    pub fn board(&self) -> &'static Board {
        self.board
    }

    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Whether somebody waits, as far as the board knows: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.board.waiting.load(SeqCst) > 0
    }

    /// Puts a connection into the room. False: there is no room, or it has too much to carry; it stays with the caller.
    pub(crate) fn send(&self, connection: &Connection, origin: usize) -> bool {
        let (kind, body, file): (u64, &[u8], Option<&File>) = match &connection.body {
            Body::Empty => (0, &[], None),
            Body::Memory(bytes) => (1, bytes, None),
            Body::File(file, _) => (2, &[], Some(file)),
        };
        if HEADER + connection.input.len() + body.len() > MESSAGE_BYTES {
            return false;
        }
        let [peer, address_high, address_low] = peer_numbers(connection.peer());
        let numbers = [
            connection.arrived(),
            connection.served(),
            connection.input.len() as u64,
            connection.body.len(),
            (origin as u64) << 8 | kind,
            peer,
            address_high,
            address_low,
        ];
        let header: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut fds = vec![connection.socket().as_fd()];
        fds.extend(file.map(AsFd::as_fd));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let parts = [
            IoSlice::new(&header),
            IoSlice::new(&connection.input),
            IoSlice::new(body),
        ];
        let sent = sendmsg(
            &self.sender,
            &parts,
            &mut control,
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        )
        .is_ok();
        if sent {
            self.board.waiting.fetch_add(1, SeqCst);
            self.board.moved.fetch_add(1, SeqCst);
        } else {
            self.board.refused.fetch_add(1, SeqCst);
        }
        sent
    }

    /// Takes who has waited longest.
    pub(crate) fn receive(&self) -> Option<Guest> {
        let mut bytes = vec![0u8; MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = recvmsg(&self.receiver, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
        let Ok(message) = received else {
            self.missed(received.err());
            return None;
        };
        self.board.waiting.fetch_sub(1, SeqCst);
        self.misses.store(0, SeqCst);
        let mut fds = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        });
        let (socket, file) = (fds.next()?, fds.next());
        parse(bytes.get(..message.bytes)?, socket, file)
    }

    fn missed(&self, error: Option<io::Errno>) {
        let waiting = self.board.waiting.load(SeqCst);
        if error == Some(io::Errno::AGAIN) && waiting > 0 && self.misses.fetch_add(1, SeqCst) >= MISSES {
            let _ = self.board.waiting.compare_exchange(waiting, 0, SeqCst, SeqCst);
            self.misses.store(0, SeqCst);
        }
    }
}

fn parse(message: &[u8], socket: OwnedFd, file: Option<OwnedFd>) -> Option<Guest> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    let mut numbers = header
        .chunks_exact(8)
        .map(|bytes| bytes.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b)));
    let (arrived, served) = (numbers.next()?, numbers.next()?);
    let (input_length, body_length, kind) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let peer = peer([numbers.next()?, numbers.next()?, numbers.next()?]);
    let (input, body) = rest.split_at_checked(usize::try_from(input_length).ok()?)?;
    let body = match (kind & 0xff, file) {
        (0, _) => Body::Empty,
        (1, _) => Body::Memory(body.to_vec()),
        (_, Some(file)) => Body::File(File::from(file), body_length),
        (_, None) => return None,
    };
    Some(Guest {
        socket,
        origin: (kind >> 8) as usize,
        peer,
        arrived,
        served,
        input: input.to_vec(),
        body,
    })
}

/// Scope, port and family (0: a Unix socket), then the address, an IPv4 one as IPv6 has it (RFC 4291 §2.5.5.2).
fn peer_numbers(peer: Option<SocketAddr>) -> [u64; 3] {
    let Some(peer) = peer else { return [0; 3] };
    let (family, scope, address) = match peer {
        SocketAddr::V4(peer) => (4, 0, peer.ip().to_ipv6_mapped()),
        SocketAddr::V6(peer) => (6, u64::from(peer.scope_id()), *peer.ip()),
    };
    let bits = address.to_bits();
    [
        scope << 32 | u64::from(peer.port()) << 8 | family,
        (bits >> 64) as u64,
        bits as u64,
    ]
}

fn peer([numbers, high, low]: [u64; 3]) -> Option<SocketAddr> {
    let address = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    let (scope, port) = ((numbers >> 32) as u32, (numbers >> 8) as u16);
    match (numbers & 0xff, address.to_ipv4_mapped()) {
        (4, Some(address)) => Some((IpAddr::V4(address), port).into()),
        (6, _) => Some(SocketAddrV6::new(address, port, 0, scope).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_the_same_on_the_other_side() {
        for text in [
            "127.0.0.2:80",
            "[2001:db8::7]:65535",
            "[::ffff:10.0.0.1]:1",
            "[fe80::1%7]:9292",
        ] {
            let one: SocketAddr = text.parse().expect("an address");
            assert_eq!(peer(peer_numbers(Some(one))), Some(one));
        }
        assert_eq!(peer(peer_numbers(None)), None);
    }
}
