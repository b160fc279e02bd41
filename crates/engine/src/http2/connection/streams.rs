//! The streams of an HTTP/2 connection: their number, the streams that a thread or the poller waits for, and the
//! streams that may receive something.

use super::Http2Connection;
use crate::clock::{AtomicMillis, Millis};
use crate::http2::listed::Listed;
use crate::http2::stream::StreamSocket;
use crate::limits::budget::Eased;
use crate::sync::Mutex;
use crate::transport::poller::{Dispatching, Happened, Key};
use crate::worker::Worker;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// Bytes of responses that an HTTP/2 connection keeps, for all its streams, while the socket does not take them.
const UNSENT_BYTES: usize = 128 * 1024;

/// See the head of this file.
pub(super) struct Streams {
    /// The streams that a thread or the poller waits for, by number.
    watched: Mutex<HashMap<u32, Arc<StreamSocket>>>,
    /// The streams that may receive something, by number.
    receiving: Mutex<HashMap<u32, Weak<StreamSocket>>>,
    count: AtomicUsize,
    /// Number of hijacked streams.
    hijacked: AtomicUsize,
    /// The time when the connection began, or when its last stream was over.
    idle_since: AtomicMillis,
    /// Set if streams have to be looked at without an event of the socket; see [`Streams::look_later`].
    looks_later: AtomicBool,
    /// Set if the connection is in `due`.
    is_listed: AtomicBool,
    due: Arc<Listed>,
    connection: Weak<Http2Connection>,
}

impl Streams {
    /// `due`: the connections of the engine that the poller has to look at.
    pub(super) fn new(connection: Weak<Http2Connection>, due: Arc<Listed>, now: Millis) -> Streams {
        Streams {
            watched: Mutex::default(),
            receiving: Mutex::default(),
            count: AtomicUsize::new(0),
            hijacked: AtomicUsize::new(0),
            idle_since: AtomicMillis::new(now),
            looks_later: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            due,
            connection,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(SeqCst)
    }

    /// The time when the connection began, or when its last stream was over.
    pub(super) fn idle_since(&self) -> Millis {
        self.idle_since.load(SeqCst)
    }

    /// The time when the connection has been idle for too long. In a drain, hijacked streams do not keep it open.
    pub(super) fn idle_deadline(&self, worker: &Worker) -> Millis {
        let count = self.count();
        let idle = match count {
            0 => self.idle_since() + worker.config.keep_alive_timeout,
            _ => Millis::NEVER,
        };
        let drained = worker.drain_deadline();
        let drained = drained.filter(|_| count == self.hijacked.load(SeqCst));
        drained.map_or(idle, |end| idle.min(end))
    }

    /// Removes a stream that is over. Returns true if it was the last one.
    fn leave(&self, was_hijacked: bool) -> bool {
        if was_hijacked {
            self.hijacked.fetch_sub(1, SeqCst);
        }
        let is_last = self.count.fetch_sub(1, SeqCst) == 1;
        if is_last {
            self.idle_since.store(Millis::now(), SeqCst);
        }
        is_last
    }

    /// Adds a stream that may receive something.
    pub(super) fn receive(&self, stream: &Arc<StreamSocket>) {
        self.receiving.lock().insert(stream.id(), Arc::downgrade(stream));
    }

    /// Takes small frames for these streams out of `h2`.
    pub(super) fn gather(&self, streams: Vec<u32>) {
        for id in streams {
            let stream = self.receiving.lock().get(&id).and_then(Weak::upgrade);
            if let Some(stream) = stream {
                stream.gather();
            }
        }
    }

    /// Returns true if a thread or the poller waits for one of them.
    pub(super) fn is_any_watched(&self) -> bool {
        !self.watched.lock().is_empty()
    }

    /// Events of the streams that a thread or the poller waits for.
    fn due(&self) -> Vec<(Key, Happened)> {
        let watched = self.watched.lock();
        watched.values().filter_map(|stream| stream.due()).collect()
    }

    /// Makes the poller look at the streams in its next turn.
    pub(super) fn look_later(&self, worker: &Worker) {
        self.looks_later.store(true, SeqCst);
        if !self.is_listed.swap(true, SeqCst) {
            self.due.add(self.connection.clone());
        }
        if !Dispatching::is_here() {
            worker.poller.wake();
        }
    }
}

/// Methods for the streams, and for the engine that looks at them.
impl Http2Connection {
    /// Counts a stream that has begun.
    pub(in crate::http2) fn opened(&self) {
        self.streams.count.fetch_add(1, SeqCst);
        self.carrier.budget.begin_request();
    }

    /// Returns true if there is only one stream.
    pub(crate) fn is_with_one_stream(&self) -> bool {
        self.streams.count() == 1
    }

    /// Counts a stream that the app has hijacked.
    pub(in crate::http2) fn hijacked(&self) {
        self.streams.hijacked.fetch_add(1, SeqCst);
        self.expect_idle();
    }

    /// Removes a stream that is over.
    pub(in crate::http2) fn left(&self, was_hijacked: bool) {
        self.carrier.budget.end_request();
        if self.streams.leave(was_hijacked) && self.is_over() {
            self.look_later();
        }
        self.expect_idle();
    }

    fn expect_idle(&self) {
        self.expect(self.streams.idle_deadline(&self.carrier.worker));
    }

    /// Takes the bytes of small frames out of `h2`. Most of them are about to be received. But for a body that waits
    /// for its file, or for messages to a slow handler, `h2` would need far more memory than their bytes.
    pub(crate) fn gather(&self) {
        self.streams.gather(self.carrier.pipe.take_small());
    }

    /// Removes a stream that could receive something and is over.
    pub(in crate::http2) fn received(&self, stream: u32) {
        self.streams.receiving.lock().remove(&stream);
    }

    /// Bytes of responses that may be taken now.
    pub(in crate::http2) fn room(&self) -> usize {
        UNSENT_BYTES.saturating_sub(self.carrier.pipe.unsent.total())
    }

    /// Notes that a piece of a response is small because of a window.
    pub(in crate::http2) fn cut(&self) {
        self.carrier.pipe.cut();
    }

    /// Counts bytes that a stream has given, before `h2` has them.
    pub(in crate::http2) fn took(&self, stream: u32, bytes: usize) {
        self.carrier.pipe.unsent.add(stream, bytes);
    }

    /// Forgets the bytes of a stream that will not be sent.
    pub(in crate::http2) fn lost(&self, stream: u32) {
        self.carrier.pipe.unsent.drop_stream(stream);
    }

    /// Adds a stream that a thread or the poller waits for.
    pub(in crate::http2) fn watch(&self, stream: Arc<StreamSocket>) {
        let id = stream.id();
        self.streams.watched.lock().insert(id, stream);
    }

    pub(in crate::http2) fn unwatch(&self, id: u32) {
        let stream = self.streams.watched.lock().remove(&id);
        drop(stream);
    }

    /// Events of the streams that a thread or the poller waits for.
    pub(crate) fn due(&self) -> Vec<(Key, Happened)> {
        self.streams.due()
    }

    /// Makes the poller look at the streams in its next turn.
    pub(crate) fn look_later(&self) {
        self.streams.look_later(&self.carrier.worker);
    }

    /// The poller is about to look at the streams. Returns true if they have to be looked at without an event of the socket.
    pub(crate) fn begin_look(&self) -> bool {
        self.streams.looks_later.swap(false, SeqCst)
    }

    /// The list does not have the connection any more.
    pub(in crate::http2) fn is_not_listed(&self) {
        self.streams.is_listed.store(false, SeqCst);
    }
}

impl Eased for Http2Connection {
    fn eased(&self) {
        self.look_later();
    }
}
