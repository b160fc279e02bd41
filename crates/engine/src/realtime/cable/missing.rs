//! Messages from before the start of a stream, for a client that asks for them after later ones.

use super::stream::Stream;
use super::streams::Streams;
use crate::pubsub::Position;
use crate::realtime::client::Client;
use crate::realtime::Realtime;
use std::sync::Arc;

impl Stream {
    /// Sends the messages after a position, up to an offset. Returns the number of them; `None` if some are lost.
    fn send_missing(&self, client: &Client, realtime: &Realtime, since: Position, until: u64) -> Option<usize> {
        let past = self.past(realtime.hub.history()?, realtime, since, until)?;
        let (frames, _) = self.past_frames(client, &past, since);
        let outbox = client.outbox.lock();
        if client.is_behind(&outbox) {
            client.overflow(outbox);
            return None;
        }
        if !client.is_open() {
            return None;
        }
        client.send_past(outbox, frames);
        Some(past.len())
    }
}

impl Client {
    /// Sends the messages of a stream after a position, up to an offset. Returns the number of them; `None` if some are lost,
    /// or there is no such stream. May copy all of the history, so it should run without the lock of the language.
    pub fn send_missing(&self, channel: &[u8], identifier: &str, since: Position, until: u64) -> Option<usize> {
        let realtime = self.realtime.upgrade()?;
        let find = |streams: &mut Streams| streams.find(identifier, channel).map(Arc::clone);
        let stream = self.subscriptions.with_streams(find)?;
        stream.send_missing(self, &realtime, since, until)
    }
}
