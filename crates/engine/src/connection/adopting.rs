//! Connections that migrate between workers: with a request, or between two.

use super::{Connection, ConnectionState, Next};
use crate::clock::{Millis, Nanos};
use crate::cluster::queues::Stage;
use crate::config::Config;
use crate::http::body::Body;
use crate::transport::poller::Interest;

/// A request that another worker has read.
pub(crate) struct Adopted {
    /// Head, and the bytes that follow it.
    pub(crate) input: Vec<u8>,
    pub(crate) body: Body,
    pub(crate) is_http2: bool,
    /// Time at which it was complete, and time since when it has waited for its turn among the requests of all
    /// connections.
    pub(crate) arrived: Nanos,
    pub(crate) waits_since: Nanos,
}

impl Connection {
    /// Completes a connection that comes from another worker, together with its request. `None` if the head is not
    /// valid.
    pub(crate) fn adopted(mut self, adopted: Adopted, served: u64, config: &Config) -> Option<Connection> {
        self.served = served;
        self.stream.input = adopted.input;
        if !self.read_proxy_header(config).ok()? {
            return None;
        }
        let request = &mut self.stream.request;
        if let Body::File(..) = adopted.body {
            self.space.take_file(config);
        }
        request.body = adopted.body;
        request.arrived = adopted.arrived;
        request.line_wait = adopted.waits_since - adopted.arrived;
        let is_whole = matches!(request.head.parse(&self.stream.input, &config.head_limits()), Ok(true));
        if adopted.is_http2 {
            let has_body = !request.body.is_empty();
            request.becomes_http2(has_body);
        }
        let is_taken = self.take_head(config).is_ok();
        self.state = ConnectionState::Ready;
        (is_whole && is_taken).then_some(self)
    }

    /// Completes a connection that migrated from another worker; [`Connection::resume`] continues it.
    pub(crate) fn taken_over(&mut self, stage: Stage, input: Vec<u8>, served: u64) {
        match stage {
            Stage::Idle { since } => self.idle_since = since,
            Stage::Head { since } => self.state = ConnectionState::Head { since },
            Stage::Request { .. } | Stage::Response { .. } => {}
        }
        self.served = served;
        self.stream.input = input;
    }

    /// Continues a connection that migrated from another worker, with the bytes that were read there.
    pub(crate) fn resume(&mut self, config: &Config, now: Millis) -> Next {
        if self.is_flushing() {
            // A client that takes nothing gets no more offers than in its previous worker.
            return Next::Wait(Interest::Write);
        }
        if self.stream.input.is_empty() {
            return Next::Wait(Interest::Read);
        }
        if !matches!(self.state, ConnectionState::Handshake { .. }) {
            return self.parse_head(config, now);
        }
        match self.read_proxy_header(config) {
            Ok(_) => Next::Wait(Interest::Read),
            Err(refusal) => Next::Refuse(refusal),
        }
    }

    /// Stage of the connection's next request, if another worker can take the connection over now.
    pub(crate) fn stage(&self) -> Option<Stage> {
        match self.state {
            ConnectionState::Idle | ConnectionState::Handshake { .. } => Some(Stage::Idle { since: self.idle_since }),
            ConnectionState::Head { since } => Some(Stage::Head { since }),
            ConnectionState::Ready => Some(Stage::Request {
                arrived: self.arrived(),
            }),
            ConnectionState::Flush(ref outgoing) => Some(Stage::Response { paid: outgoing.paid() }),
            _ => None,
        }
    }

    /// True if it has no complete or incomplete request.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::Idle | ConnectionState::Head { .. } | ConnectionState::Handshake { .. }
        )
    }

    /// True if another worker can take it over now.
    pub(crate) fn can_move(&self) -> bool {
        match self.is_between_requests() {
            true => self.stream.transport().can_move(),
            false => self.can_leave_rest() && self.stream.output.can_be_saved(),
        }
    }
}
