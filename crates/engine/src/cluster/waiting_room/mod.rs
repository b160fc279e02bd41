//! The waiting room: one queue for all workers, kept by the kernel.
//!
//! A request that has waited in a worker whose threads are all busy is sent into a socket pair that every worker
//! inherited (`message.rs`). A worker with a free thread receives it. The kernel keeps the order and the messages, so
//! nothing is lost when a worker dies. The number of requests is counted beside it (`attendance.rs`). The engine
//! decides which requests go in and which worker takes them out (`engine/transfers.rs`).

mod attendance;
mod message;

pub(crate) use attendance::Attendance;
pub(crate) use message::{Departure, Transfer};

use crate::cluster::datagrams;
use crate::cluster::scoreboard::Scoreboard;
use crate::transport::poller::{token, Poller};
use attendance::Visit;
use message::{open, Message, DATAGRAM_BYTES, DESCRIPTORS};
use rustix::event::{eventfd, EventfdFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{fcntl_dupfd_cloexec, read, retry_on_intr, write, Errno};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;

/// Inherited by all workers, together with the [`Scoreboard`].
pub struct WaitingRoom {
    scoreboard: &'static Scoreboard,
    sender: OwnedFd,
    receiver: OwnedFd,
    /// An eventfd. The kernel wakes one worker for each message; a worker that leaves it to others wakes another one
    /// with this.
    signal: OwnedFd,
}

/// The result of an attempt to put a request into the room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Done,
    /// The kernel's buffer is full.
    Full,
    /// The input is too long for a datagram, and no file in memory could be made.
    TooLong,
}

/// The result of an attempt to take a request out.
#[derive(Debug)]
pub(crate) enum Received {
    Transfer(Transfer),
    Nobody,
    /// No request was taken, because this process has too few descriptors left.
    Short,
    /// An incomplete request: descriptors ran out while it was received. With its socket, if that has arrived.
    Spoiled(Option<OwnedFd>),
}

impl WaitingRoom {
    /// Opens the room; to be called before the first fork.
    ///
    /// # Errors
    /// If the socket pair cannot be made.
    pub fn new(scoreboard: &'static Scoreboard) -> std::io::Result<WaitingRoom> {
        let (sender, receiver) = datagrams::queue()?;
        Ok(WaitingRoom {
            scoreboard,
            sender,
            receiver,
            signal: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// The room of another process, from the descriptors that [`WaitingRoom::descriptors`] gave there.
    pub fn adopt(scoreboard: &'static Scoreboard, descriptors: [OwnedFd; 3]) -> WaitingRoom {
        let [sender, receiver, signal] = descriptors;
        WaitingRoom {
            scoreboard,
            sender,
            receiver,
            signal,
        }
    }

    /// What a process needs to [`WaitingRoom::adopt`] this room.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [&self.sender, &self.receiver, &self.signal].map(AsFd::as_fd)
    }

    /// The scoreboard that counts the requests.
    pub fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// Registers the room with `poller`.
    pub(crate) fn watch(&self, poller: &Poller) -> rustix::io::Result<()> {
        let add = |fd: &OwnedFd, token| match poller.add_shared(fd, token) {
            Err(Errno::EXIST) => Ok(()),
            result => result,
        };
        add(&self.receiver, token::ROOM)?;
        add(&self.signal, token::SIGNAL)
    }

    pub(crate) fn unwatch(&self, poller: &Poller) {
        poller.remove(&self.receiver);
        poller.remove(&self.signal);
    }

    /// Wakes another worker that watches, if a request may be waiting. If none watches now, wakes the next one that
    /// does.
    pub fn signal(&self) {
        if self.is_occupied() {
            let _ = write(&self.signal, &1u64.to_ne_bytes());
        }
    }

    /// Resets the eventfd.
    pub(crate) fn clear_signal(&self) {
        let _ = read(&self.signal, &mut [0; 8]);
    }

    /// Whether a request may be waiting: one atomic load.
    pub(crate) fn is_occupied(&self) -> bool {
        self.scoreboard.attendance.count() > 0
    }

    /// Puts a request into the room, from the worker in `slot`. The caller still has it, too.
    pub(crate) fn send(&self, request: &Departure<'_>, slot: usize) -> Sent {
        let mut message = Message::new(request);
        if !message.is_short() && message.lengthen().is_err() {
            return Sent::TooLong;
        }
        let visit = Visit::enter(self.scoreboard, slot);
        visit.count_up();
        let mut sent = self.put(&message);
        // The kernel gave a buffer so small that not even a short datagram fits.
        if sent == Err(Errno::MSGSIZE) && message.lengthen().is_ok() {
            sent = self.put(&message);
        }
        if sent.is_ok() {
            self.scoreboard.moved.fetch_add(1, SeqCst);
            return Sent::Done;
        }
        visit.count_down();
        self.scoreboard.refused.fetch_add(1, SeqCst);
        Sent::Full
    }

    fn put(&self, message: &Message<'_>) -> rustix::io::Result<usize> {
        let descriptors = message.descriptors();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| sendmsg(&self.sender, &message.datagram(), &mut control, flags))
    }

    /// Takes out the request that has waited longest, for the worker in `slot`.
    ///
    /// The kernel drops descriptors for which the receiver has no place, and with them the request. So this is checked
    /// before.
    pub(crate) fn receive(&self, slot: usize) -> Received {
        let visit = Visit::enter(self.scoreboard, slot);
        let take = || match self.has_descriptors() {
            true => self.take(),
            false => Some(Received::Short),
        };
        let received = take().or_else(|| visit.verify(take));
        if matches!(received, Some(Received::Transfer(_) | Received::Spoiled(_))) {
            visit.count_down();
        }
        received.unwrap_or(Received::Nobody)
    }

    fn has_descriptors(&self) -> bool {
        let copies: [_; DESCRIPTORS] = std::array::from_fn(|_| fcntl_dupfd_cloexec(&self.sender, 0));
        copies.iter().all(Result::is_ok)
    }

    fn take(&self) -> Option<Received> {
        let mut bytes = vec![0u8; DATAGRAM_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received =
            retry_on_intr(|| recvmsg(&self.receiver, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
        let length = received.ok()?.bytes;
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        });
        let opened = open(bytes.get(..length).unwrap_or_default(), descriptors.collect());
        Some(opened.map_or_else(Received::Spoiled, Received::Transfer))
    }
}
