//! Peers that have ended their half of the connection: after their close frame or a violation, or after a request with a
//! response that continues.

use super::client::{Client, Protocol};
use super::encoding;
use super::outbox::Outbox;
use crate::sync::MutexGuard;
use crate::transport::Link;
use fairlead_system::sockets::is_gone;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::mem::take;
use std::time::Duration;

/// The interval at which the kernel probes a peer that has ended its half: by default, a system remembers a closed
/// socket for this long.
const KEEPALIVE: Duration = Duration::from_secs(60);

impl Client {
    /// Handles the end of the input. The peer may wait for the rest of its bytes; until they are sent, nothing is read.
    pub(super) fn end_when_answered(&self, transport: &Link) {
        let mut outbox = self.outbox.lock();
        if outbox.ending.is_some() && outbox.frames.is_empty() {
            drop(outbox);
            return self.end();
        }
        if take(&mut outbox.reads) {
            self.watch(&mut outbox);
        }
        self.probe(outbox, transport);
    }

    /// Checks for the end of the peer without receiving anything, because received bytes are its next request.
    pub(super) fn look_for_end(&self, transport: &Link) {
        let received = transport.has_received();
        if matches!(received, Err(Errno::AGAIN | Errno::INTR)) {
            return;
        }
        if received.is_err() || is_gone(transport) {
            return self.end();
        }
        let mut outbox = self.outbox.lock();
        if !take(&mut outbox.reads) {
            return;
        }
        self.watch(&mut outbox);
        if received == Ok(false) {
            self.probe(outbox, transport);
        }
    }

    /// Finds out if a peer that has ended its half still receives: a closed socket replies to the next bytes with a
    /// reset. An event stream gets a comment for that. In another stream, the app decides which bytes are sent, so the
    /// kernel probes the peer: the peer's system forgets a socket some time after it was closed.
    fn probe(&self, outbox: MutexGuard<'_, Outbox>, transport: &Link) {
        match self.protocol() {
            Protocol::EventStream { chunked } if self.is_open() => {
                self.send_quietly(outbox, encoding::comment(chunked));
            }
            Protocol::Stream { .. } => {
                let _ = sockopt::set_socket_keepalive(transport, true);
                let _ = sockopt::set_tcp_keepidle(transport, KEEPALIVE);
                let _ = sockopt::set_tcp_keepintvl(transport, KEEPALIVE);
            }
            _ => {}
        }
    }
}
