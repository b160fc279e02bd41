//! Queue of the waiting room: a socket pair that carries connections from worker to worker, and the count of the
//! connections in it. Any worker puts connections in and takes them out.

use super::attendance::{Attendance, Visit};
use super::message::{
    open, waits_since, IncomingMigration, Message, OutgoingMigration, BEGINNING, DATAGRAM_BYTES, DESCRIPTORS,
};
use crate::clock::Nanos;
use crate::cluster::scoreboard::Scoreboard;
use fairlead_system::datagrams;
use fairlead_system::sockets::{received, RECEIVE_DESCRIPTORS, SEND};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{fcntl_dupfd_cloexec, retry_on_intr, Errno};
use rustix::net::{
    recv, recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;

/// See the head of this file.
pub(crate) struct Queue {
    scoreboard: &'static Scoreboard,
    attendance: &'static Attendance,
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// Result of an attempt to put a connection in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Done,
    /// The kernel's buffer is full, or too many descriptors are in such buffers.
    Full,
    /// It needs a file in memory, and none could be made.
    TooLong,
}

/// Result of an attempt to take a connection out.
#[derive(Debug)]
pub(crate) enum Received {
    Migration(IncomingMigration),
    Nobody,
    /// Nothing was taken, because this process has too few descriptors left.
    Short,
    /// Incomplete: the process ran out of descriptors during the receive. Has the socket, if that has arrived.
    Spoiled(Option<OwnedFd>),
}

impl Queue {
    /// Makes a queue that is counted in `attendance`.
    pub(super) fn new(scoreboard: &'static Scoreboard, attendance: &'static Attendance) -> std::io::Result<Queue> {
        let (sender, receiver) = datagrams::queue()?;
        Ok(Queue::of(scoreboard, attendance, sender, receiver))
    }

    pub(super) fn of(
        scoreboard: &'static Scoreboard,
        attendance: &'static Attendance,
        sender: OwnedFd,
        receiver: OwnedFd,
    ) -> Queue {
        Queue {
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

    /// True if the queue may have a connection: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.len() > 0
    }

    /// Number of connections in the queue. May be too high for a moment, but is never too low.
    pub(crate) fn len(&self) -> u64 {
        self.attendance.count()
    }

    /// Puts a connection in, from the worker in `slot`. The caller keeps it, too.
    pub(crate) fn send(&self, outgoing: &OutgoingMigration<'_>, slot: usize) -> Sent {
        let Ok(mut message) = Message::new(outgoing) else {
            return Sent::TooLong;
        };
        if !message.is_short() && message.lengthen().is_err() {
            return Sent::TooLong;
        }
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        visit.count_up();
        let mut sent = self.put(&message);
        // The kernel gave a buffer so small that not even a short datagram fits.
        if sent == Err(Errno::MSGSIZE) && message.lengthen().is_ok() {
            sent = self.put(&message);
        }
        if sent.is_ok() {
            return Sent::Done;
        }
        visit.count_down();
        Sent::Full
    }

    fn put(&self, message: &Message<'_>) -> rustix::io::Result<usize> {
        let descriptors = message.descriptors();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let flags = SEND;
        retry_on_intr(|| sendmsg(&self.sender, &message.datagram(), &mut control, flags))
    }

    /// Takes out the oldest connection, for the worker in `slot`.
    ///
    /// The kernel drops descriptors for which the receiver has no room, and with them the connection. So the number of
    /// free descriptors is checked first.
    pub(crate) fn receive(&self, slot: usize) -> Received {
        let visit = Visit::enter(self.scoreboard, self.attendance, slot);
        let take = || match self.has_descriptors() {
            true => self.take(),
            false => Some(Received::Short),
        };
        let received = take().or_else(|| visit.verify(take));
        if matches!(received, Some(Received::Migration(_) | Received::Spoiled(_))) {
            visit.count_down();
        }
        received.unwrap_or(Received::Nobody)
    }

    /// Time since when the first connection has waited, without taking it out; `None` if there is none. Another worker
    /// may take it at any time.
    pub(super) fn first_waits_since(&self) -> Option<Nanos> {
        let mut beginning = [0; BEGINNING];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let length = retry_on_intr(|| recv(&self.receiver, &mut beginning[..], flags))
            .ok()?
            .0;
        (length == BEGINNING).then(|| waits_since(&beginning))
    }

    fn has_descriptors(&self) -> bool {
        let copies: [_; DESCRIPTORS] = std::array::from_fn(|_| fcntl_dupfd_cloexec(&self.sender, 0));
        copies.iter().all(Result::is_ok)
    }

    fn take(&self) -> Option<Received> {
        let mut bytes = vec![0u8; DATAGRAM_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RECEIVE_DESCRIPTORS;
        let taken = retry_on_intr(|| recvmsg(&self.receiver, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
        let length = taken.ok()?.bytes;
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.map(received).collect(),
            _ => Vec::new(),
        });
        let opened = open(bytes.get(..length).unwrap_or_default(), descriptors.collect());
        Some(opened.map_or_else(Received::Spoiled, Received::Migration))
    }
}
