//! Connections are opened: connected, made secure where TLS is wanted, and then used at once.

use super::{Ending, Worker};
use crate::connection::Opening;
use crate::limits::describe;
use crate::pacing::Nanos;
use crate::socket::{Shaken, Trouble};
use crate::tally::Failure;
use rustix::io::{self, Errno};

/// Pause after a refused connection, or a refused handshake.
const REFUSED_PAUSE: Nanos = 100_000_000;
/// Pause when the queue of a unix socket is full, which the kernel reports at once instead of making us wait.
const BACKLOG_PAUSE: Nanos = 1_000_000;

impl Worker<'_> {
    pub(super) fn open(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        match connection.begin(&self.plan.addresses[connection.address], &self.poller, index) {
            Ok(()) if connection.is_open() => self.opened(index),
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => {
                self.pause(index, BACKLOG_PAUSE);
                Ok(())
            }
            Err(error) => {
                self.refused(index, error);
                Ok(())
            }
        }
    }

    /// The socket became ready while it was being opened.
    pub(super) fn go_on_opening(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let was_securing = connection.is_securing();
        match connection.go_on_opening(&self.poller, index, &mut self.buffer, self.now) {
            Ok(Opening::Pending) => Ok(()),
            Ok(Opening::Plain) => self.opened(index),
            Ok(Opening::Secure(shaken, since)) => {
                self.shaken(shaken, since);
                self.opened(index)?;
                self.take_first(index, shaken.first)
            }
            Err(Trouble::System(error)) if !was_securing => {
                self.refused(index, error);
                Ok(())
            }
            Err(trouble) => {
                self.insecure(index, trouble);
                Ok(())
            }
        }
    }

    /// Takes what the server has said before it was asked: so many bytes in the buffer.
    fn take_first(&mut self, index: usize, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.digest(index, &buffer[..bytes]);
        self.buffer = buffer;
        self.proceed(index)
    }

    fn shaken(&mut self, shaken: Shaken, since: Nanos) {
        self.now = self.plan.clock.now();
        let counted = self.now >= self.counted_from;
        self.tally
            .handshakes
            .succeeded(shaken, counted.then(|| self.now - since));
    }

    /// TLS failed, which costs the request.
    pub(super) fn insecure(&mut self, index: usize, trouble: Trouble) {
        self.fail(index, Failure::Tls);
        // What servers say against a handshake they will say again. One that only closes the connection may be busy.
        let is_lasting = matches!(trouble, Trouble::Tls(_));
        let why = trouble.words();
        if is_lasting && self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(why.clone()));
        }
        self.tally.handshakes.failed(why);
        self.pause(index, REFUSED_PAUSE);
    }

    /// The server speaks something else, which costs the request.
    pub(super) fn foreign(&mut self, index: usize, why: String) {
        self.fail(index, Failure::Malformed);
        if self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(why));
        }
        self.pause(index, REFUSED_PAUSE);
    }

    fn opened(&mut self, index: usize) -> io::Result<()> {
        self.connections[index].exchange.opened(&mut self.events);
        self.write(index)
    }

    /// Connecting failed: tries the next address; after the last, the request has failed.
    fn refused(&mut self, index: usize, error: Errno) {
        let connection = &mut self.connections[index];
        connection.address += 1;
        if connection.address < self.plan.addresses.len() {
            connection.close();
            return self.pause(index, 0);
        }
        connection.address = 0;
        if self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(describe(error)));
        }
        self.fail(index, Failure::Connect);
        self.pause(index, REFUSED_PAUSE);
    }

    pub(super) fn pause(&mut self, index: usize, pause: Nanos) {
        let retry_at = self.now + pause;
        self.connections[index].retry_at = retry_at;
        self.next_retry = self.next_retry.min(retry_at);
    }
}
