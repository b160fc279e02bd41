//! A stream of server-sent events to one viewer. It holds at most one message that is not sent yet, so a viewer that is slow
//! misses events, and costs no memory.

use fairlead_system::sockets::SEND;
use rustix::io::Errno;
use rustix::net::{recv, send, RecvFlags};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct EventStream {
    unsent: Arc<[u8]>,
    sent: usize,
    /// The deadline for the unsent bytes.
    until: Instant,
}

/// The viewer has left, or the connection has failed.
#[derive(Debug)]
pub(super) struct Left;

impl EventStream {
    /// Begins with these bytes.
    pub(super) fn new(unsent: Arc<[u8]>, until: Instant) -> EventStream {
        EventStream { unsent, sent: 0, until }
    }

    /// The deadline for the unsent bytes, if there are any.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.sent < self.unsent.len()).then_some(self.until)
    }

    /// Takes an event, unless an earlier one is not sent yet.
    pub(super) fn push(&mut self, event: &Arc<[u8]>, until: Instant) {
        if self.deadline().is_none() {
            *self = EventStream::new(Arc::clone(event), until);
        }
    }

    /// Writes once, and checks if the viewer has left: it has nothing to say. Returns true if bytes have moved.
    pub(super) fn advance(&mut self, socket: impl AsFd) -> Result<bool, Left> {
        let found = recv(&socket, &mut [0; 1], RecvFlags::DONTWAIT);
        if !matches!(found, Err(Errno::AGAIN | Errno::INTR)) {
            return Err(Left);
        }
        if self.deadline().is_none() {
            return Ok(false);
        }
        let flags = SEND;
        match send(socket, &self.unsent[self.sent..], flags) {
            Ok(length) => {
                self.sent += length;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(_) => Err(Left),
        }
    }
}
