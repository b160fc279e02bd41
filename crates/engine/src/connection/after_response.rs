//! Next request, or the end, after the kernel has the response.

use super::{Connection, ConnectionState, Next, Then};
use crate::clock::Millis;
use crate::config::Config;
use crate::transport::poller::Interest;

impl Connection {
    /// Takes the step that follows a response, when the kernel has all of it.
    pub(super) fn go_on_after_response(&mut self, then: Then, config: &Config, now: Millis) -> Next {
        self.slow_request = None;
        if then == Then::TakeOver {
            self.state = ConnectionState::Ready;
            return Next::TakeOver;
        }
        if self.stream.transport().is_for_one_response() {
            return self.give_back(then);
        }
        match then {
            Then::TakeOver => return Next::TakeOver,
            Then::NextRequest | Then::Migrate => {}
            // Unread bytes would turn the close into a reset, which may overtake the response.
            Then::Close if !self.has_unread() => return Next::Close,
            Then::Close | Then::Linger => return self.linger(now),
        }
        self.state = ConnectionState::Idle;
        self.idle_since = now;
        if self.stream.input.is_empty() {
            Next::Wait(Interest::Read)
        } else if then == Then::Migrate {
            self.state = ConnectionState::Head { since: now };
            Next::Migrate
        } else {
            self.parse_head(config, now)
        }
    }

    /// True if the client has sent bytes that were not processed.
    fn has_unread(&self) -> bool {
        !self.stream.input.is_empty() || self.stream.transport().has_received() == Ok(true)
    }
}
