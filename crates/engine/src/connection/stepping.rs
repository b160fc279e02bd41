//! The next step of a connection, after an event of its socket or when its deadline has come.

use super::reading::Disk;
use super::{Connection, ConnectionState, Next};
use crate::clock::Millis;
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::stream::output::FileParts;

impl Connection {
    /// The socket is readable or writable, as requested.
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        match self.state {
            ConnectionState::Handshake { .. } if self.is_introduced_before_handshake() => {
                self.receive_proxy_header(scratch, config)
            }
            ConnectionState::Handshake { .. } => Next::Shake,
            ConnectionState::Relayed(_) => self.relay(scratch, config, now),
            ConnectionState::Flush(_) => self.flush(config, now, FileParts::Leave),
            ConnectionState::Linger => self.discard(scratch),
            ConnectionState::LookUp { .. } => self.look_for_peer(),
            ConnectionState::Body(_) if self.waits_for_descriptor() => self.look_for_peer(),
            ConnectionState::Body(_) if !self.stream.output.is_empty() => self.send_interim(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// Handles the deadline. A client that has not sent a complete request gets a response; a client that does not take
    /// its response, or was idle, does not.
    pub(crate) fn expire(&mut self, config: &Config, now: Millis) -> Next {
        match self.state {
            ConnectionState::Flush(_) if !self.stream.output.is_at_file() => {
                self.flush_late(config, now, FileParts::Leave)
            }
            ConnectionState::Flush(ref mut outgoing) => {
                outgoing.be_late();
                Next::Send
            }
            ConnectionState::Relayed(_) => self.relay_late(config, now),
            ConnectionState::Head { .. } => Next::Refuse(Refusal::HeadTooSlow),
            ConnectionState::Body(_) if self.waits_for_descriptor() => Next::Refuse(Refusal::NoDescriptorForBody),
            ConnectionState::Body(_) => Next::Refuse(Refusal::BodyTooSlow),
            ConnectionState::LookUp { .. } => Next::LookedInVain,
            _ => Next::Close,
        }
    }
}
