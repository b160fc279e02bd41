//! Receives the body of a request, and stores it.

use super::incoming::{BodyEnd, Incoming, Unframed};
use super::{Connection, ConnectionState, Next};
use crate::clock::{Millis, Nanos};
use crate::config::Config;
use crate::http::http1::CONTINUE;
use crate::http::refusal::Refusal;
use crate::stream::output::{FileParts, Flush};
use crate::transport::poller::Interest;
use crate::transport::READ_TURN;
use fairlead_wire::http1::{ChunkedDecoder, Framing};
use rustix::io::Errno;

/// Longest trailer section of a chunked body.
const TRAILER_BYTES: usize = 8 * 1024;

impl Connection {
    /// Returns the bytes that may be read now, at most `most`, or the next step if there is no room. `is_next`: this
    /// connection is the first of all connections that wait for a descriptor.
    pub(super) fn make_room(&mut self, most: usize, config: &Config, is_next: bool) -> Result<usize, Next> {
        match self.state {
            ConnectionState::Body(_) => self.space.room_for_body(&self.stream, most, config, is_next),
            _ => self.space.room_for_head(&self.stream, most, config),
        }
    }

    /// Leaves the received part of the body to the spooler.
    pub(super) fn store_later(&mut self, read: Vec<u8>, now: Millis) -> Next {
        if let ConnectionState::Body(incoming) = &mut self.state {
            incoming.keep_unstored(read, now);
        }
        Next::Store
    }

    /// True if the body ends with the stream.
    pub(super) fn ends_with_stream(&self) -> bool {
        matches!(&self.state, ConnectionState::Body(incoming) if incoming.ends_with_stream())
    }

    /// Restarts the meter: a client that has sent more than one turn reads is not slow.
    pub(super) fn forgive(&mut self, now: Millis) {
        if let ConnectionState::Body(incoming) = &mut self.state {
            incoming.restart(now);
        }
    }

    /// True if the next bytes of the body go to a file.
    pub(super) fn needs_disk(&self) -> bool {
        matches!(self.state, ConnectionState::Body(_)) && self.space.has_file()
    }

    pub(super) fn begin_body(&mut self, config: &Config, now: Millis) -> Next {
        if let Err(refusal) = self.take_head(config) {
            return Next::Refuse(refusal);
        }
        let end = match self.stream.request.head.framing {
            Framing::Empty | Framing::Length(0) => return self.complete(),
            _ if self.stream.lacks_tls(config) => return self.complete_without_body(),
            Framing::Length(length) if is_over(length, config) => return Next::Refuse(Refusal::BodyTooLarge),
            Framing::Length(length) => BodyEnd::Length(length),
            Framing::Stream => BodyEnd::Stream,
            Framing::Chunked => BodyEnd::Chunks(Box::new(ChunkedDecoder::new(TRAILER_BYTES))),
        };
        self.state = ConnectionState::Body(Incoming::new(end, now));
        let rest = std::mem::take(&mut self.stream.input);
        if rest.is_empty() && self.stream.request.head.expect_continue {
            self.stream.output.buffer().extend_from_slice(CONTINUE);
            return self.send_interim();
        }
        if rest.is_empty() {
            return Next::Wait(Interest::Read);
        }
        if self.space.memory_for(&self.stream, rest.len(), config) == 0 {
            return self.store_later(rest, now);
        }
        self.feed_body(&rest, config, now)
    }

    /// Sends an interim response. The body is not read before all of the response is sent.
    pub(super) fn send_interim(&mut self) -> Next {
        match self.stream.flush(FileParts::Leave) {
            Ok(Flush::Done) => Next::Wait(Interest::Read),
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    pub(super) fn feed_body(&mut self, bytes: &[u8], config: &Config, now: Millis) -> Next {
        let ConnectionState::Body(incoming) = &mut self.state else {
            return Next::Close;
        };
        let (stream, space) = (&mut self.stream, &mut self.space);
        let before = stream.request.body.len();
        let mut stored = Ok(());
        let mut keep = |part: &[u8]| {
            if stored.is_ok() && !is_over(stream.request.body.len() + part.len() as u64, config) {
                let memory_bytes = space.memory_for(stream, part.len(), config);
                stored = stream.request.body.push(part, memory_bytes, &config.temp_dir);
            } else if stored.is_ok() {
                stored = Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
        };
        let Unframed { consumed, is_whole } = match incoming.unframe(bytes, before, &mut keep) {
            Ok(unframed) => unframed,
            Err(error) => return Next::Refuse(error.into()),
        };
        incoming.moved(self.stream.request.body.len() - before, now, config);
        match stored {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Next::Refuse(Refusal::BodyTooLarge),
            Err(error) => Next::Refuse(Refusal::BodyNotStored(error.kind().into())),
            Ok(()) if is_whole => {
                self.stream.input.extend_from_slice(&bytes[consumed..]);
                self.complete()
            }
            Ok(()) => Next::Wait(Interest::Read),
        }
    }

    pub(super) fn wait_for_descriptor(&mut self, now: Millis) -> Next {
        if let ConnectionState::Body(incoming) = &mut self.state {
            incoming.wait(now);
        }
        Next::PutOff
    }

    /// True if the body cannot be stored because there is no descriptor.
    pub(crate) fn waits_for_descriptor(&self) -> bool {
        self.has_waited_since().is_some()
    }

    /// Time since when the body has waited for a descriptor.
    pub(crate) fn has_waited_since(&self) -> Option<Millis> {
        match &self.state {
            ConnectionState::Body(incoming) => incoming.waits_since(),
            _ => None,
        }
    }

    /// Continues to read the body when it is this connection's turn, unless there is still no descriptor. The client is
    /// not charged for the wait. `is_next`: this connection gets the next descriptor, for which others may wait, too.
    pub(crate) fn go_on(&mut self, config: &Config, now: Millis, is_next: bool) -> Next {
        if let Err(next) = self.make_room(READ_TURN, config, is_next) {
            return next;
        }
        if let ConnectionState::Body(incoming) = &mut self.state {
            incoming.go_on(now);
        }
        Next::Wait(Interest::Read)
    }

    /// Reads nothing now, but closes a connection that has failed.
    pub(super) fn look_for_peer(&self) -> Next {
        match self.stream.transport().has_received() {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Next::Wait(Interest::Nothing),
            Err(_) => Next::Close,
        }
    }

    /// Completes the request without its body, because the client will send the request again.
    pub(super) fn complete_without_body(&mut self) -> Next {
        self.has_unread_body = true;
        self.stream.request.head.keep_alive = false;
        self.complete()
    }

    pub(super) fn complete(&mut self) -> Next {
        if self.stream.request.body.finish().is_err() {
            return Next::Refuse(Refusal::BodyNotReadable);
        }
        self.space.settle(&self.stream);
        self.stream.request.arrived = Nanos::now();
        if let ConnectionState::Body(incoming) = &self.state {
            self.stream.request.body_wait = self.stream.request.arrived - Nanos::from(incoming.began());
        }
        self.state = ConnectionState::Ready;
        Next::Ready
    }
}

fn is_over(length: u64, config: &Config) -> bool {
    config.body_max_bytes > 0 && length > config.body_max_bytes
}
