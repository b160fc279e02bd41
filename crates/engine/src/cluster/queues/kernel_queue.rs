//! A queue in the kernel that all workers share: a socket pair that carries datagrams with descriptors, and the count of the
//! datagrams in it.

use super::attendance::{Attendance, Visit};
use super::message::{DATAGRAM_BYTES, DESCRIPTORS};
use super::outlet::{Outlet, Put};
use crate::cluster::scoreboard::Scoreboard;
use fairlead_system::datagrams;
use fairlead_system::sockets::{received, RECEIVE_DESCRIPTORS};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::net::{recv, recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// See the head of this file.
pub(super) struct KernelQueue {
    scoreboard: &'static Scoreboard,
    attendance: &'static Attendance,
    outlet: Outlet,
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
            outlet: Outlet::new(sender),
            receiver,
        }
    }

    /// Ends for senders and for receivers.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.outlet.sender(), self.receiver.as_fd()]
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Number of datagrams in the queue: two atomic loads. May be too high for a moment, but is never too low. While workers of
    /// another release send, which cannot count theirs, it is 1 at least if there are any.
    pub(super) fn len(&self) -> u64 {
        match self.attendance.count() {
            0 if self.scoreboard.has_predecessors() => self.is_readable().into(),
            count => count,
        }
    }

    fn is_readable(&self) -> bool {
        let mut fds = [PollFd::new(&self.receiver, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(1)
    }

    /// Counts a datagram from the worker in `slot`, which `put` puts in. `is_relayed`: it is a request without its connection.
    pub(super) fn send(&self, slot: usize, is_relayed: bool, put: &mut Put<'_>) -> io::Result<usize> {
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        visit.count_up(is_relayed);
        let sent = put();
        if sent.is_err() {
            visit.count_down(is_relayed);
        }
        sent
    }

    /// Takes out the oldest datagram, for the worker in `slot`.
    ///
    /// The kernel drops descriptors for which the receiver has no room, and with them the connection. So the number of
    /// free descriptors is checked first. `most`: descriptors of a datagram. `is_relayed`: true for a datagram that was
    /// counted as relayed.
    pub(super) fn receive(&self, slot: usize, most: usize, is_relayed: fn(&[u8]) -> bool) -> Arrived {
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        let take = || match self.has_descriptors(most) {
            true => self.take(),
            false => Some(Arrived::Short),
        };
        let arrived = take().or_else(|| visit.verify(take));
        if let Some(Arrived::Datagram(datagram, _)) = &arrived {
            visit.count_down(is_relayed(datagram));
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
        let copy = |index| (index < count).then(|| fcntl_dupfd_cloexec(&self.receiver, 0));
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
