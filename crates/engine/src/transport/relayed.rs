//! The two ends of a connection of which another worker has the TLS: that worker keeps the connection, and lends one end
//! of a socket pair to whoever runs the request. What is sent there, it relays to the peer. Beside the bytes there is a
//! word at the end: what comes after the response.
//!
//! ```text
//!   peer ══TLS══ worker that has the connection ──socket pair── worker that runs its request
//!                              ▲ after the response: [`AfterResponse`], through an eventfd ──┘
//! ```
//! A worker that dies says nothing, and so the peer is not told that the response is complete.

use super::socket::{Shutdown, Socket, Transport};
use crate::limits::descriptors::{Counted, Permit};
use crate::tls::Session;
use rustix::event::{eventfd, EventfdFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;

/// What comes after a response that is relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResponse {
    /// The peer's next request.
    NextRequest = 1,
    /// The end of the connection.
    Close = 2,
    /// There is no end: bytes go in both directions until one side closes, and were given away to somebody.
    GivenAway = 3,
}

/// What is said when the request begins to run, if that is of interest. Words that are not heard at once add up.
const BEGUN: u64 = 16;

/// What was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The request has begun to run.
    pub(crate) begun: bool,
    pub(crate) next: Option<AfterResponse>,
}

impl Heard {
    fn of(number: u64) -> Heard {
        let all = [
            AfterResponse::NextRequest,
            AfterResponse::Close,
            AfterResponse::GivenAway,
        ];
        Heard {
            begun: number & BEGUN != 0,
            next: all.into_iter().find(|next| *next as u64 == number % BEGUN),
        }
    }
}

/// The end of the worker that has the connection.
#[derive(Debug)]
pub(crate) struct RelayOwner {
    pub(crate) socket: Arc<Socket>,
    back_channel: Counted<OwnedFd>,
}

/// What is lent: the other end of the socket pair, and the eventfd.
#[derive(Debug)]
pub(crate) struct RelayRunner {
    pub(crate) socket: OwnedFd,
    pub(crate) back_channel: OwnedFd,
}

impl RelayOwner {
    /// Both ends. `permits`: for what this worker keeps.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn new(permits: [Permit; 2]) -> io::Result<(RelayOwner, RelayRunner)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let back_channel = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let runner = RelayRunner {
            socket: theirs,
            back_channel: back_channel.try_clone().map_err(|_| io::Errno::MFILE)?,
        };
        let [for_socket, for_back_channel] = permits;
        let owner = RelayOwner {
            socket: Arc::new(Socket::new(Counted::new(ours, for_socket))),
            back_channel: Counted::new(back_channel, for_back_channel),
        };
        Ok((owner, runner))
    }

    /// What was said since the last time.
    pub(crate) fn heard(&self) -> Heard {
        let mut number = [0; 8];
        match io::read(&self.back_channel, &mut number) {
            Ok(_) => Heard::of(u64::from_ne_bytes(number)),
            Err(_) => Heard::default(),
        }
    }

    /// For the poller.
    pub(crate) fn back_channel(&self) -> BorrowedFd<'_> {
        self.back_channel.as_fd()
    }
}

/// The end of the worker that runs the request: a transport for one response.
#[derive(Debug)]
pub(crate) struct RelayedSocket {
    socket: Socket,
    back_channel: OwnedFd,
    session: Option<Arc<Session>>,
    /// Whether the worker that has the connection waits for the request to begin.
    tells_begin: bool,
}

impl RelayedSocket {
    pub(crate) fn new(socket: Socket, back_channel: OwnedFd, session: Option<Arc<Session>>) -> RelayedSocket {
        RelayedSocket {
            socket,
            back_channel,
            session,
            tells_begin: false,
        }
    }

    /// The request takes turns with others of its connection, so that it matters when it begins.
    pub(crate) fn in_turn(self, tells_begin: bool) -> RelayedSocket {
        RelayedSocket { tells_begin, ..self }
    }
}

impl AsFd for RelayedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Transport for RelayedSocket {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.receive(space)
    }

    fn has_received(&self) -> io::Result<bool> {
        self.socket.has_received()
    }

    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        self.socket.send(bytes, more)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.send_pieces(pieces)
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        self.socket.send_file(file, offset, length)
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        self.socket.shut_down(how)
    }

    fn reset(&self) {
        self.socket.reset();
    }

    fn as_plain(&self) -> Option<&OwnedFd> {
        self.socket.as_plain()
    }

    fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    fn back_channel(&self) -> Option<&OwnedFd> {
        Some(&self.back_channel)
    }

    fn begin(&self) {
        if self.tells_begin {
            let _ = io::write(&self.back_channel, &BEGUN.to_ne_bytes());
        }
    }

    fn give_back(&self, next: AfterResponse) {
        // An eventfd that is written once has room for it.
        let _ = io::write(&self.back_channel, &(next as u64).to_ne_bytes());
    }
}
