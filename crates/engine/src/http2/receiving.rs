//! The bytes that a client sends on a stream: a body, or its half of a tunnel. They are taken out of `h2` only when
//! they are received, so the windows bound the memory that they take.

use super::head::is_tunnel;
use super::stream::context;
use bytes::{Buf, Bytes, BytesMut};
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::Request;
use rustix::io::{self, Errno};
use std::task::Poll;

/// See the head of this file.
pub(super) struct Receiving {
    /// `None` if nothing follows the head.
    body: Option<RecvStream>,
    /// Bytes taken from `body` and not received yet: first `ahead`, then `gathered`.
    ahead: Bytes,
    gathered: BytesMut,
    /// The meaning of the end of `body`.
    end: RequestEnd,
}

/// The meaning of the end of a client's direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// The peer of a tunnel sends nothing more, as at the end of a socket (RFC 8441 §5).
    Hangup,
    /// A body of unannounced length is complete. This is reported once.
    Body,
    /// Nothing: the client waits for the response.
    Nothing,
}

impl RequestEnd {
    /// The meaning for a request; `has_more`: bytes follow its head.
    pub(super) fn of(request: &Request<()>, has_more: bool) -> RequestEnd {
        let is_announced = request.headers().contains_key(CONTENT_LENGTH);
        match is_tunnel(request) {
            true => RequestEnd::Hangup,
            false if has_more && !is_announced => RequestEnd::Body,
            false => RequestEnd::Nothing,
        }
    }
}

impl Receiving {
    /// `body`: `None` if nothing follows the head.
    pub(super) fn new(body: Option<RecvStream>, end: RequestEnd) -> Receiving {
        Receiving {
            body,
            ahead: Bytes::new(),
            gathered: BytesMut::new(),
            end,
        }
    }

    pub(super) fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Takes arrived bytes out of `h2`, which needs some 256 bytes more for each frame. They do not count as received
    /// yet, so the windows still bound them.
    pub(super) fn gather(&mut self) {
        let Some(body) = &mut self.body else { return };
        while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut context()) {
            self.gathered.extend_from_slice(&bytes);
        }
    }

    /// Returns true if there is something to receive: bytes, the end, or an error.
    pub(super) fn has_some(&mut self) -> bool {
        !matches!(self.look(), Err(Errno::AGAIN))
    }

    /// Returns true if bytes have arrived, and false at the end, if the end has a meaning.
    pub(super) fn look(&mut self) -> io::Result<bool> {
        match self.look_into_body() {
            Ok(false) if self.end == RequestEnd::Nothing => Err(Errno::AGAIN),
            looked => looked,
        }
    }

    /// Moves bytes to `space`; returns their number, 0 at the end.
    pub(super) fn take_into(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < space.len() && (count == 0 || self.has_some()) {
            if !self.look()? {
                break;
            }
            let part = self.ahead.len().min(space.len() - count);
            self.ahead.copy_to_slice(&mut space[count..count + part]);
            count += part;
            if let Some(body) = &mut self.body {
                let _ = body.flow_control().release_capacity(part);
            }
        }
        if count == 0 && self.end == RequestEnd::Body {
            self.end = RequestEnd::Nothing;
        }
        Ok(count)
    }

    fn look_into_body(&mut self) -> io::Result<bool> {
        while self.ahead.is_empty() {
            if !self.gathered.is_empty() {
                self.ahead = self.gathered.split().freeze();
                break;
            }
            let Some(body) = &mut self.body else { return Ok(false) };
            match body.poll_data(&mut context()) {
                Poll::Ready(Some(Ok(bytes))) => self.ahead = bytes,
                Poll::Ready(Some(Err(_))) => return Err(Errno::CONNRESET),
                Poll::Ready(None) if body.is_end_stream() => return Ok(false),
                // Trailers (RFC 9113 §8.1) are read and ignored.
                Poll::Ready(None) => match body.poll_trailers(&mut context()) {
                    Poll::Ready(Ok(_)) => return Ok(false),
                    Poll::Ready(Err(_)) => return Err(Errno::CONNRESET),
                    Poll::Pending => return Err(Errno::AGAIN),
                },
                Poll::Pending => return Err(Errno::AGAIN),
            }
        }
        Ok(true)
    }
}
