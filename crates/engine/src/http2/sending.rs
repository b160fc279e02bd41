//! The bytes that are sent on a stream: heads in HTTP/1, which become frames, and the body, as far as the windows and
//! the HTTP/2 connection have room.

use super::connection::Http2Connection;
use super::head::response;
use super::stream::context;
use bytes::Bytes;
use fairlead_wire::has_no_body;
use fairlead_wire::http2::{ResponseLines, MAX_RESPONSE_HEAD};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use rustix::io::{self, Errno};

/// A piece smaller than this, with more bytes to follow, is small because of a window.
const SMALL_PIECE: usize = 256;

/// See the head of this file.
pub(super) struct Sending {
    /// Beginning of a head that is not complete yet.
    head: Vec<u8>,
    response: SendResponse<Bytes>,
    /// Set once the head of the response is sent.
    pub(super) body: Option<SendStream<Bytes>>,
    /// Bytes of the body that are missing, if the head has announced its length.
    missing: Option<u64>,
    /// The peer knows that nothing follows.
    pub(super) has_ended: bool,
    /// The end of the sent bytes is the end of the response, because nothing else marks it.
    pub(super) is_given_away: bool,
    /// The client wants a tunnel, so success means that there is one.
    is_for_tunnel: bool,
}

impl Sending {
    /// Creates the state in which nothing was sent yet. `is_for_tunnel`: see the field.
    pub(super) fn new(response: SendResponse<Bytes>, is_for_tunnel: bool) -> Sending {
        Sending {
            head: Vec::new(),
            response,
            body: None,
            missing: None,
            has_ended: false,
            is_given_away: false,
            is_for_tunnel,
        }
    }

    /// The number of the stream.
    pub(super) fn id(&self) -> u32 {
        self.response.stream_id().as_u32()
    }

    /// Resets the stream, unless the response is complete. Returns true if a reset has to be sent.
    pub(super) fn reset(&mut self, reason: Reason) -> bool {
        if std::mem::replace(&mut self.has_ended, true) {
            return false;
        }
        match &mut self.body {
            Some(body) => body.send_reset(reason),
            None => self.response.send_reset(reason),
        }
        true
    }

    pub(super) fn is_reset(&mut self) -> bool {
        if self.has_ended {
            return false;
        }
        match &mut self.body {
            Some(body) => body.poll_reset(&mut context()).is_ready(),
            None => self.response.poll_reset(&mut context()).is_ready(),
        }
    }

    /// Takes bytes of heads, until the head of the response is sent; returns their number.
    pub(super) fn take_heads(&mut self, bytes: &[u8], is_head_request: bool) -> io::Result<usize> {
        let mut taken = 0;
        while self.body.is_none() && taken < bytes.len() {
            // Nothing stays of a head that cannot be sent: the next attempt would find it before its own bytes.
            let mut text = std::mem::take(&mut self.head);
            let before = text.len();
            text.extend_from_slice(&bytes[taken..]);
            let Some(lines) = ResponseLines::of(&text) else {
                if text.len() > MAX_RESPONSE_HEAD {
                    return Err(Errno::PIPE);
                }
                self.head = text;
                return Ok(bytes.len());
            };
            taken += lines.len - before;
            let head = response(&lines, self.is_for_tunnel).ok_or(Errno::PIPE)?;
            if head.status().is_informational() {
                self.response.send_informational(head).map_err(|_| Errno::PIPE)?;
            } else {
                self.missing = lines.content_length().filter(|_| lines.status != 101);
                let ends = is_head_request || has_no_body(head.status().as_u16()) || self.missing == Some(0);
                self.body = Some(self.response.send_response(head, ends).map_err(|_| Errno::PIPE)?);
                self.has_ended = ends;
            }
        }
        Ok(taken)
    }

    /// Returns how many of `wanted` bytes of the body can be taken now.
    pub(super) fn room(&mut self, connection: &Http2Connection, wanted: usize) -> usize {
        let Some(body) = &mut self.body else { return 0 };
        if self.has_ended {
            return 0;
        }
        body.reserve_capacity(wanted);
        body.capacity().min(connection.room()).min(wanted)
    }

    /// Like [`Sending::room`], for bytes that are taken at once.
    pub(super) fn room_now(&mut self, connection: &Http2Connection, wanted: usize) -> usize {
        let room = self.room(connection, wanted);
        let capacity = self.body.as_ref().map_or(0, SendStream::capacity);
        if room > 0 && capacity < wanted.min(SMALL_PIECE) {
            connection.cut();
        }
        room
    }

    /// Takes bytes of the body; returns their number.
    pub(super) fn take_body(&mut self, bytes: &[u8], connection: &Http2Connection) -> io::Result<usize> {
        // The engine writes no bytes after the end, and no body for a response without one.
        if self.has_ended {
            return Err(Errno::PIPE);
        }
        let count = self.room_now(connection, bytes.len());
        let Some(body) = self.body.as_mut().filter(|_| count > 0) else {
            return Ok(0);
        };
        self.missing = self.missing.map(|missing| missing.saturating_sub(count as u64));
        self.has_ended = self.missing == Some(0);
        connection.took(body.stream_id().as_u32(), count);
        let sent = body.send_data(Bytes::copy_from_slice(&bytes[..count]), self.has_ended);
        if sent.is_err() {
            connection.lost(body.stream_id().as_u32());
            return Err(Errno::PIPE);
        }
        Ok(count)
    }

    /// Marks the response as complete. Returns true if that has to be sent.
    pub(super) fn end(&mut self) -> bool {
        let Some(body) = self.body.as_mut().filter(|_| !self.has_ended) else {
            return false;
        };
        if self.missing.is_none() {
            self.has_ended = body.send_data(Bytes::new(), true).is_ok();
        }
        true
    }
}
