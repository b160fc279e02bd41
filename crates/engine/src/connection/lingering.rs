//! End of a connection: a lingering close reads the bytes that the client still sends, so that no reset overtakes the
//! response; the connection of another worker is returned.

use super::{Connection, ConnectionState, Next, Then};
use crate::clock::Millis;
use crate::transport::poller::Interest;
use crate::transport::{AfterResponse, Shutdown, READ_TURN};
use rustix::io::Errno;

impl Connection {
    /// Sends nothing more, and discards further input.
    pub(crate) fn linger(&mut self, now: Millis) -> Next {
        if self.stream.transport().is_for_one_response() {
            return self.give_back(Then::Close);
        }
        if self.stream.transport().shut_down(Shutdown::Write).is_err() {
            return Next::Close;
        }
        self.state = ConnectionState::Linger;
        self.idle_since = now;
        Next::Wait(Interest::Read)
    }

    pub(super) fn discard(&mut self, scratch: &mut [u8]) -> Next {
        for _ in 0..READ_TURN / scratch.len() {
            match self.stream.transport().receive(scratch) {
                Ok(0) => return Next::Close,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Next::Close,
            }
        }
        Next::Wait(Interest::Read)
    }

    /// Ends the relay: the worker that has the connection has received the response to its request.
    pub(super) fn give_back(&self, then: Then) -> Next {
        self.stream.transport().give_back(match then {
            Then::NextRequest | Then::Migrate => AfterResponse::NextRequest,
            Then::Close | Then::Linger | Then::TakeOver => AfterResponse::Close,
        });
        Next::Close
    }
}
