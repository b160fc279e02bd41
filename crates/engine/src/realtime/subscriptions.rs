//! The subscriptions of one client, and the messages that are published for blocks of the app.

use super::cable::{SavedReceipts, Stream, Streams, PINGS};
use super::client::Client;
use super::inbox::Event;
use super::migration::{SavedName, SavedSubscriptions};
use super::Realtime;
use crate::config::Overflow;
use crate::observe::excess::About;
use crate::pubsub::{Delivery, Full, Hub, Match, Most, Publication, Subscriber, Totals};
use crate::sync::Mutex;
use fairlead_wire::pattern::Pattern;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Close code of a server that cannot continue for now (registered with IANA).
const TRY_AGAIN_LATER: u16 = 1013;

/// Most clients that give way to one subscription. A client may leave only patterns that other clients have, too, so
/// that several have to go.
const MOST_AT_A_TIME: usize = 8;

const LAG: &str = "the application does not keep up with messages for its blocks";

/// The limit that refuses a subscription.
enum Limit {
    /// `max_subscriptions`.
    Own,
    /// `client_pending_bytes`, for the identifiers of streams.
    Identifiers,
    /// A total of the process: its option, and the owner with the most.
    Total(&'static str, Option<Most>),
}

impl From<Full> for Limit {
    fn from(full: Full) -> Limit {
        match full {
            Full::Subscriptions(most) => Limit::Total("max_subscriptions_total", most),
            Full::Patterns(most) => Limit::Total("max_patterns", most),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (option, most) = match self {
            Limit::Own => ("max_subscriptions", None),
            Limit::Identifiers => ("client_pending_bytes, by identifiers,", None),
            Limit::Total(option, most) => (*option, most.as_ref()),
        };
        write!(out, "{option} is reached")?;
        match most {
            Some(most) => write!(out, "; {} has the most, {}", most.subscriber.owner_name(), most.count),
            None => Ok(()),
        }
    }
}

/// The subscriptions of one client.
#[derive(Default)]
pub(super) struct Subscriptions {
    names: Mutex<Names>,
    /// The app does not keep up with messages for its blocks, and that was logged.
    lags: AtomicBool,
}

#[derive(Default)]
struct Names {
    plain: HashMap<Box<[u8]>, Name>,
    /// Streams of Action Cable.
    streams: Streams,
    /// Names without a subscriber in this process since this client gave way: the end of the client reports them.
    left: Vec<Box<[u8]>>,
    /// A refusal was logged since the last subscription that was not refused.
    is_refused: bool,
    /// The client gets the pings of Action Cable.
    has_pings: bool,
}

/// A subscription to a name or a pattern.
#[derive(Clone, Copy)]
struct Name {
    /// The id that its events carry: 0 if there never was a block. A name keeps its id, so that waiting messages find a
    /// block after another subscription to the name.
    id: u64,
    kind: Match,
    delivery: Delivery,
    /// It comes from another process, and the app has not asked for it in this one.
    is_restored: bool,
    /// It had a block in another process, and has none here. Messages for the block may wait, so all later ones wait behind them.
    is_queued: bool,
}

impl Name {
    /// Returns true if messages wait for the turn of the client.
    fn waits(&self) -> bool {
        self.is_queued || matches!(self.delivery, Delivery::Event(_))
    }
}

/// See [`Subscriptions::subscribed`].
#[derive(Default)]
pub(super) struct SubscribedNames {
    exact: HashSet<Box<[u8]>>,
    patterns: Vec<Pattern>,
}

impl SubscribedNames {
    /// True if a subscription is for this channel.
    pub(super) fn has(&self, channel: &[u8]) -> bool {
        self.exact.contains(channel) || self.patterns.iter().any(|pattern| pattern.matches(channel))
    }
}

/// The limits of all subscriptions of the process.
fn totals(realtime: &Realtime) -> Totals {
    Totals {
        subscriptions: realtime.worker.config.max_subscriptions_total,
        patterns: realtime.worker.config.max_patterns,
    }
}

impl Names {
    /// The number of subscriptions.
    fn len(&self) -> usize {
        self.plain.len() + self.streams.len()
    }
}

impl Subscriptions {
    /// Adds a subscription, unless a limit is reached. Returns the number of subscribers of this name in this process,
    /// and the id that the events carry; `None` if the subscriber is not open.
    fn add(
        &self,
        subscriber: Arc<Client>,
        realtime: &Realtime,
        name: &[u8],
        kind: Match,
        delivery: Delivery,
    ) -> Option<Result<(usize, u64), Limit>> {
        let config = &realtime.worker.config;
        let mut names = self.names.lock();
        if !subscriber.is_open() {
            return None;
        }
        let own = match delivery {
            Delivery::Event(id) => id,
            _ => 0,
        };
        let former = names.plain.get(name).copied();
        let known = former.map(|known| known.id);
        let most = config.max_subscriptions;
        if known.is_none() && most > 0 && names.len() >= most {
            return Some(Err(Limit::Own));
        }
        let id = known.filter(|id| *id != 0).unwrap_or(own);
        let waited = former.is_some_and(|former| (former.is_restored || former.is_queued) && former.waits());
        let (delivery, is_queued) = match delivery {
            Delivery::Event(_) => (Delivery::Event(id), false),
            direct => (direct, waited),
        };
        let way = if is_queued { Delivery::Event(id) } else { delivery };
        let totals = totals(realtime);
        let subscribed = realtime.hub.subscribe_within(subscriber, name, kind, way, totals);
        if subscribed.is_ok() {
            names.streams.remove_plain(&realtime.hub, name);
            names.is_refused &= known.is_some();
            let subscription = Name {
                id,
                kind,
                delivery,
                is_restored: false,
                is_queued,
            };
            match names.plain.get_mut(name) {
                Some(known) => *known = subscription,
                None => _ = names.plain.insert(name.into(), subscription),
            }
        }
        Some(subscribed.map(|count| (count, id)).map_err(Limit::from))
    }

    /// Adds a stream, unless a limit is reached. The result is as above.
    fn add_stream(
        &self,
        subscriber: &Client,
        realtime: &Realtime,
        stream: &Arc<Stream>,
    ) -> Option<Result<usize, Limit>> {
        let most = realtime.worker.config.max_subscriptions;
        let mut names = self.names.lock();
        if !subscriber.is_open() {
            return None;
        }
        if most > 0 && names.len() >= most {
            return Some(Err(Limit::Own));
        }
        let added = names.streams.add(stream, &realtime.hub, totals(realtime));
        if added.is_ok() && stream.identifier.is_none() && names.plain.remove(&stream.channel).is_some() {
            realtime.hub.unsubscribe(subscriber.id, &stream.channel);
        }
        names.is_refused &= added.is_err();
        Some(added.map_err(Limit::from))
    }

    pub(super) fn with_streams<R>(&self, change: impl FnOnce(&mut Streams) -> R) -> R {
        change(&mut self.names.lock().streams)
    }

    /// Notes a refusal. Returns true if it has to be logged.
    fn refuse(&self) -> bool {
        !std::mem::replace(&mut self.names.lock().is_refused, true)
    }

    /// Ends a subscription. Returns the number of subscribers of this name left in this process, and the id of its
    /// events; `None` if there was no subscription.
    fn remove(&self, subscriber: u64, hub: &Hub, name: &[u8]) -> Option<(usize, u64)> {
        let mut names = self.names.lock();
        let Some(Name { id, .. }) = names.plain.remove(name) else {
            return names.streams.remove_plain(hub, name).map(|left| (left, 0));
        };
        hub.unsubscribe(subscriber, name).map(|left| (left, id))
    }

    /// Ends all subscriptions; returns the names that have no subscriber left in this process.
    pub(super) fn remove_all(&self, subscriber: u64, hub: &Hub) -> Vec<Box<[u8]>> {
        let mut names = self.names.lock();
        let (plain, mut left) = (take(&mut names.plain), take(&mut names.left));
        let mut streams = take(&mut names.streams);
        drop(names);
        left.extend(streams.remove_all(hub));
        hub.unsubscribe(subscriber, PINGS.channel);
        let plain = plain.into_keys();
        left.extend(plain.filter(|name| hub.unsubscribe(subscriber, name) == Some(0)));
        left
    }

    /// Notes that the client gets the pings of Action Cable.
    pub(super) fn note_pings(&self) {
        self.names.lock().has_pings = true;
    }

    /// True if the client has any.
    pub(super) fn are_there(&self) -> bool {
        let names = self.names.lock();
        !names.plain.is_empty() || names.streams.channels().next().is_some()
    }

    /// Their state, for another process.
    pub(super) fn save(&self) -> SavedSubscriptions {
        let names = self.names.lock();
        let plain = names.plain.iter().map(|(text, name)| SavedName {
            text: text.clone(),
            kind: name.kind,
            delivery: name.delivery,
            id: name.id,
        });
        SavedSubscriptions {
            names: plain.collect(),
            streams: names.streams.save(),
            has_pings: names.has_pings,
            receipts: SavedReceipts::default(),
        }
    }

    /// Marks a subscription as one of another process.
    fn note_restored(&self, name: &[u8], id: u64) {
        if let Some(known) = self.names.lock().plain.get_mut(name) {
            (known.is_restored, known.id) = (true, id);
        }
    }

    /// The way in which a message of the channel is delivered to the client, for each of its subscriptions; and its streams.
    pub(super) fn of(&self, channel: &[u8]) -> (Vec<Delivery>, Vec<Arc<Stream>>) {
        let names = self.names.lock();
        let exact = names.plain.get(channel).filter(|name| name.kind == Match::Exact);
        let patterns = names.plain.iter().filter(|(_, name)| name.kind != Match::Exact);
        let patterns = patterns.filter(|(text, name)| match Pattern::new(text, name.kind) {
            Some(pattern) => pattern.matches(channel),
            None => ***text == *channel,
        });
        let all = exact.into_iter().chain(patterns.map(|(_, name)| name));
        (all.map(|name| name.delivery).collect(), names.streams.of(channel))
    }

    /// The way in which a message reaches the client itself that has waited for a block with this id; nothing if the subscription has ended,
    /// or has a block.
    fn without_block(&self, id: u64, channel: &[u8]) -> Option<Delivery> {
        let names = self.names.lock();
        let is_meant = |name: &&Name| name.id == id;
        let exact = names.plain.get(channel).filter(is_meant);
        let name = exact.or_else(|| names.plain.values().find(is_meant))?;
        (!matches!(name.delivery, Delivery::Event(_))).then_some(name.delivery)
    }

    /// The names and patterns of all subscriptions, to look many channels up.
    pub(super) fn subscribed(&self) -> SubscribedNames {
        let names = self.names.lock();
        let plain = names.plain.iter().map(|(text, name)| (text.clone(), name.kind));
        let streams = names.streams.channels().map(|channel| (channel, Match::Exact));
        let mut all = SubscribedNames::default();
        for (text, kind) in plain.chain(streams) {
            match Pattern::new(&text, kind) {
                Some(pattern) => all.patterns.push(pattern),
                None => _ = all.exact.insert(text),
            }
        }
        all
    }

    /// The largest number of a block.
    fn largest_block(&self) -> u64 {
        self.names
            .lock()
            .plain
            .values()
            .map(|name| name.id)
            .max()
            .unwrap_or_default()
    }

    /// Ends the subscriptions of another process that the app has not asked for in this one. Returns the names that have no
    /// subscriber left in this process.
    fn remove_unclaimed(&self, subscriber: u64, hub: &Hub) -> Vec<Box<[u8]>> {
        let mut names = self.names.lock();
        let mut left = names.streams.remove_unclaimed(hub);
        names.plain.retain(|text, name| {
            if name.is_restored && hub.unsubscribe(subscriber, text) == Some(0) {
                left.push(text.clone());
            }
            !name.is_restored
        });
        left
    }

    /// Keeps names without a subscriber for the end of the client.
    pub(super) fn keep_left(&self, left: Vec<Box<[u8]>>) {
        self.names.lock().left.extend(left);
    }

    /// Notes that a message for a block is dropped. Returns true if that has to be logged.
    fn lag(&self) -> bool {
        !self.lags.swap(true, Relaxed)
    }

    /// Notes that the app has caught up.
    fn catch_up(&self) {
        self.lags.store(false, Relaxed);
    }
}

impl Client {
    /// Subscribes to a channel, or to all channels that match a pattern. Returns the number of subscribers of this name
    /// in this process, and the id that the events carry, which stays the same if the client had subscribed to this
    /// name before; `None` if the client is not open, or there are too many subscriptions.
    ///
    /// If a total is used up, and an address has much more of it than this client's address, the largest client of that
    /// address gives way.
    pub fn subscribe(&self, name: &[u8], kind: Match, delivery: Delivery) -> Option<(usize, u64)> {
        match self.is_here() {
            true => self.subscribe_now(name, kind, delivery),
            false => None,
        }
    }

    fn subscribe_now(&self, name: &[u8], kind: Match, delivery: Delivery) -> Option<(usize, u64)> {
        let realtime = self.realtime.upgrade()?;
        let me = self.me.upgrade()?;
        self.make_way(&realtime, || {
            self.subscriptions.add(Arc::clone(&me), &realtime, name, kind, delivery)
        })
    }

    /// Subscribes a stream; as above.
    pub(super) fn subscribe_stream(&self, stream: &Arc<Stream>, realtime: &Realtime) -> Option<usize> {
        self.make_way(realtime, || self.subscriptions.add_stream(self, realtime, stream))
    }

    /// Calls `add` until nothing refuses it, or nobody gives way.
    fn make_way<T>(&self, realtime: &Realtime, add: impl Fn() -> Option<Result<T, Limit>>) -> Option<T> {
        let mut have_given_way = 0;
        loop {
            match add()? {
                Ok(subscribed) => return Some(subscribed),
                Err(Limit::Total(option, Some(most))) if most.gives_way && have_given_way < MOST_AT_A_TIME => {
                    have_given_way += 1;
                    most.subscriber.give_way(option);
                }
                Err(limit) => {
                    self.log_refusal(realtime, &limit);
                    return None;
                }
            }
        }
    }

    /// Notes that the app has refused a subscription of its own because of `max_subscriptions`.
    pub fn refuse_subscription(&self) {
        if let Some(realtime) = self.realtime.upgrade() {
            self.log_refusal(&realtime, &Limit::Own);
        }
    }

    /// Logs that the identifiers of a client have too many bytes.
    pub(super) fn refuse_identifier(&self, realtime: &Realtime) {
        self.log_refusal(realtime, &Limit::Identifiers);
    }

    fn log_refusal(&self, realtime: &Realtime, limit: &Limit) {
        realtime.worker.counters().refused_subscriptions.fetch_add(1, Relaxed);
        if self.subscriptions.refuse() {
            realtime.worker.log.about_peer(
                About::Client,
                self.peer,
                format_args!("refused a subscription of {}: {limit}", self.describe()),
            );
        }
    }

    /// Ends a subscription. Returns the number of subscribers of this name left in this process, and the id of its
    /// events; `None` if there was no subscription.
    pub fn unsubscribe(&self, name: &[u8]) -> Option<(usize, u64)> {
        let realtime = self.realtime.upgrade()?;
        self.subscriptions.remove(self.id, &realtime.hub, name)
    }

    /// Restores a subscription that another process has had. Returns false if there are too many.
    pub(super) fn restore_subscription(&self, saved: &SavedName) -> bool {
        let is_made = self.subscribe_now(&saved.text, saved.kind, saved.delivery).is_some();
        self.subscriptions.note_restored(&saved.text, saved.id);
        is_made
    }

    /// The largest number of a block that its subscriptions have; 0 for none.
    pub fn largest_block(&self) -> u64 {
        self.subscriptions.largest_block()
    }

    /// Gives the app another turn to take the client over, before any other event: with [`Event::ContinueTakeover`].
    pub fn continue_takeover(&self) {
        self.tell(Event::ContinueTakeover);
    }

    /// The app has resumed the client in this process. Subscriptions and streams that it has not asked for again end.
    /// Returns the names that have no subscriber left in this process.
    pub fn taken_over(&self) -> Vec<Box<[u8]>> {
        match self.realtime.upgrade() {
            Some(realtime) => self.subscriptions.remove_unclaimed(self.id, &realtime.hub),
            None => Vec::new(),
        }
    }

    /// Ends all subscriptions; returns the names that have no subscriber left in this process.
    pub(super) fn unsubscribe_all(&self, realtime: &Realtime) -> Vec<Box<[u8]>> {
        self.subscriptions.remove_all(self.id, &realtime.hub)
    }

    /// Ends the client, and its subscriptions at once, because they count as long as they exist.
    pub(super) fn give_subscriptions_up(&self, option: &'static str) {
        let reason = match option {
            "max_patterns" => "max_patterns is reached, and the client's address has the most patterns",
            _ => "max_subscriptions_total is reached, and the client's address has the most subscriptions",
        };
        self.fail(self.outbox.lock(), TRY_AGAIN_LATER, reason);
        if let Some(realtime) = self.realtime.upgrade() {
            let left = self.unsubscribe_all(&realtime);
            self.subscriptions.keep_left(left);
        }
    }

    /// Adds a message for a block of the app, unless too many wait. The peer is not to blame for that.
    pub(super) fn publish_event(&self, publication: &Arc<Publication>, id: u64) {
        self.tell_app(|| Event::Published(id, Arc::clone(publication)));
    }

    /// Sends a message to the client itself that has waited for a block with this id, if the app has taken the client over, and has
    /// subscribed to the name without a block.
    pub fn send_published(&self, id: u64, publication: &Arc<Publication>) {
        let delivery = self.subscriptions.without_block(id, &publication.channel);
        if delivery.is_some_and(|delivery| self.deliver(publication, delivery)) {
            Subscriber::flush(self);
        }
    }

    /// Adds a block of the app with this id to the client's events. Returns false if the client has ended, or too many
    /// messages and blocks wait already; then it overflows as with published messages.
    pub fn defer(&self, id: u64) -> bool {
        self.is_here() && self.tell_app(|| Event::Deferred(id))
    }

    /// Adds an event that the app itself has caused, unless too many wait.
    fn tell_app(&self, event: impl FnOnce() -> Event) -> bool {
        let Some(realtime) = self.realtime.upgrade() else {
            return false;
        };
        let config = &realtime.worker.config;
        let inbox = self.inbox.lock();
        if inbox.is_closed() {
            return false;
        }
        if inbox.takes_published(config.client_pending_messages, config.client_pending_bytes) {
            if inbox.is_empty() {
                self.subscriptions.catch_up();
            }
            drop(inbox);
            self.tell(event());
            return true;
        }
        drop(inbox);
        match config.client_overflow {
            Overflow::Drop => self.drop_published(&realtime),
            Overflow::Close => {
                realtime.worker.counters().overflowed.fetch_add(1, Relaxed);
                self.fail(self.outbox.lock(), TRY_AGAIN_LATER, LAG);
            }
        }
        false
    }

    /// Logs the first dropped message, until the app has caught up.
    fn drop_published(&self, realtime: &Realtime) {
        realtime.worker.counters().dropped.fetch_add(1, Relaxed);
        if self.subscriptions.lag() {
            realtime.worker.log.about_peer(
                About::Client,
                self.peer,
                format_args!("dropping messages for {}: {LAG}", self.describe()),
            );
        }
    }
}
