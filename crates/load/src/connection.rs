//! One client of the run: its socket, the requests it has taken up, and how far they are written.
//!
//! ```text
//!              begin                writable                close
//!   Closed ----------> Connecting ------------> Open -----------------> Closed
//!      \____________________________________/
//!                connected at once
//! ```
//! The requests outlive the socket: those behind a failed one, or behind an answer that closed the connection, are
//! sent again on the next (RFC 9112 §9.3.2). Policy (when to open, what a failure costs) is in `run`.

use crate::dial::dial;
use crate::pacing::{Nanos, Started};
use crate::poller::{Interest, Poller};
use crate::request::Wire;
use crate::response::ResponseReader;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{self, RecvFlags, SendFlags, SocketAddrAny};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Connection {
    link: Link,
    /// Which of the target's addresses to connect to.
    pub(crate) address: usize,
    /// Not to be opened again before this time.
    pub(crate) retry_at: Nanos,
    /// Requests taken up and not answered, oldest first.
    pub(crate) waiting: VecDeque<Started>,
    /// How many of them, at the back, are not written completely…
    unwritten: usize,
    /// …and how many bytes of the first of these are.
    offset: usize,
    /// The peer takes no more; what it sent before may still be read.
    broken: bool,
    pub(crate) reader: ResponseReader,
    /// The next request in the schedule of an open loop.
    pub(crate) turn: u64,
    /// Which request of a mix is under way. With a mix there is one at a time.
    pub(crate) kind: usize,
}

#[derive(Debug)]
enum Link {
    Closed,
    Connecting(OwnedFd),
    Open { socket: OwnedFd, interest: Interest },
}

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Bytes(usize),
    End,
    Nothing,
}

impl Connection {
    pub(crate) fn new(method: &str, pipeline: usize, turn: u64) -> Connection {
        Connection {
            link: Link::Closed,
            address: 0,
            retry_at: 0,
            waiting: VecDeque::with_capacity(pipeline),
            unwritten: 0,
            offset: 0,
            broken: false,
            reader: ResponseReader::new(method),
            turn,
            kind: 0,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.link, Link::Closed)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.link, Link::Open { .. })
    }

    /// Whether the peer refused to take more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Adds a request of a kind to be written.
    pub(crate) fn push(&mut self, started: Started, kind: usize) {
        self.kind = kind;
        self.waiting.push_back(started);
        self.unwritten += 1;
    }

    /// Takes the oldest request off; `true` when it was written completely.
    pub(crate) fn pop(&mut self) -> Option<(Started, bool)> {
        let written = self.waiting.len() > self.unwritten;
        let started = self.waiting.pop_front()?;
        if !written {
            self.unwritten -= 1;
            self.offset = 0;
        }
        Some((started, written))
    }

    /// Starts to connect. `Ok` does not mean that it succeeded: see [`Connection::is_open`].
    pub(crate) fn begin(&mut self, address: &SocketAddrAny, poller: &Poller, token: usize) -> io::Result<()> {
        let (socket, connected) = dial(address, None)?;
        if connected {
            poller.add(&socket, token, Interest::Read)?;
            self.link = Link::Open {
                socket,
                interest: Interest::Read,
            };
        } else {
            poller.add(&socket, token, Interest::ReadAndWrite)?;
            self.link = Link::Connecting(socket);
        }
        Ok(())
    }

    /// The connecting socket became ready: it is open now, or why it is not.
    pub(crate) fn finish_connecting(&mut self) -> io::Result<()> {
        if let Link::Connecting(socket) = &self.link {
            net::sockopt::socket_error(socket)??;
        }
        self.link = match std::mem::replace(&mut self.link, Link::Closed) {
            Link::Connecting(socket) => Link::Open {
                socket,
                interest: Interest::ReadAndWrite,
            },
            other => other,
        };
        Ok(())
    }

    /// Closes the socket; requests still waiting will be written anew.
    pub(crate) fn close(&mut self) {
        self.link = Link::Closed;
        self.unwritten = self.waiting.len();
        self.offset = 0;
        self.broken = false;
        self.reader.reset();
    }

    /// Writes what the socket takes, and watches for room for the rest.
    pub(crate) fn write(&mut self, wires: &[Wire], poller: &Poller, token: usize) -> io::Result<()> {
        let Link::Open { socket, interest } = &mut self.link else {
            return Ok(());
        };
        let wire = &wires[self.kind];
        let mut wanted = Interest::Read;
        while self.unwritten > 0 && !self.broken {
            match net::send(&*socket, wire.slice(self.offset, self.unwritten), SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    let total = self.offset + sent;
                    self.unwritten -= total / wire.len;
                    self.offset = total % wire.len;
                }
                Err(Errno::AGAIN) => {
                    wanted = Interest::ReadAndWrite;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(_) => self.broken = true,
            }
        }
        if *interest != wanted {
            poller.change(socket.as_fd(), token, wanted)?;
            *interest = wanted;
        }
        Ok(())
    }

    /// Reads once into `buffer`.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Input> {
        let Some(socket) = self.socket() else {
            return Ok(Input::Nothing);
        };
        match net::recv(socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Input::End),
            Ok((bytes, _)) => Ok(Input::Bytes(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Input::Nothing),
            Err(error) => Err(error),
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.link {
            Link::Open { socket, .. } => Some(socket.as_fd()),
            Link::Connecting(_) | Link::Closed => None,
        }
    }
}
