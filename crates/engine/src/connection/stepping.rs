//! The next step of a connection, after an event of its socket or when its deadline has come.

use super::reading::Disk;
use super::{Connection, Next, State};
use crate::clock::Millis;
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::stream::output::FileParts;

impl Connection {
    /// The socket is readable or writable, as was asked for.
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        match self.state {
            State::Handshake { .. } if self.is_introduced_before_handshake() => {
                self.receive_introduction(scratch, config)
            }
            State::Handshake { .. } => Next::Shake,
            State::Relayed(_) => self.relay(scratch, config, now),
            State::Flush(_) => self.flush(config, now, FileParts::Leave),
            State::Linger => self.discard(scratch),
            State::LookUp { .. } => self.look_for_peer(),
            State::Body(_) if self.waits_for_descriptor() => self.look_for_peer(),
            State::Body(_) if !self.stream.output.is_empty() => self.send_interim(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// The deadline has come. A client that has not sent a complete request is told so; one that takes no response or
    /// was idle is not.
    pub(crate) fn expire(&mut self, config: &Config, now: Millis) -> Next {
        match self.state {
            State::Flush(_) if !self.stream.output.is_at_file() => self.flush_late(config, now, FileParts::Leave),
            State::Flush(ref mut outgoing) => {
                outgoing.be_late();
                Next::Send
            }
            State::Relayed(_) => self.relay_late(config, now),
            State::Head { .. } => Next::Refuse(Refusal::HeadTooSlow),
            State::Body(_) if self.waits_for_descriptor() => Next::Refuse(Refusal::NoDescriptorForBody),
            State::Body(_) => Next::Refuse(Refusal::BodyTooSlow),
            State::LookUp { .. } => Next::LookedInVain,
            _ => Next::Close,
        }
    }
}
