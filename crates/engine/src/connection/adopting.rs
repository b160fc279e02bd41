//! Connections that move between workers: with a request, or between two.

use super::{Connection, ConnectionState, Next};
use crate::clock::{Millis, Nanos};
use crate::cluster::waiting_room::Stage;
use crate::config::Config;
use crate::http::body::Body;
use crate::transport::poller::Interest;

/// A request that another worker has read.
pub(crate) struct Adopted {
    /// Its head, and what has come behind it.
    pub(crate) input: Vec<u8>,
    pub(crate) body: Body,
    pub(crate) is_http2: bool,
    /// When it was complete, and since when it has waited for its turn among the requests of all connections.
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

    /// Completes a connection that another worker has handed off; [`Connection::resume`] goes on with it.
    pub(crate) fn taken_over(&mut self, stage: Stage, input: Vec<u8>, served: u64) {
        match stage {
            Stage::Idle { since } => self.idle_since = since,
            Stage::Head { since } => self.state = ConnectionState::Head { since },
            Stage::Request { .. } => {}
        }
        self.served = served;
        self.stream.input = input;
    }

    /// Goes on with a connection that another worker has handed off, with what that has read of it.
    pub(crate) fn resume(&mut self, config: &Config, now: Millis) -> Next {
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

    /// How far the connection is with its next request, if another worker can take it over now.
    pub(crate) fn stage(&self) -> Option<Stage> {
        match self.state {
            ConnectionState::Idle | ConnectionState::Handshake { .. } => Some(Stage::Idle { since: self.idle_since }),
            ConnectionState::Head { since } => Some(Stage::Head { since }),
            ConnectionState::Ready => Some(Stage::Request {
                arrived: self.arrived(),
            }),
            _ => None,
        }
    }

    /// Whether it has no request that is complete or half complete.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::Idle | ConnectionState::Head { .. } | ConnectionState::Handshake { .. }
        )
    }

    /// Whether another worker can take it over now.
    pub(crate) fn can_move(&self) -> bool {
        self.is_between_requests() && self.stream.transport().can_move()
    }
}
