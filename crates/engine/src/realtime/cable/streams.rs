//! The streams of one client, by the identifier of their subscription.

use super::stream::Stream;
use crate::pubsub::{Delivery, Full, Hub, Match, PagePosition, Position, Subscriber, Totals};
use crate::realtime::client::Client;
use crate::realtime::migration::SavedStream;
use crate::realtime::Realtime;
use std::collections::HashMap;
use std::sync::Arc;

/// The place in the history from which on a client gets messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// After this position.
    Position(Position),
    /// After the messages that this page has received.
    Page(PagePosition),
    /// The client has named a position that was not made here: its messages are lost.
    Unknown,
}

/// The properties of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Messages of the history from here on are delivered first.
    pub since: Option<StreamStart>,
    /// Frames have the id of the stream and the position (`actioncable-v1-ext-json`).
    pub extended: bool,
    /// The subscription is confirmed here, and not by the application.
    pub confirmed: bool,
    /// There is no stream if messages of the history are lost.
    pub is_whole: bool,
    /// Without an identifier: a WebSocket gets text, and not bytes.
    pub is_text: bool,
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
    /// Streams without an identifier, by channel.
    plain: HashMap<Box<[u8]>, Arc<Stream>>,
    count: usize,
    /// Bytes of all identifiers.
    bytes: usize,
}

impl Streams {
    pub(in crate::realtime) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of all identifiers, if there is a new one with this text.
    fn bytes_with(&self, identifier: &str) -> usize {
        let is_known = self.by_identifier.contains_key(identifier);
        self.bytes + if is_known { 0 } else { identifier.len() }
    }

    /// Returns true if the subscription with this identifier was confirmed here.
    fn has_confirmed(&self, identifier: &str) -> bool {
        let streams = self.by_identifier.get(identifier);
        streams.is_some_and(|streams| streams.iter().any(|stream| stream.options.confirmed))
    }

    /// The identifiers of these subscriptions.
    pub(super) fn confirmed(&self) -> Vec<String> {
        let is_confirmed = |streams: &[Arc<Stream>]| streams.iter().any(|stream| stream.options.confirmed);
        let all = self.by_identifier.iter();
        all.filter(|(_, streams)| is_confirmed(streams))
            .map(|(identifier, _)| identifier.to_string())
            .collect()
    }

    /// The stream of a channel with this identifier.
    pub(super) fn find(&self, identifier: &str, channel: &[u8]) -> Option<&Arc<Stream>> {
        let streams = self.by_identifier.get(identifier)?;
        streams.iter().find(|stream| *stream.channel == *channel)
    }

    /// Subscribes a stream to its channel, in place of the same one. Returns the number of subscribers of the channel in this
    /// process.
    pub(in crate::realtime) fn add(&mut self, stream: &Arc<Stream>, hub: &Hub, totals: Totals) -> Result<usize, Full> {
        let subscriber = Arc::clone(stream) as Arc<dyn Subscriber>;
        match &stream.identifier {
            Some(identifier) => self.remove(hub, identifier.text(), &stream.channel),
            None => self.remove_plain(hub, &stream.channel),
        };
        let count = hub.subscribe_within(subscriber, &stream.channel, Match::Exact, Delivery::Text, totals)?;
        let added = Arc::clone(stream);
        if let Some(identifier) = &stream.identifier {
            self.bytes = self.bytes_with(identifier.text());
        }
        match &stream.identifier {
            Some(identifier) => self
                .by_identifier
                .entry(identifier.text().into())
                .or_default()
                .push(added),
            None => drop(self.plain.insert(stream.channel.clone(), added)),
        }
        self.count += 1;
        Ok(count)
    }

    /// Ends a stream without an identifier; as [`Streams::remove`].
    pub(in crate::realtime) fn remove_plain(&mut self, hub: &Hub, channel: &[u8]) -> Option<usize> {
        let stream = self.plain.remove(channel)?;
        self.count -= 1;
        hub.unsubscribe(stream.id, channel)
    }

    /// Ends a stream. Returns the number of subscribers of the channel that are left in this process; `None` if there was
    /// no such stream.
    fn remove(&mut self, hub: &Hub, identifier: &str, channel: &[u8]) -> Option<usize> {
        let streams = self.by_identifier.get_mut(identifier)?;
        let index = streams.iter().position(|stream| *stream.channel == *channel)?;
        let stream = streams.swap_remove(index);
        if streams.is_empty() {
            self.by_identifier.remove(identifier);
            self.bytes -= identifier.len();
        }
        self.count -= 1;
        hub.unsubscribe(stream.id, channel)
    }

    /// Ends the streams of an identifier. Returns the channels that have no subscriber left in this process.
    fn remove_identifier(&mut self, hub: &Hub, identifier: &str) -> Vec<Box<[u8]>> {
        let streams = self.by_identifier.remove(identifier).unwrap_or_default();
        self.count -= streams.len();
        self.bytes -= if streams.is_empty() { 0 } else { identifier.len() };
        unsubscribe(hub, streams)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Stream>> {
        self.by_identifier.values().flatten().chain(self.plain.values())
    }

    /// The channels of all streams.
    pub(in crate::realtime) fn channels(&self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        self.all().map(|stream| stream.channel.clone())
    }

    /// The streams of a channel.
    pub(in crate::realtime) fn of(&self, channel: &[u8]) -> Vec<Arc<Stream>> {
        self.all()
            .filter(|stream| *stream.channel == *channel)
            .cloned()
            .collect()
    }

    /// The states of all streams, for another process.
    pub(in crate::realtime) fn save(&self) -> Vec<SavedStream> {
        self.all().map(|stream| stream.save()).collect()
    }

    /// Ends the streams that come from another process, and that the app has not asked for. Returns the same as
    /// [`Streams::remove_all`].
    pub(in crate::realtime) fn remove_unclaimed(&mut self, hub: &Hub) -> Vec<Box<[u8]>> {
        let unclaimed: Vec<_> = self.all().filter(|stream| stream.is_unclaimed()).cloned().collect();
        let ended = unclaimed.iter().filter(|stream| {
            let left = match &stream.identifier {
                Some(identifier) => self.remove(hub, identifier.text(), &stream.channel),
                None => self.remove_plain(hub, &stream.channel),
            };
            left == Some(0)
        });
        ended.map(|stream| stream.channel.clone()).collect()
    }

    /// Ends all streams; returns the same.
    pub(in crate::realtime) fn remove_all(&mut self, hub: &Hub) -> Vec<Box<[u8]>> {
        (self.count, self.bytes) = (0, 0);
        let all = std::mem::take(&mut self.by_identifier);
        let plain = std::mem::take(&mut self.plain);
        unsubscribe(hub, all.into_values().flatten().chain(plain.into_values()))
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
        if !self.is_web_socket() {
            return None;
        }
        self.add_stream(channel, Some(identifier), options)
    }

    /// Delivers the messages of a channel as they are, the messages of the history first. The result is as above; also `None`
    /// for a second channel of an event stream, which has one last event id.
    pub fn subscribe_since(&self, channel: &[u8], options: StreamOptions) -> Option<(usize, Streamed)> {
        let has_other = |streams: &mut Streams| streams.plain.keys().any(|name| **name != *channel);
        if !self.is_web_socket() && self.subscriptions.with_streams(has_other) {
            return None;
        }
        self.add_stream(channel, None, options)
    }

    fn add_stream(
        &self,
        channel: &[u8],
        identifier: Option<&str>,
        options: StreamOptions,
    ) -> Option<(usize, Streamed)> {
        let realtime = self.realtime.upgrade().filter(|_| self.is_here())?;
        if let Some(count) = self.claim_stream(channel, identifier, options, &realtime) {
            return Some((count, Streamed::After(0)));
        }
        let bytes = identifier.map(|text| self.subscriptions.with_streams(|streams| streams.bytes_with(text)));
        if bytes.is_some_and(|bytes| bytes > self.most_bytes()) {
            self.refuse_identifier(&realtime);
            return None;
        }
        let identifier = identifier.map(|text| realtime.identifiers.get(text));
        let stream = Stream::new(&self.me.upgrade()?, channel, identifier, options);
        let count = self.subscribe_stream(&stream, &realtime)?;
        if let Some(identifier) = stream.identifier.as_ref().filter(|_| options.confirmed) {
            self.reply(identifier.text(), "confirm_subscription");
        }
        let streamed = match options.since {
            None => Streamed::After(0),
            Some(start) => match stream.catch_up(self, &realtime, start) {
                Some(count) => Streamed::After(count),
                None => Streamed::Lost,
            },
        };
        if options.is_whole && streamed == Streamed::Lost {
            let identifier = stream.identifier.as_ref().map_or("", |identifier| identifier.text());
            self.subscriptions
                .with_streams(|streams| streams.remove(&realtime.hub, identifier, channel));
        }
        self.send_position(&stream);
        Some((count, streamed))
    }

    /// The app asks for a stream that another process has had. Returns the number of subscribers of the channel in this
    /// process; `None` if there is no such stream.
    fn claim_stream(
        &self,
        channel: &[u8],
        identifier: Option<&str>,
        options: StreamOptions,
        realtime: &Realtime,
    ) -> Option<usize> {
        self.subscriptions.with_streams(|streams| {
            let stream = match identifier {
                Some(text) => streams.find(text, channel)?,
                None => streams.plain.get(channel)?,
            };
            let is_same = stream.options.extended == options.extended;
            (is_same && stream.claim()).then(|| realtime.hub.subscribers(channel))
        })
    }

    /// Restores a stream that another process has had. Returns false if there are too many subscriptions.
    pub(in crate::realtime) fn restore_stream(&self, saved: &SavedStream, realtime: &Realtime) -> bool {
        let identifier = saved.identifier.as_deref().map(|text| realtime.identifiers.get(text));
        let Some(me) = self.me.upgrade() else { return false };
        let stream = Stream::restored(&me, saved, identifier);
        self.subscribe_stream(&stream, realtime).is_some()
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

    /// Returns true if the subscription with this identifier was confirmed here, and not by the application.
    pub(super) fn has_confirmed(&self, identifier: &str) -> bool {
        self.subscriptions
            .with_streams(|streams| streams.has_confirmed(identifier))
    }

    /// Ends a subscription that was confirmed here; false if there is none.
    pub(super) fn unsubscribe_signed(&self, identifier: &str) -> bool {
        let confirmed = self.has_confirmed(identifier);
        if confirmed {
            // The application was not told of these channels.
            drop(self.unstream_all(identifier));
        }
        confirmed
    }

    /// Sends the pings of Action Cable until the client ends.
    pub fn send_cable_pings(&self) {
        if let (Some(realtime), Some(client)) = (self.realtime.upgrade(), self.me.upgrade()) {
            self.subscriptions.note_pings();
            realtime.hub.subscribe_to_beat(client, &super::PINGS);
        }
    }
}
