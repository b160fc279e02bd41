//! Turns bytes into requests: reads the input of a peer, and parses heads. Leaves work that needs the disk to the
//! spooler.

use super::{Connection, ConnectionState, Next};
use crate::clock::Millis;
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::stream::Stream;
use crate::transport::poller::Interest;
use crate::transport::READ_TURN;
use fairlead_wire::http2::begins_with_preface;
use rustix::io::Errno;

/// Action of a read if a body has to be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    Write,
    Leave,
}

impl Connection {
    /// One turn of the spooler: stores the received part of a large body, and reads more. `Wait` asks for another turn
    /// when more has arrived.
    pub(crate) fn store(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        if let ConnectionState::Body(incoming) = &mut self.state {
            let unstored = incoming.take_unstored(now);
            let next = self.feed_body(&unstored, config, now);
            if next != Next::Wait(Interest::Read) {
                return next;
            }
        }
        let next = self.read(scratch, config, now, Disk::Write);
        if let ConnectionState::Body(incoming) = &mut self.state {
            incoming.forgive_since(now, Millis::now());
        }
        next
    }

    pub(super) fn read(&mut self, scratch: &mut [u8], config: &Config, now: Millis, disk: Disk) -> Next {
        let mut turn = 0;
        loop {
            let most = match self.make_room(scratch.len(), config, false) {
                Ok(most) => most,
                Err(Next::PutOff) => return self.wait_for_descriptor(now),
                Err(next) => return next,
            };
            if disk == Disk::Leave && self.needs_disk() {
                return self.store_later(Vec::new(), now);
            }
            let count = match self.stream.transport().receive(&mut scratch[..most]) {
                Ok(0) if self.ends_with_stream() => return self.complete(),
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(Errno::AGAIN) => return self.wait_for_more(config),
                Err(Errno::INTR) => continue,
                Err(Errno::PROTO) => return self.linger(now),
                Err(_) => return Next::Close,
            };
            let next = self.feed(&scratch[..count], config, now);
            turn += count;
            if next != Next::Wait(Interest::Read) {
                return next;
            }
            if count < most {
                return self.wait_for_more(config);
            }
            if turn >= READ_TURN {
                self.forgive(now);
                return next;
            }
        }
    }

    /// Reserves no memory while the client sends nothing, which may take long.
    fn wait_for_more(&mut self, config: &Config) -> Next {
        self.space.give_back_reserved(&self.stream, config);
        Next::Wait(Interest::Read)
    }

    /// Begins a request of HTTP/2 with its head in the input. `has_body`: a body follows.
    pub(crate) fn begin_stream(&mut self, has_body: bool, config: &Config, now: Millis) -> Next {
        self.awaited = None;
        let (memory, totals) = (self.stream.input_memory(), &config.request_totals);
        // The HTTP/2 connection has admitted the request.
        self.space.count_memory(totals, memory);
        let Stream { request, input, .. } = &mut self.stream;
        match request.head.parse(input, &config.head_limits()) {
            Ok(true) => {}
            Ok(false) => return Next::Refuse(Refusal::from(fairlead_wire::Error::InvalidFieldName)),
            Err(error) => return Next::Refuse(error.into()),
        }
        request.becomes_http2(has_body);
        // The parser knows only bodies of HTTP/1. It has refused all other expectations.
        let mut names = request.head.fields.iter().map(|field| field.name.of(input));
        request.head.expect_continue = has_body && names.any(|name| name.eq_ignore_ascii_case(b"expect"));
        self.state = ConnectionState::Head { since: now };
        self.begin_body(config, now)
    }

    fn feed(&mut self, bytes: &[u8], config: &Config, now: Millis) -> Next {
        if matches!(self.state, ConnectionState::Body(_)) {
            return self.feed_body(bytes, config, now);
        }
        self.stream.input.extend_from_slice(bytes);
        self.parse_head(config, now)
    }

    /// Parses the head, if all of it has arrived.
    pub(crate) fn parse_head(&mut self, config: &Config, now: Millis) -> Next {
        if let ConnectionState::Idle = self.state {
            self.state = ConnectionState::Head { since: now };
        }
        if self.awaited.is_some() {
            match self.read_proxy_header(config) {
                Ok(true) if !self.stream.input.is_empty() => {}
                Ok(true) => {
                    self.state = ConnectionState::Idle;
                    return Next::Wait(Interest::Read);
                }
                Ok(false) => return Next::Wait(Interest::Read),
                Err(refusal) => return Next::Refuse(refusal),
            }
        }
        if config.http2 && self.served == 0 && self.may_begin_http2() {
            match begins_with_preface(&self.stream.input) {
                Some(true) => return Next::Multiplex,
                Some(false) => {}
                None => return Next::Wait(Interest::Read),
            }
        }
        let limits = config.head_limits();
        let Stream { request, input, .. } = &mut self.stream;
        match request.head.parse_on(input, &limits, &mut self.progress) {
            Ok(true) => self.begin_body(config, now),
            Ok(false) => Next::Wait(Interest::Read),
            Err(_) if is_tls(input) => Next::Refuse(Refusal::Tls),
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// True if a client may begin with HTTP/2: unless TLS has negotiated HTTP/1.1 (RFC 9113 §3.2). The HTTP/1 parser
    /// refuses the preface in that case.
    fn may_begin_http2(&self) -> bool {
        let transport = self.stream.transport();
        let has_agreed_on_http1 = transport.session().is_some_and(|session| session.is_http1);
        !transport.is_for_one_response() && !has_agreed_on_http1
    }
}

/// True if a client begins a TLS handshake where plain HTTP is spoken (RFC 8446 §5.1).
fn is_tls(input: &[u8]) -> bool {
    input.starts_with(&[22, 3])
}
