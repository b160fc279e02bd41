//! Bytes of responses that an HTTP/2 connection has taken and the transport does not have yet, by stream. `h2` keeps
//! them while the socket is full, and while a window is closed that was open when they were taken: a client may close
//! it afterwards (RFC 9113 §6.9.2). So they are counted by the bytes sent, and not by the room in the socket.

use crate::clock::Millis;
use crate::sync::Mutex;
use fairlead_wire::http2::{frame_type, FrameHead};
use std::collections::HashMap;

/// See the head of this file. Any thread may use it; no other lock is taken meanwhile.
#[derive(Default)]
pub(super) struct Unsent(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_stream: HashMap<u32, usize>,
    total: usize,
    /// All bytes of responses that were ever sent.
    sent: u64,
    /// The time since when there are unsent bytes and none was sent.
    since: Option<Millis>,
}

impl Unsent {
    /// All unsent bytes.
    pub(super) fn total(&self) -> usize {
        self.0.lock().total
    }

    /// The time since when there are unsent bytes and none was sent.
    pub(super) fn since(&self) -> Option<Millis> {
        self.0.lock().since
    }

    /// All bytes of responses that were ever sent.
    pub(super) fn all_sent(&self) -> u64 {
        self.0.lock().sent
    }

    /// Counts bytes that a stream has given.
    pub(super) fn add(&self, stream: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut inner = self.0.lock();
        *inner.by_stream.entry(stream).or_default() += bytes;
        inner.total += bytes;
        inner.since.get_or_insert_with(Millis::now);
    }

    /// Counts a frame that was sent.
    pub(super) fn sent(&self, frame: FrameHead) {
        match frame.kind {
            frame_type::DATA => {
                let mut inner = self.0.lock();
                inner.sent += frame.length as u64;
                inner.remove(frame.stream, frame.length);
            }
            frame_type::RST_STREAM => self.drop_stream(frame.stream),
            _ => {}
        }
    }

    /// Forgets the bytes of a stream that was reset: they are not sent.
    pub(super) fn drop_stream(&self, stream: u32) {
        self.0.lock().remove(stream, usize::MAX);
    }
}

impl Inner {
    fn remove(&mut self, stream: u32, most: usize) {
        let Some(left) = self.by_stream.get_mut(&stream) else {
            return;
        };
        let removed = most.min(*left);
        *left -= removed;
        if *left == 0 {
            self.by_stream.remove(&stream);
        }
        self.total -= removed;
        if removed > 0 {
            self.since = (self.total > 0).then(Millis::now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, length: usize) -> FrameHead {
        FrameHead {
            length,
            kind,
            flags: 0,
            stream,
        }
    }

    #[test]
    fn what_is_sent_or_dropped_is_not_counted_any_more() {
        let unsent = Unsent::default();
        assert_eq!((unsent.total(), unsent.since()), (0, None));
        unsent.add(1, 1_000);
        unsent.add(3, 500);
        unsent.add(1, 24);
        unsent.sent(frame(frame_type::DATA, 1, 600));
        unsent.sent(frame(1, 1, 300));
        assert_eq!((unsent.total(), unsent.all_sent()), (924, 600));
        assert!(unsent.since().is_some());
        unsent.sent(frame(frame_type::RST_STREAM, 3, 4));
        assert_eq!(unsent.total(), 424);
        unsent.drop_stream(5);
        unsent.sent(frame(frame_type::DATA, 1, 424));
        assert_eq!((unsent.total(), unsent.since()), (0, None));
        unsent.sent(frame(frame_type::DATA, 1, 9));
        assert_eq!(unsent.total(), 0);
        assert!(unsent.0.lock().by_stream.is_empty());
    }
}
