//! Opens connections, writes their requests and reads their input.

use super::Worker;
use crate::clock::Nanos;
use crate::connection::Opening;
use crate::exchange::Verdict;
use crate::failure::Failure;
use crate::poller::Ready;
use crate::received::{Received, Trouble};
use crate::socket::Shaken;
use rustix::io::{self, Errno};

/// Pause when the queue of a unix socket is full, which the kernel reports at once instead of blocking.
const BACKLOG_PAUSE: Nanos = 1_000_000;

impl Worker<'_> {
    /// Starts the requests that connection `index` may send now and writes them; opens the connection if necessary.
    pub(super) fn proceed(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        if connection.is_closed() && connection.retry_at > self.now {
            self.next_retry = self.next_retry.min(connection.retry_at);
            return Ok(());
        }
        while connection.exchange.has_room() {
            let Some(started) = self.plan.pacing.take(&mut connection.turn, self.now) else {
                break;
            };
            let stream = connection.exchange.push(started, self.draw.next());
            self.tally.asked(index, stream, started);
            self.in_flight += 1;
        }
        if connection.is_open() {
            return self.write(index);
        }
        if connection.is_closed() && !connection.exchange.is_idle() {
            return self.open(index);
        }
        Ok(())
    }

    pub(super) fn handle(&mut self, ready: Ready) -> io::Result<()> {
        let index = ready.token;
        let connection = &mut self.connections[index];
        if connection.is_closed() {
            return Ok(());
        }
        if !connection.is_open() {
            return self.go_on_opening(index);
        }
        if ready.writable {
            self.write(index)?;
        }
        if ready.readable {
            self.read(index)?;
        }
        Ok(())
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let (address, source) = (&self.plan.addresses[connection.address], self.plan.options.source);
        match connection.begin(address, source, &self.poller, index) {
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

    /// The socket became ready during opening.
    fn go_on_opening(&mut self, index: usize) -> io::Result<()> {
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

    /// Takes the `bytes` in the buffer that the server sent before the first request.
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

    fn opened(&mut self, index: usize) -> io::Result<()> {
        self.connections[index].exchange.opened(&mut self.events);
        self.write(index)
    }

    /// Writes pending output to an open connection.
    fn write(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let verdict = connection.exchange.advance(&mut self.events);
        connection.write(&self.poller, index)?;
        if verdict != Verdict::Open {
            // Waiting requests are sent on another connection, in the next round.
            self.pause(index, 0);
        }
        self.settle(index, verdict);
        Ok(())
    }

    fn read(&mut self, index: usize) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let input = self.connections[index].read(&mut buffer);
        self.now = self.plan.clock.now();
        match input {
            Ok(Received::Bytes(bytes)) => {
                if self.now >= self.counted_from {
                    self.tally.bytes += bytes as u64;
                }
                self.digest(index, &buffer[..bytes]);
                if self.connections[index].has_ended() {
                    self.ended(index, Failure::Closed);
                }
            }
            Ok(Received::End) => self.ended(index, Failure::Closed),
            Ok(Received::Cut) => self.fail(index, Failure::Closed),
            Ok(Received::Nothing) => {}
            // In TLS 1.3 a server refuses a client's certificate after the handshake.
            Err(trouble @ Trouble::Tls(_)) => self.insecure(index, trouble),
            Err(Trouble::System(_) | Trouble::Closed) => self.ended(index, Failure::Read),
        }
        self.buffer = buffer;
        self.proceed(index)
    }
}
