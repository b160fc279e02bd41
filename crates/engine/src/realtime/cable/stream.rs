//! One channel of the hub that a client receives: in the frames of Action Cable under one identifier, or as it is.

use super::frames::{self, Forms};
use super::identifiers::Identifier;
use super::streams::{StreamOptions, StreamStart};
use crate::observe::excess::About;
use crate::pubsub::{Delivery, History, Kept, Owner, Past, Position, Publication, Since, Subscriber};
use crate::realtime::client::{next_id, Client, Protocol};
use crate::realtime::encoder::Encoded;
use crate::realtime::encoding;
use crate::realtime::frames::Frame;
use crate::realtime::migration::SavedStream;
use crate::realtime::outbox::Outbox;
use crate::realtime::Realtime;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Close code of a server that cannot continue for now (registered with IANA).
const TRY_AGAIN_LATER: u16 = 1013;

/// The offset of a stream that waits for its past messages: all new ones are among them.
const WAITS: u64 = u64::MAX;

/// See the head of this file.
pub(crate) struct Stream {
    pub(super) id: u64,
    client: Weak<Client>,
    owner: Owner,
    pub(in crate::realtime) channel: Box<[u8]>,
    /// `None`: messages are sent as they are.
    pub(in crate::realtime) identifier: Option<Arc<Identifier>>,
    pub(super) options: StreamOptions,
    /// Messages of the history up to this offset are not delivered. Changed with the outbox locked.
    after: AtomicU64,
    /// It comes from another process, and the app has not asked for it in this one.
    is_restored: AtomicBool,
}

impl Stream {
    pub(super) fn new(
        client: &Arc<Client>,
        channel: &[u8],
        identifier: Option<Arc<Identifier>>,
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
            is_restored: AtomicBool::new(false),
        })
    }

    /// The stream of another process.
    pub(super) fn restored(
        client: &Arc<Client>,
        saved: &SavedStream,
        identifier: Option<Arc<Identifier>>,
    ) -> Arc<Stream> {
        Arc::new(Stream {
            id: next_id(),
            client: Arc::downgrade(client),
            owner: client.owner,
            channel: saved.channel.clone(),
            identifier,
            options: saved.options,
            after: AtomicU64::new(saved.after),
            is_restored: AtomicBool::new(true),
        })
    }

    /// Its state, for another process.
    pub(super) fn save(&self) -> SavedStream {
        SavedStream {
            channel: self.channel.clone(),
            identifier: self.identifier.as_ref().map(|identifier| identifier.text().into()),
            options: self.options,
            after: self.after.load(Relaxed),
        }
    }

    /// The app asks for the stream. Returns false unless it comes from another process, and this is the first time.
    pub(super) fn claim(&self) -> bool {
        self.is_restored.swap(false, Relaxed)
    }

    /// True if it comes from another process, and the app has not asked for it.
    pub(super) fn is_unclaimed(&self) -> bool {
        self.is_restored.load(Relaxed)
    }

    /// Sends the messages since a position, and lets later messages pass. Returns the number of them; `None` if some are
    /// lost. May copy all of the history, so it should run without the lock of the language.
    pub(super) fn catch_up(&self, client: &Client, realtime: &Realtime, start: StreamStart) -> Option<usize> {
        let history = realtime.hub.history();
        let since = history.and_then(|history| self.position(history, start));
        let past = since
            .zip(history)
            .and_then(|(since, history)| self.past(history, realtime, since, u64::MAX));
        // Most frames are made before the outbox is locked: the dispatcher must not wait for that.
        let (mut frames, newest) = match (&past, since) {
            (Some(past), Some(since)) => self.past_frames(client, past, since),
            _ => (Vec::new(), since),
        };
        let outbox = client.outbox.lock();
        if client.is_behind(&outbox) {
            self.begin_without_past(history);
            client.overflow(outbox);
            return None;
        }
        // With the outbox locked, no later message can come first.
        let rest = newest
            .zip(history)
            .and_then(|(newest, history)| self.past(history, realtime, newest, u64::MAX));
        let (Some(past), Some(rest), Some(newest)) = (past, rest, newest) else {
            self.begin_without_past(history);
            return None;
        };
        let (last_frames, newest) = self.past_frames(client, &rest, newest);
        frames.extend(last_frames);
        let newest = newest.map_or(0, |newest| newest.offset);
        self.after.store(newest, Relaxed);
        if !client.is_open() {
            return None;
        }
        let count = past.len() + rest.len();
        self.note(client, (count > 0).then_some(newest));
        // In one write with the messages, so that a client seldom has one without the other.
        frames.extend(client.receipts.ping().map(Frame::Own));
        client.send_past(outbox, frames);
        Some(count)
    }

    /// Lets messages pass from now on, although past ones are lost. To be called with the outbox locked.
    fn begin_without_past(&self, history: Option<&History>) {
        if !self.options.is_whole {
            let newest = history.map_or(0, |history| history.position().offset);
            self.after.store(newest, Relaxed);
        }
    }

    /// The frames of past messages, and the position after them.
    pub(super) fn past_frames(
        &self,
        client: &Client,
        past: &[Past],
        since: Position,
    ) -> (Vec<Frame>, Option<Position>) {
        let frames = past
            .iter()
            .filter_map(|past| self.past_frame(client, past, since.epoch));
        let offset = past.last().map_or(since.offset, |newest| newest.offset);
        (frames.collect(), Some(Position { offset, ..since }))
    }

    /// Tells an event stream its position: the browser sends it again, even if there was no event yet.
    fn position_event(&self, client: &Client, realtime: &Realtime) -> Option<Vec<u8>> {
        let Protocol::EventStream { chunked } = client.protocol() else {
            return None;
        };
        let (offset, epoch) = (self.after.load(Relaxed), realtime.hub.history()?.epoch());
        let known = (offset > 0).then_some(Position { epoch, offset });
        Some(encoding::position(
            known.or_else(|| Some(realtime.hub.history()?.position()))?,
            chunked,
        ))
    }

    fn position(&self, history: &History, start: StreamStart) -> Option<Position> {
        match start {
            StreamStart::Position(position) => Some(position),
            StreamStart::Page(page) => history.resume(page),
            StreamStart::Unknown => None,
        }
    }

    /// Notes a message for the page of this stream, if it has one.
    fn note(&self, client: &Client, offset: Option<u64>) {
        if let (Some(StreamStart::Page(page)), Some(offset)) = (self.options.since, offset) {
            client.receipts.sent(page.page, offset);
        }
    }

    pub(super) fn past(
        &self,
        history: &History,
        realtime: &Realtime,
        since: Position,
        until: u64,
    ) -> Option<Vec<Past>> {
        let config = &realtime.worker.config;
        let kept = Kept {
            messages: config.history_messages,
            time: config.history_time,
        };
        match history.between(&self.channel, since, until, kept) {
            Since::All(past) => Some(past),
            Since::Lost => None,
        }
    }

    /// A frame that is not compressed: compressing many would take too long.
    fn past_frame(&self, client: &Client, past: &Past, epoch: u64) -> Option<Frame> {
        let offset = past.offset;
        let position = Position { epoch, offset };
        let message = &past.message;
        let bytes = match (&self.identifier, client.protocol()) {
            (Some(_), _) if !frames::is_json(message) => return None,
            (Some(identifier), _) => encoding::text(&frames::text(self, identifier, message, Some(position)), None),
            (None, Protocol::EventStream { chunked }) => encoding::positioned_event(message, position, chunked),
            (None, _) => encoding::plain(encoding::opcode(message, self.options.is_text), message),
        };
        Some(Frame::Own(bytes))
    }

    /// The frame of a publication; `None` if it cannot be part of one.
    fn frame<'a>(&self, client: &'a Client, publication: &Arc<Publication>) -> Option<Encoded<'a>> {
        let Some(identifier) = &self.identifier else {
            return Some(match (client.protocol(), publication.position) {
                (Protocol::EventStream { chunked }, Some(position)) => {
                    let forms: &Forms = publication.derived(Forms::of);
                    Encoded::alone(Frame::Shared(forms.event(&publication.message, position, chunked)))
                }
                _ if self.options.is_text => client.encoder.published(publication, Delivery::Text),
                _ => client.encoder.published(publication, Delivery::Binary),
            });
        };
        let forms: &Forms = publication.derived(Forms::of);
        if !forms.is_json(&publication.message) {
            return None;
        }
        let text = || frames::text(self, identifier, &publication.message, publication.position);
        let is_shared = Arc::strong_count(identifier) > 1;
        let window = client.encoder.shared_window(publication.message.len());
        Some(match window.filter(|_| is_shared) {
            Some(bits) => {
                let extended = self.options.extended;
                let form = forms.shared(identifier, extended, bits, || encoding::text(&text(), bits));
                Encoded::alone(Frame::Shared(form))
            }
            None if forms.may_compress() => client.encoder.text(&text()),
            None => Encoded::alone(Frame::Own(encoding::text(&text(), None))),
        })
    }

    /// Returns true if a message has not been delivered, and must be.
    fn is_new(&self, publication: &Publication, outbox: &mut Outbox) -> bool {
        let is_after = match publication.position {
            Some(position) => position.offset > self.after.load(Relaxed),
            None => true,
        };
        is_after && !outbox.has_seen(publication)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let (Some(StreamStart::Page(page)), Some(client)) = (self.options.since, self.client.upgrade()) {
            client.receipts.forget(page.page);
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
        let mut outbox = client.outbox.lock();
        if !client.is_open() || !self.is_new(publication, &mut outbox) {
            return false;
        }
        let Some(encoded) = self.frame(&client, publication) else {
            drop(outbox);
            client.drop_message_that_is_no_json(&self.channel);
            return false;
        };
        let (is_queued, must_flush) = client.deliver_encoded(outbox, encoded);
        if is_queued {
            self.note(&client, publication.position.map(|position| position.offset));
        }
        must_flush
    }

    fn flush(&self) {
        if let Some(client) = self.client.upgrade() {
            client.ask_for_receipt();
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

    /// Ends the client: when it connects again, it gets the messages, or hears that they are lost.
    fn lose(&self) {
        if let Some(client) = self.client.upgrade() {
            client.fail(client.outbox.lock(), TRY_AGAIN_LATER, "this process has lost messages");
        }
    }

    fn give_way(&self, option: &'static str) {
        if let Some(client) = self.client.upgrade() {
            client.give_subscriptions_up(option);
        }
    }
}

impl Client {
    /// Sends the position of a stream to an event stream.
    pub(super) fn send_position(&self, stream: &Stream) {
        let event = self
            .realtime
            .upgrade()
            .and_then(|realtime| stream.position_event(self, &realtime));
        let outbox = self.outbox.lock();
        if let Some(event) = event.filter(|_| self.is_open()) {
            self.send_quietly(outbox, event);
        }
    }

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
