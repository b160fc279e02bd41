//! A queue in the kernel that all workers share: a socket pair that carries datagrams with descriptors, and the count of the
//! datagrams in it.

use super::attendance::{Attendance, Visit};
use super::message::{DATAGRAM_BYTES, DESCRIPTORS};
use crate::cluster::scoreboard::Scoreboard;
use fairlead_system::datagrams;
use fairlead_system::sockets::{received, RECEIVE_DESCRIPTORS, SEND};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::net::{
    recv, recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// See the head of this file.
pub(super) struct KernelQueue {
    scoreboard: &'static Scoreboard,
    attendance: &'static Attendance,
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// Result of an attempt to take a datagram out.
pub(super) enum Arrived {
    Datagram(Vec<u8>, Vec<OwnedFd>),
    Nothing,
    /// Nothing was taken, because this process has too few descriptors left.
    Short,
}

impl KernelQueue {
    /// Makes a queue that is counted in `attendance`.
    pub(super) fn new(
        scoreboard: &'static Scoreboard,
        attendance: &'static Attendance,
    ) -> std::io::Result<KernelQueue> {
        let (sender, receiver) = datagrams::queue()?;
        Ok(KernelQueue::of(scoreboard, attendance, sender, receiver))
    }

    pub(super) fn of(
        scoreboard: &'static Scoreboard,
        attendance: &'static Attendance,
        sender: OwnedFd,
        receiver: OwnedFd,
    ) -> KernelQueue {
        KernelQueue {
            scoreboard,
            attendance,
            sender,
            receiver,
        }
    }

    /// Ends for senders and for receivers.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.sender.as_fd(), self.receiver.as_fd()]
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Number of datagrams in the queue: one atomic load. May be too high for a moment, but is never too low.
    pub(super) fn len(&self) -> u64 {
        self.attendance.count()
    }

    /// Counts a datagram from the worker in `slot`, which `put` puts in with [`KernelQueue::put`]. Returns false if `put` fails.
    pub(super) fn send(&self, slot: usize, put: impl FnOnce() -> io::Result<usize>) -> bool {
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        visit.count_up();
        let is_sent = put().is_ok();
        if !is_sent {
            visit.count_down();
        }
        is_sent
    }

    pub(super) fn put(&self, datagram: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(descriptors));
        retry_on_intr(|| sendmsg(&self.sender, datagram, &mut control, SEND))
    }

    /// Takes out the oldest datagram, for the worker in `slot`.
    ///
    /// The kernel drops descriptors for which the receiver has no room, and with them the connection. So the number of
    /// free descriptors is checked first. `most`: descriptors of a datagram.
    pub(super) fn receive(&self, slot: usize, most: usize) -> Arrived {
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        let take = || match self.has_descriptors(most) {
            true => self.take(),
            false => Some(Arrived::Short),
        };
        let arrived = take().or_else(|| visit.verify(take));
        if let Some(Arrived::Datagram(..)) = arrived {
            visit.count_down();
        }
        arrived.unwrap_or(Arrived::Nothing)
    }

    /// The first bytes of the oldest datagram, which stays. Another worker may take it at any time.
    pub(super) fn peek<const COUNT: usize>(&self) -> Option<[u8; COUNT]> {
        let mut beginning = [0; COUNT];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (length, _) = retry_on_intr(|| recv(&self.receiver, &mut beginning[..], flags)).ok()?;
        (length == COUNT).then_some(beginning)
    }

    fn has_descriptors(&self, count: usize) -> bool {
        let copy = |index| (index < count).then(|| fcntl_dupfd_cloexec(&self.sender, 0));
        let copies: [_; DESCRIPTORS] = std::array::from_fn(copy);
        copies.iter().flatten().all(Result::is_ok)
    }

    fn take(&self) -> Option<Arrived> {
        let mut bytes = vec![0u8; DATAGRAM_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RECEIVE_DESCRIPTORS;
        let taken = retry_on_intr(|| recvmsg(&self.receiver, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
        bytes.truncate(taken.ok()?.bytes);
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.map(received).collect(),
            _ => Vec::new(),
        });
        Some(Arrived::Datagram(bytes, descriptors.collect()))
    }
}

/// The bytes of a file that came with a datagram.
pub(super) fn read_file(file: &File) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.metadata().ok()?.len()).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}
