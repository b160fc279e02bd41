//! Turns a request that has arrived into a stream.

use super::{Arrival, Begun, Http2Connection};
use crate::http2::head::{priority, request_head};
use crate::http2::receiving::{Receiving, RequestEnd};
use crate::http2::sending::Sending;
use crate::http2::stream::StreamSocket;
use crate::transport::Link;
use fairlead_wire::Error;
use h2::Reason;
use http::Request;
use std::sync::Arc;

impl Http2Connection {
    /// Opens a stream for a request. Returns its transport; its head in HTTP/1, or the error in it; and other facts.
    /// Returns `None` if the request is refused, because a head of this size is not admitted.
    pub(crate) fn open_stream(
        self: &Arc<Self>,
        mut arrival: Arrival,
        is_admitted: impl FnOnce(usize) -> bool,
    ) -> Option<(Link, Result<Vec<u8>, Error>, Begun)> {
        let (parts, body) = arrival.request.into_parts();
        let request = Request::from_parts(parts, ());
        let mut head = Vec::with_capacity(512);
        let written = request_head(&request, &mut head);
        if !is_admitted(head.len()) {
            // No part of the request was processed, so the client may send it again (RFC 9113 §8.7).
            self.carrier.pipe.refused();
            arrival.respond.send_reset(Reason::REFUSED_STREAM);
            self.push_soon();
            return None;
        }
        let has_more = !body.is_end_stream();
        let end = RequestEnd::of(&request, has_more);
        let begun = Begun {
            has_body: has_more && end != RequestEnd::Hangup,
            priority: priority(&request),
        };
        let is_head_request = request.method() == http::Method::HEAD;
        let receiving = Receiving::new(Some(body).filter(|_| has_more), end);
        let sending = Sending::new(arrival.respond, end == RequestEnd::Hangup);
        let stream = StreamSocket::new(self, receiving, sending, is_head_request);
        if has_more {
            self.streams.receive(&stream);
        }
        Some((stream, written.map(|()| head), begun))
    }
}
