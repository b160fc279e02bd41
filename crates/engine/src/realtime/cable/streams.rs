//! The streams of one client, by the identifier of their subscription.

use super::identifiers::Identifier;
use super::stream::Stream;
use crate::pubsub::{Delivery, Full, Hub, Match, Position, Totals};
use crate::realtime::client::Client;
use crate::realtime::Realtime;
use std::collections::HashMap;
use std::sync::Arc;

/// The properties of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Messages of the history after this position are delivered first.
    pub since: Option<Position>,
    /// Frames have the id of the stream and the position (`actioncable-v1-ext-json`).
    pub extended: bool,
}

/// The result of [`Client::stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streamed {
    /// New messages are delivered, after so many messages of the history.
    After(usize),
    /// New messages are delivered, but some since the position are lost.
    Lost,
}

/// The streams of one client.
#[derive(Default)]
pub(in crate::realtime) struct Streams {
    by_identifier: HashMap<Box<str>, Vec<Arc<Stream>>>,
    count: usize,
}

impl Streams {
    pub(in crate::realtime) fn len(&self) -> usize {
        self.count
    }

    fn find(&self, identifier: &Identifier, channel: &[u8]) -> Option<&Arc<Stream>> {
        let streams = self.by_identifier.get(identifier.text())?;
        streams.iter().find(|stream| *stream.channel == *channel)
    }

    /// Subscribes a stream to its channel. Returns the number of subscribers of the channel in this process.
    pub(in crate::realtime) fn add(&mut self, stream: &Arc<Stream>, hub: &Hub, totals: Totals) -> Result<usize, Full> {
        if let Some(former) = self.find(&stream.identifier, &stream.channel) {
            // The same again: the new stream takes over.
            let former = Arc::clone(former);
            self.remove(hub, stream.identifier.text(), &stream.channel);
            drop(former);
        }
        let subscriber = Arc::clone(stream) as Arc<dyn crate::pubsub::Subscriber>;
        let count = hub.subscribe_within(subscriber, &stream.channel, Match::Exact, Delivery::Text, totals)?;
        let streams = self.by_identifier.entry(stream.identifier.text().into()).or_default();
        streams.push(Arc::clone(stream));
        self.count += 1;
        Ok(count)
    }

    /// Ends a stream. Returns the number of subscribers of the channel that are left in this process; `None` if there was
    /// no such stream.
    fn remove(&mut self, hub: &Hub, identifier: &str, channel: &[u8]) -> Option<usize> {
        let streams = self.by_identifier.get_mut(identifier)?;
        let index = streams.iter().position(|stream| *stream.channel == *channel)?;
        let stream = streams.swap_remove(index);
        if streams.is_empty() {
            self.by_identifier.remove(identifier);
        }
        self.count -= 1;
        hub.unsubscribe(stream.id, channel)
    }

    /// Ends the streams of an identifier. Returns the channels that have no subscriber left in this process.
    fn remove_identifier(&mut self, hub: &Hub, identifier: &str) -> Vec<Box<[u8]>> {
        let streams = self.by_identifier.remove(identifier).unwrap_or_default();
        self.count -= streams.len();
        unsubscribe(hub, streams)
    }

    /// Ends all streams; returns the same.
    pub(in crate::realtime) fn remove_all(&mut self, hub: &Hub) -> Vec<Box<[u8]>> {
        self.count = 0;
        let all = std::mem::take(&mut self.by_identifier);
        unsubscribe(hub, all.into_values().flatten())
    }
}

fn unsubscribe(hub: &Hub, streams: impl IntoIterator<Item = Arc<Stream>>) -> Vec<Box<[u8]>> {
    let left = streams.into_iter();
    left.filter(|stream| hub.unsubscribe(stream.id, &stream.channel) == Some(0))
        .map(|stream| stream.channel.clone())
        .collect()
}

impl Client {
    /// Delivers the messages of a channel, as frames of Action Cable with this identifier. Returns the number of
    /// subscribers of the channel in this process, too; `None` if the client is not open, is no WebSocket, or has too many
    /// subscriptions.
    pub fn stream(&self, channel: &[u8], identifier: &str, options: StreamOptions) -> Option<(usize, Streamed)> {
        let realtime = self.realtime.upgrade()?;
        if !self.is_web_socket() {
            return None;
        }
        let identifier = realtime.identifiers.get(identifier);
        let stream = Stream::new(&self.me.upgrade()?, channel, identifier, options);
        let count = self.subscribe_stream(&stream, &realtime)?;
        let streamed = match options.since {
            None => Streamed::After(0),
            Some(since) => match stream.catch_up(self, &realtime, since) {
                Some(count) => Streamed::After(count),
                None => Streamed::Lost,
            },
        };
        Some((count, streamed))
    }

    /// Ends a stream; returns the number of subscribers of the channel that are left in this process.
    pub fn unstream(&self, channel: &[u8], identifier: &str) -> Option<usize> {
        let realtime = self.realtime.upgrade()?;
        let remove = |streams: &mut Streams| streams.remove(&realtime.hub, identifier, channel);
        self.subscriptions.with_streams(remove)
    }

    /// Ends all streams with this identifier; returns the channels that have no subscriber left in this process.
    pub fn unstream_all(&self, identifier: &str) -> Vec<Box<[u8]>> {
        let Some(realtime) = self.realtime.upgrade() else {
            return Vec::new();
        };
        let remove = |streams: &mut Streams| streams.remove_identifier(&realtime.hub, identifier);
        self.subscriptions.with_streams(remove)
    }

    /// Sends the pings of Action Cable until the client ends.
    pub fn send_cable_pings(&self) {
        if let (Some(realtime), Some(client)) = (self.realtime.upgrade(), self.me.upgrade()) {
            realtime.hub.subscribe_to_beat(client, &super::PINGS);
        }
    }

    /// Ends the pings.
    pub(in crate::realtime) fn end_cable_pings(&self, realtime: &Realtime) {
        realtime.hub.unsubscribe(self.id, super::PINGS.channel);
    }
}
