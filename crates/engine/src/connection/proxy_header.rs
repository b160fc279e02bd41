//! Header of the PROXY protocol, in which a proxy names its client before the first request, and before a TLS
//! handshake.

use super::{Connection, ConnectionState, Next};
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::transport::poller::Interest;
use fairlead_wire::ProxyVersions;
use rustix::io::Errno;

impl Connection {
    /// Expects a PROXY header first. It replaces the values that came from the listener ([`Connection::new`]).
    pub(crate) fn await_proxy_header(&mut self, versions: Option<ProxyVersions>) {
        self.awaited = versions;
    }

    /// Returns the PROXY header that was read, and the versions of a header that another worker has to read first.
    pub(crate) fn proxy_header(&self) -> (&[u8], Option<ProxyVersions>) {
        match self.stream.peers.proxy_header() {
            [] => (&[], self.awaited),
            header => (header, Some(ProxyVersions::Any)),
        }
    }

    /// Reads the PROXY header at the start of the input, if it is still expected. False if it is incomplete.
    pub(super) fn read_proxy_header(&mut self, config: &Config) -> Result<bool, Refusal> {
        let Some(versions) = self.awaited else { return Ok(true) };
        let input = &mut self.stream.input;
        let Some(length) = self.stream.peers.introduce(input, versions, config)? else {
            return Ok(false);
        };
        input.drain(..length);
        self.awaited = None;
        if let ConnectionState::Handshake { seat, .. } = &self.state {
            seat.identify(self.stream.peer().map(|peer| peer.ip()));
        }
        Ok(true)
    }

    /// True if the next bytes are a PROXY header before a handshake.
    pub(super) fn is_introduced_before_handshake(&self) -> bool {
        self.awaited.is_some() && matches!(self.state, ConnectionState::Handshake { .. })
    }

    /// Receives the PROXY header before a handshake, and leaves the bytes behind it to TLS.
    pub(super) fn receive_proxy_header(&mut self, scratch: &mut [u8], config: &Config) -> Next {
        loop {
            let count = match self.stream.transport().peek(scratch) {
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(Errno::AGAIN) => return Next::Wait(Interest::Read),
                Err(Errno::INTR) => continue,
                Err(_) => return Next::Close,
            };
            self.stream.input.extend_from_slice(&scratch[..count]);
            let is_whole = match self.read_proxy_header(config) {
                Ok(is_whole) => is_whole,
                Err(refusal) => return Next::Refuse(refusal),
            };
            // All received bytes belong to the header if it is incomplete.
            let behind = if is_whole {
                std::mem::take(&mut self.stream.input).len()
            } else {
                0
            };
            if self.stream.transport().skip(&mut scratch[..count - behind]).is_err() {
                return Next::Close;
            }
            if is_whole {
                return Next::Wait(Interest::Read);
            }
        }
    }
}
