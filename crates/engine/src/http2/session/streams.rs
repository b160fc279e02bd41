//! The streams of a session: how they begin, what room they have, and who waits for what of them.

use super::{Arrival, Begun, Session};
use crate::clock::Millis;
use crate::http2::head::{priority, request_head};
use crate::http2::receiving::RequestEnd;
use crate::http2::stream::StreamSocket;
use crate::transport::poller::{Dispatching, Happened, Key};
use crate::transport::Link;
use fairlead_wire::Error;
use h2::Reason;
use http::Request;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};

/// Bytes of responses that a session keeps, of all its streams, while the socket does not take them.
const UNSENT_BYTES: usize = 128 * 1024;

impl Session {
    /// A request as a stream: its transport, its head in HTTP/1, or what is wrong with it, and what else is known. `None` if
    /// it is refused, because a head of that size is not admitted.
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
            // Nothing of it was looked at, so that the client may send it again (RFC 9113 §8.7).
            self.pipe.refused();
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
        let receiving = (Some(body).filter(|_| has_more), end);
        let stream = StreamSocket::new(self, arrival.respond, receiving, is_head_request);
        if has_more {
            self.receiving.lock().insert(stream.id(), Arc::downgrade(&stream));
        }
        Some((stream, written.map(|()| head), begun))
    }

    /// Takes what came in small frames out of `h2`. Most of it somebody is about to receive; but a body that waits for
    /// its file, or messages for a handler that is slow, would cost far more memory there than their bytes.
    pub(crate) fn gather(&self) {
        for id in self.pipe.take_small() {
            let stream = self.receiving.lock().get(&id).and_then(Weak::upgrade);
            if let Some(stream) = stream {
                stream.gather();
            }
        }
    }

    /// A stream that could receive something is over.
    pub(in crate::http2) fn received(&self, stream: u32) {
        self.receiving.lock().remove(&stream);
    }

    /// A stream has begun.
    pub(in crate::http2) fn opened(&self) {
        self.streams.fetch_add(1, SeqCst);
        self.budget.begin_request();
    }

    /// Whether there is only one stream.
    pub(crate) fn is_with_one_stream(&self) -> bool {
        self.streams.load(SeqCst) == 1
    }

    /// A stream belongs to the app from now on.
    pub(in crate::http2) fn hijacked(&self) {
        self.hijacked.fetch_add(1, SeqCst);
        self.worker.expect(self.idle_deadline());
    }

    /// A stream is over.
    pub(in crate::http2) fn left(&self, was_hijacked: bool) {
        self.budget.end_request();
        if was_hijacked {
            self.hijacked.fetch_sub(1, SeqCst);
        }
        if self.streams.fetch_sub(1, SeqCst) == 1 {
            self.idle_since.store(Millis::now(), SeqCst);
            if self.is_over() {
                self.look_later();
            }
        }
        self.worker.expect(self.idle_deadline());
    }

    /// How many bytes of responses may be taken now.
    pub(in crate::http2) fn room(&self) -> usize {
        UNSENT_BYTES.saturating_sub(self.pipe.unsent.total())
    }

    /// A piece of a response is as small as it is because of a window.
    pub(in crate::http2) fn cut(&self) {
        self.pipe.cut();
    }

    /// A stream has given so many, before `h2` has them.
    pub(in crate::http2) fn took(&self, stream: u32, bytes: usize) {
        self.pipe.unsent.add(stream, bytes);
    }

    /// What a stream has given is not sent.
    pub(in crate::http2) fn lost(&self, stream: u32) {
        self.pipe.unsent.drop_stream(stream);
    }

    /// Somebody waits for something to happen to a stream.
    pub(in crate::http2) fn watch(&self, stream: Arc<StreamSocket>) {
        let id = stream.id();
        self.watched.lock().insert(id, stream);
    }

    pub(in crate::http2) fn unwatch(&self, id: u32) {
        let stream = self.watched.lock().remove(&id);
        drop(stream);
    }

    /// What has happened to streams that somebody waits for.
    pub(crate) fn due(&self) -> Vec<(Key, Happened)> {
        self.looks_later.store(false, SeqCst);
        let watched = self.watched.lock();
        watched.values().filter_map(|stream| stream.due()).collect()
    }

    /// The poller looks at the streams in its next turn.
    pub(crate) fn look_later(&self) {
        self.looks_later.store(true, SeqCst);
        self.shared.is_any_due.store(true, SeqCst);
        if !Dispatching::is_here() {
            self.worker.poller.wake();
        }
    }

    /// Whether the streams have to be looked at without an event of the socket.
    pub(crate) fn looks_later(&self) -> bool {
        self.looks_later.load(SeqCst)
    }
}
