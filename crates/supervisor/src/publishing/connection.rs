//! A process that publishes: reads its requests, and sends the replies.

use super::frame::{Frame, Outcome, Request};
use fairlead_system::sockets::{owner as owner_of, Owner, SEND};
use rustix::io::Errno;
use rustix::net::{recv, send, shutdown, RecvFlags, Shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time for the rest of a request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of one read.
const PART: usize = 64 * 1024;

/// Most reads before the other connections get their turn.
const READS: usize = 16;

/// A larger buffer is given back when it is empty.
const KEPT: usize = 4 * 1024;

/// The buffer for a read, which all connections share.
pub(super) type Part = [u8; PART];

/// A buffer for reads.
pub(super) fn part() -> Box<Part> {
    Box::new([0; PART])
}

/// A connection of a process.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    input: Vec<u8>,
    /// The time since when a part of a request is there.
    since: Option<Instant>,
    /// The time of the last request.
    used: Instant,
}

/// The end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The process has closed it.
    Closed,
    /// The process has broken a rule: a sentence about it.
    Refused(&'static str),
}

impl Connection {
    /// Takes a new socket. It must not block.
    ///
    /// # Errors
    /// If its process belongs to another user than `owner` and root.
    pub(super) fn new(socket: OwnedFd, owner: u32, now: Instant) -> Result<Connection, (Connection, Ending)> {
        let peer = owner_of(&socket).map(|peer| peer.user);
        let connection = Connection {
            socket,
            input: Vec::new(),
            since: None,
            used: now,
        };
        match peer {
            Ok(peer) if [owner, 0].contains(&peer) => Ok(connection),
            _ => Err((connection, Ending::Refused("it belongs to another user"))),
        }
    }

    /// Reads what has arrived, and calls `publish` for each complete request.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        part: &mut Part,
        publish: &mut impl FnMut(&Request<'_>) -> usize,
    ) -> Result<(), Ending> {
        for _ in 0..READS {
            let is_over = self.receive(part)?;
            self.answer(now, publish)?;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Reads a part. Returns true if nothing else is there.
    fn receive(&mut self, part: &mut Part) -> Result<bool, Ending> {
        match recv(&self.socket, &mut *part, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(Ending::Closed),
            Ok((count, _)) => {
                self.input.extend_from_slice(&part[..count]);
                Ok(count < PART)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(true),
            Err(_) => Err(Ending::Closed),
        }
    }

    fn answer(&mut self, now: Instant, publish: &mut impl FnMut(&Request<'_>) -> usize) -> Result<(), Ending> {
        let mut end = 0;
        loop {
            match Frame::read(&self.input[end..]) {
                Frame::Request(request, length) => {
                    let outcome = match request.is_known() {
                        true => Outcome::of(publish(&request)),
                        false => Outcome::UnknownFlags,
                    };
                    reply(&self.socket, outcome)?;
                    end += length;
                    (self.since, self.used) = (None, now);
                }
                Frame::Incomplete => break,
                Frame::Invalid(reason) => return Err(Ending::Refused(reason)),
            }
        }
        self.input.drain(..end);
        if self.input.is_empty() {
            self.since = None;
            if self.input.capacity() > KEPT {
                self.input = Vec::new();
            }
        } else {
            self.since.get_or_insert(now);
        }
        Ok(())
    }

    /// The time at which an incomplete request is late.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + PATIENCE)
    }

    /// Does not count a time in which nothing was read.
    pub(super) fn excuse(&mut self, pause: Duration) {
        self.since = self.since.map(|since| since + pause);
    }

    /// Bytes of an incomplete request.
    pub(super) fn held(&self) -> usize {
        self.input.len()
    }

    /// The time of its last request.
    pub(super) fn used(&self) -> Instant {
        self.used
    }

    /// The process, for log lines.
    pub(super) fn peer(&self) -> String {
        match owner_of(&self.socket) {
            Ok(Owner {
                user,
                process: Some(process),
            }) => format!("process {process} of user {user}"),
            Ok(Owner { user, .. }) => format!("a process of user {user}"),
            Err(_) => "a process".into(),
        }
    }
}

/// Five bytes fit, unless the process sends requests and reads no replies.
fn reply(socket: &OwnedFd, outcome: Outcome) -> Result<(), Ending> {
    match send(socket, &outcome.reply(), SEND) {
        Ok(5) => Ok(()),
        Ok(_) | Err(Errno::AGAIN) => Err(Ending::Refused("it does not read the replies")),
        Err(_) => Err(Ending::Closed),
    }
}

impl Drop for Connection {
    /// Ends it even if a process that the application has forked has a copy.
    fn drop(&mut self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
