//! Messages for systemd, and the queue of messages that it has not accepted yet.

use fairlead_system::sockets::SEND;
use rustix::io::Errno;
use rustix::net::{sendmsg_addr, SendAncillaryBuffer, SendAncillaryMessage, SocketAddrUnix};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// One datagram.
#[derive(Debug)]
pub(super) enum Message {
    /// A change of the server's state: never lost.
    State(String),
    /// The beginning of a reload. It replaces an earlier queued reload.
    Reload(String),
    /// A text that replaces an earlier queued one.
    Status(String),
    /// A heartbeat.
    Alive,
    /// A descriptor to keep.
    Store(String, OwnedFd),
}

/// The socket, and queued messages in their order.
#[derive(Debug)]
pub(super) struct Outbox {
    socket: OwnedFd,
    address: SocketAddrUnix,
    waiting: VecDeque<Message>,
}

impl Message {
    fn text(&self) -> &str {
        match self {
            Message::State(text) | Message::Reload(text) | Message::Status(text) | Message::Store(text, _) => text,
            Message::Alive => "WATCHDOG=1",
        }
    }
}

impl Outbox {
    pub(super) fn new(socket: OwnedFd, address: SocketAddrUnix) -> Outbox {
        Outbox {
            socket,
            address,
            waiting: VecDeque::new(),
        }
    }

    /// Sends a message, or queues it.
    pub(super) fn send(&mut self, message: Message) {
        self.supersede(&message);
        self.waiting.push_back(message);
        self.flush();
    }

    /// Sends the queued messages, as far as possible. Returns false if some are left. If systemd refuses a message for
    /// another reason than a full queue, it is dropped: systemd is gone, or will never accept it.
    pub(super) fn flush(&mut self) -> bool {
        while let Some(message) = self.waiting.front() {
            match self.try_send(message) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return false,
                Ok(()) | Err(_) => _ = self.waiting.pop_front(),
            }
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes the messages that this one makes obsolete, so that few are queued even if the queue of systemd is full
    /// for long.
    fn supersede(&mut self, by: &Message) {
        match by {
            Message::Status(_) => self.waiting.retain(|message| !matches!(message, Message::Status(_))),
            Message::Alive => self.waiting.retain(|message| !matches!(message, Message::Alive)),
            Message::Reload(_) => self.forget_last_reload(),
            Message::State(_) | Message::Store(..) => {}
        }
    }

    /// Also drops the states after it.
    fn forget_last_reload(&mut self) {
        let is_reload = |message: &Message| matches!(message, Message::Reload(_));
        if let Some(index) = self.waiting.iter().position(is_reload) {
            let later = self.waiting.split_off(index);
            let kept = later.into_iter().filter(|message| !is_reload(message));
            self.waiting
                .extend(kept.filter(|message| !matches!(message, Message::State(_))));
        }
    }

    fn try_send(&self, message: &Message) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = match message {
            Message::Store(_, descriptor) => vec![descriptor.as_fd()],
            _ => Vec::new(),
        };
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let text = [IoSlice::new(message.text().as_bytes())];
        let flags = SEND;
        sendmsg_addr(&self.socket, &self.address, &text, &mut control, flags).map(|_| ())
    }
}
