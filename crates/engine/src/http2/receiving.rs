//! What a client sends on a stream: a body, or its half of a tunnel. It is taken from `h2` when somebody receives it, so
//! the windows bound what is kept.

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
    /// What the end of `body` means.
    end: RequestEnd,
}

/// What it means that a client has ended its direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// The peer of a tunnel has nothing more to say, as at the end of a socket (RFC 8441 §5).
    Hangup,
    /// A body whose length was not announced is complete. That is told once.
    Body,
    /// Nothing: the client waits for the response.
    Nothing,
}

impl RequestEnd {
    /// That of a request, whose head something follows or not.
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

    /// Takes what has arrived out of `h2`, which keeps some 256 bytes beside each frame. Nothing of it counts as received,
    /// so the windows still bound it.
    pub(super) fn gather(&mut self) {
        let Some(body) = &mut self.body else { return };
        while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut context()) {
            self.gathered.extend_from_slice(&bytes);
        }
    }

    /// Whether there is something to receive: bytes, or the end, or an error.
    pub(super) fn has_some(&mut self) -> bool {
        !matches!(self.look(), Err(Errno::AGAIN))
    }

    /// Whether bytes have arrived; false at the end, if that means something.
    pub(super) fn look(&mut self) -> io::Result<bool> {
        match self.look_into_body() {
            Ok(false) if self.end == RequestEnd::Nothing => Err(Errno::AGAIN),
            looked => looked,
        }
    }

    /// Moves bytes to `space`; returns how many, 0 at the end.
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
                // Trailers (RFC 9113 §8.1) are read, and not used.
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
