//! Receives the body of a request, and stores it.

use super::{Connection, Next, State};
use crate::clock::{Millis, Nanos};
use crate::config::Config;
use crate::http::http1::CONTINUE;
use crate::http::refusal::Refusal;
use crate::limits::meter::Meter;
use crate::stream::output::{FileParts, Flush};
use crate::transport::poller::Interest;
use crate::transport::READ_TURN;
use fairlead_wire::http1::{ChunkedDecoder, Framing};
use rustix::io::Errno;

/// Longest trailer section of a chunked body.
const TRAILER_BYTES: usize = 8 * 1024;

impl Connection {
    /// Leaves what was read of the body to the spooler.
    pub(super) fn store_later(&mut self, read: Vec<u8>, now: Millis) -> Next {
        if let State::Body { unstored, handed, .. } = &mut self.state {
            *unstored = read;
            *handed = now;
        }
        Next::Store
    }

    /// Whether the body ends with what is received.
    pub(super) fn ends_with_stream(&self) -> bool {
        matches!(self.state, State::Body { .. }) && self.stream.request.head.framing == Framing::Stream
    }

    /// Restarts the meter: a client that has sent more than one turn reads is not slow.
    pub(super) fn forgive(&mut self, now: Millis) {
        if let State::Body { meter, .. } = &mut self.state {
            *meter = Meter::begin(now);
        }
    }

    /// Whether the next bytes of the body go to a file.
    pub(super) fn needs_disk(&self) -> bool {
        matches!(self.state, State::Body { .. }) && self.space.permit.is_some()
    }

    pub(super) fn begin_body(&mut self, config: &Config, now: Millis) -> Next {
        if let Err(refusal) = self.take_head(config) {
            return Next::Refuse(refusal);
        }
        let decoder = match self.stream.request.head.framing {
            Framing::Empty | Framing::Length(0) => return self.complete(),
            _ if self.stream.lacks_tls(config) => return self.complete_without_body(),
            Framing::Length(length) if is_over(length, config) => return Next::Refuse(Refusal::BodyTooLarge),
            Framing::Length(_) | Framing::Stream => None,
            Framing::Chunked => Some(Box::new(ChunkedDecoder::new(TRAILER_BYTES))),
        };
        self.state = State::Body {
            meter: Meter::begin(now),
            decoder,
            began: now,
            waits: None,
            unstored: Vec::new(),
            handed: now,
        };
        let rest = std::mem::take(&mut self.stream.input);
        if rest.is_empty() && self.stream.request.head.expect_continue {
            self.stream.output.buffer().extend_from_slice(CONTINUE);
            return self.send_interim();
        }
        if rest.is_empty() {
            return Next::Wait(Interest::Read);
        }
        if self.memory_for(rest.len(), config) == 0 {
            return self.store_later(rest, now);
        }
        self.feed_body(&rest, config, now)
    }

    /// Sends an interim response. The body is not read before all of it is sent.
    pub(super) fn send_interim(&mut self) -> Next {
        match self.stream.flush(FileParts::Leave) {
            Ok(Flush::Done) => Next::Wait(Interest::Read),
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    pub(super) fn feed_body(&mut self, bytes: &[u8], config: &Config, now: Millis) -> Next {
        let (before, framing) = (self.stream.request.body.len(), self.stream.request.head.framing);
        let State::Body { decoder, .. } = &mut self.state else {
            return Next::Close;
        };
        let mut decoder = decoder.take();
        let mut stored = Ok(());
        let mut keep = |part: &[u8]| {
            if stored.is_ok() && !is_over(self.stream.request.body.len() + part.len() as u64, config) {
                let memory_bytes = self.memory_for(part.len(), config);
                stored = self.stream.request.body.push(part, memory_bytes, &config.temp_dir);
            } else if stored.is_ok() {
                stored = Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
        };
        let (consumed, done) = match &mut decoder {
            Some(decoder) => match decoder.decode(bytes, &mut keep) {
                Ok(progress) => (progress.consumed, progress.done),
                Err(error) => return Next::Refuse(error.into()),
            },
            None if framing == Framing::Stream => {
                keep(bytes);
                (bytes.len(), false)
            }
            None => {
                let Framing::Length(length) = framing else {
                    return Next::Close;
                };
                let missing = length - before;
                let count = missing.min(bytes.len() as u64) as usize;
                keep(&bytes[..count]);
                (count, count as u64 == missing)
            }
        };
        let moved = self.stream.request.body.len() - before;
        if let State::Body {
            decoder: place, meter, ..
        } = &mut self.state
        {
            *place = decoder;
            meter.moved(moved, now, config.body_rate());
        }
        match stored {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Next::Refuse(Refusal::BodyTooLarge),
            Err(error) => Next::Refuse(Refusal::BodyNotStored(error.kind().into())),
            Ok(()) if done => {
                self.stream.input.extend_from_slice(&bytes[consumed..]);
                self.complete()
            }
            Ok(()) => Next::Wait(Interest::Read),
        }
    }

    pub(super) fn wait_for_descriptor(&mut self, now: Millis) -> Next {
        if let State::Body { waits, .. } = &mut self.state {
            *waits = Some(now);
        }
        Next::PutOff
    }

    /// Whether the body cannot be stored because there is no descriptor.
    pub(crate) fn waits_for_descriptor(&self) -> bool {
        matches!(self.state, State::Body { waits: Some(_), .. })
    }

    /// Start of that wait.
    pub(crate) fn has_waited_since(&self) -> Option<Millis> {
        match self.state {
            State::Body { waits, .. } => waits,
            _ => None,
        }
    }

    /// Continues to read the body, when this connection is next among those that wait, unless there is still no
    /// descriptor. The client is not charged for the wait. `is_next`: for a descriptor, others may wait for, too.
    pub(crate) fn go_on(&mut self, config: &Config, now: Millis, is_next: bool) -> Next {
        if let Err(next) = self.make_room(READ_TURN, config, is_next) {
            return next;
        }
        if let State::Body { meter, waits, .. } = &mut self.state {
            meter.forgive(now - waits.take().unwrap_or(now));
        }
        Next::Wait(Interest::Read)
    }

    /// Nothing is read now, but a connection that has failed is closed.
    pub(super) fn look_for_peer(&self) -> Next {
        match self.stream.transport().has_received() {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Next::Wait(Interest::Nothing),
            Err(_) => Next::Close,
        }
    }

    /// The client will send the request again.
    pub(super) fn complete_without_body(&mut self) -> Next {
        self.has_unread_body = true;
        self.stream.request.head.keep_alive = false;
        self.complete()
    }

    pub(super) fn complete(&mut self) -> Next {
        if self.stream.request.body.finish().is_err() {
            return Next::Refuse(Refusal::BodyNotReadable);
        }
        self.settle_space();
        self.stream.request.arrived = Nanos::now();
        if let State::Body { began, .. } = self.state {
            self.stream.request.body_wait = self.stream.request.arrived - Nanos::from(began);
        }
        self.state = State::Ready;
        Next::Ready
    }
}

fn is_over(length: u64, config: &Config) -> bool {
    config.body_max_bytes > 0 && length > config.body_max_bytes
}
