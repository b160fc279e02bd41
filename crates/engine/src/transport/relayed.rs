//! Relay between two workers: the worker with the TLS connection keeps it, and passes one end of a socket pair to the
//! worker that runs the request. It relays all bytes from the pair to the peer. Beside the bytes there is a message at
//! the end: the step after the response.
//!
//! ```text
//!   peer ══TLS══ worker that has the connection ──socket pair── worker that runs its request
//!                              ▲ after the response: [`AfterResponse`], through an eventfd ──┘
//! ```
//! A worker that dies sends no message, so the peer is not told that the response is complete.

use super::byte_stream::ByteStream;
use super::link::Transport;
use super::owner::ConnectionOwner;
use super::socket::Socket;
use crate::limits::descriptors::{Counted, Permit};
use crate::tls::Session;
use fairlead_system::{sockets, wake_up};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{Shutdown, SocketType};
use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;

/// The step after a relayed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResponse {
    /// Next request of the peer.
    NextRequest = 1,
    /// End of the connection.
    Close = 2,
    /// No end: bytes are forwarded in both directions until one side closes; the app has taken the socket.
    GivenAway = 3,
}

/// Message that the request begins to run, if the worker with the connection needs it. Unread messages add up.
const BEGUN: u64 = 16;

/// Messages received.
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

/// End of the worker that has the connection.
#[derive(Debug)]
pub(crate) struct RelayOwner {
    pub(crate) socket: Arc<Socket>,
    back_channel: Counted<OwnedFd>,
}

/// End for the other worker: the second socket of the pair, and the eventfd.
#[derive(Debug)]
pub(crate) struct RelayRunner {
    pub(crate) socket: OwnedFd,
    pub(crate) back_channel: OwnedFd,
}

impl RelayOwner {
    /// Makes both ends. `permits`: for the descriptors that this worker keeps.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn new(permits: [Permit; 2]) -> io::Result<(RelayOwner, RelayRunner)> {
        let (ours, theirs) = sockets::pair(SocketType::STREAM, false)?;
        let back_channel = wake_up::open()?;
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

    /// Messages since the last call.
    pub(crate) fn heard(&self) -> Heard {
        Heard::of(wake_up::take(&self.back_channel))
    }

    /// Descriptor for the poller.
    pub(crate) fn back_channel(&self) -> BorrowedFd<'_> {
        self.back_channel.as_fd()
    }
}

/// End of the worker that runs the request: a transport for one response.
#[derive(Debug)]
pub(crate) struct RelayedSocket {
    socket: Socket,
    back_channel: OwnedFd,
    session: Option<Arc<Session>>,
    /// True if the worker that has the connection waits for the request to begin.
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

    /// Marks a request that takes turns with others of its connection, so that its beginning must be reported.
    pub(crate) fn in_turn(self, tells_begin: bool) -> RelayedSocket {
        RelayedSocket { tells_begin, ..self }
    }
}

impl AsFd for RelayedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ByteStream for RelayedSocket {
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
}

impl Transport for RelayedSocket {
    fn as_plain(&self) -> Option<&OwnedFd> {
        self.socket.as_plain()
    }

    fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    fn owner(&self) -> Option<&dyn ConnectionOwner> {
        Some(self)
    }
}

impl ConnectionOwner for RelayedSocket {
    fn back_channel(&self) -> Option<&OwnedFd> {
        Some(&self.back_channel)
    }

    fn begin(&self) {
        if self.tells_begin {
            let _ = wake_up::add(&self.back_channel, BEGUN);
        }
    }

    fn give_back(&self, next: AfterResponse) {
        // There is room for one number.
        let _ = wake_up::add(&self.back_channel, next as u64);
    }
}
