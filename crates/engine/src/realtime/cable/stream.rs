//! One channel of the hub that a client receives under one identifier.

use super::frames::{self, Forms};
use super::identifiers::Identifier;
use super::streams::StreamOptions;
use crate::observe::excess::About;
use crate::pubsub::{Delivery, Kept, Owner, Past, Position, Publication, Since, Subscriber};
use crate::realtime::client::{next_id, Client};
use crate::realtime::encoder::Encoded;
use crate::realtime::encoding;
use crate::realtime::frames::Frame;
use crate::realtime::outbox::Outbox;
use crate::realtime::Realtime;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The offset of a stream that waits for its past messages: all new ones are among them.
const WAITS: u64 = u64::MAX;

/// See the head of this file.
pub(crate) struct Stream {
    pub(super) id: u64,
    client: Weak<Client>,
    owner: Owner,
    pub(super) channel: Box<[u8]>,
    pub(super) identifier: Arc<Identifier>,
    pub(super) options: StreamOptions,
    /// Messages of the history up to this offset are not delivered. Changed with the outbox locked.
    after: AtomicU64,
}

impl Stream {
    pub(super) fn new(
        client: &Arc<Client>,
        channel: &[u8],
        identifier: Arc<Identifier>,
        options: StreamOptions,
    ) -> Arc<Stream> {
        Arc::new(Stream {
            id: next_id(),
            client: Arc::downgrade(client),
            owner: client.owner,
            channel: channel.into(),
            identifier,
            options,
            after: AtomicU64::new(if options.since.is_some() { WAITS } else { 0 }),
        })
    }

    /// Sends the messages since a position, and lets later messages pass. Returns the number of them; `None` if some are
    /// lost.
    pub(super) fn catch_up(&self, client: &Client, realtime: &Realtime, since: Position) -> Option<usize> {
        let outbox = client.outbox.lock();
        // With the outbox locked, no later message can come first.
        let past = self.past(realtime, since);
        let newest = past
            .as_ref()
            .map(|past| past.last().map_or(since.offset, |newest| newest.offset));
        self.after.store(newest.unwrap_or(0), Relaxed);
        let past = past.filter(|_| client.is_open())?;
        let whole = past.iter().filter(|past| frames::is_json(&past.message));
        client.send_past(outbox, whole.map(|past| frames::past_text(self, past, since.epoch)));
        Some(past.len())
    }

    fn past(&self, realtime: &Realtime, since: Position) -> Option<Vec<Past>> {
        let config = &realtime.worker.config;
        let kept = Kept {
            messages: config.history_messages,
            time: config.history_time,
        };
        match realtime.hub.history()?.since(&self.channel, since, kept) {
            Since::All(past) => Some(past),
            Since::Lost => None,
        }
    }

    /// Returns true if a message has not been delivered, and must be.
    fn is_new(&self, publication: &Publication, _outbox: &Outbox) -> bool {
        match publication.position {
            Some(position) => position.offset > self.after.load(Relaxed),
            None => true,
        }
    }
}

impl Subscriber for Stream {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
        let Some(client) = self.client.upgrade() else {
            return false;
        };
        let outbox = client.outbox.lock();
        if !client.is_open() || !self.is_new(publication, &outbox) {
            return false;
        }
        let forms: &Forms = publication.derived(Forms::of);
        if !forms.is_json {
            drop(outbox);
            client.drop_message_that_is_no_json(&self.channel);
            return false;
        }
        let text = || frames::text(self, &publication.message, publication.position);
        let is_shared = Arc::strong_count(&self.identifier) > 1;
        let window = client.encoder.shared_window(publication.message.len());
        let encoded = match window.filter(|_| is_shared) {
            Some(bits) => {
                let form = forms.shared(self, bits, || encoding::text(&text(), bits));
                Encoded::alone(Frame::Shared(form))
            }
            None => client.encoder.text(&text()),
        };
        client.deliver_encoded(outbox, encoded)
    }

    fn flush(&self) {
        if let Some(client) = self.client.upgrade() {
            client.flush();
        }
    }

    fn is_open(&self) -> bool {
        self.client.upgrade().is_some_and(|client| client.is_open())
    }

    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }

    fn owner_name(&self) -> String {
        let client = self.client.upgrade();
        client.map_or_else(String::new, |client| client.owner_name())
    }

    fn give_way(&self, option: &'static str) {
        if let Some(client) = self.client.upgrade() {
            client.give_subscriptions_up(option);
        }
    }
}

impl Client {
    /// Logs a message that cannot be part of a frame. Rails fails to decode it, too, and delivers it to nobody.
    fn drop_message_that_is_no_json(&self, channel: &[u8]) {
        if let Some(realtime) = self.realtime.upgrade() {
            realtime.worker.counters().dropped.fetch_add(1, Relaxed);
            realtime.worker.log.about_peer(
                About::Client,
                self.peer,
                format_args!(
                    "dropping a message of the stream {}: it is not JSON",
                    channel.escape_ascii()
                ),
            );
        }
    }
}
