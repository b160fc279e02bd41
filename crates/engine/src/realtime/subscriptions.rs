//! The subscriptions of one client, and the messages that are published for blocks of the app.

use super::client::Client;
use super::inbox::Event;
use super::Realtime;
use crate::config::Overflow;
use crate::observe::excess::About;
use crate::pubsub::{Delivery, Match, Publication};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Close code of a server that cannot go on for now (registered with IANA).
const TRY_AGAIN_LATER: u16 = 1013;

const LAG: &str = "the application does not keep up with what is published for its blocks";

#[derive(Default)]
pub(super) struct Subscriptions {
    /// Names, and the ids that their events carry: 0 if there never was a block. A name keeps its id, so that waiting
    /// messages find a block after the name was subscribed to again.
    ids: HashMap<Box<[u8]>, u64>,
    /// Whether a refusal was logged.
    is_refused: bool,
}

impl Client {
    /// Subscribes to a channel, or to those that match a pattern. Returns how many subscribers of that name this
    /// process has, and the id that the events carry, which is the former one if there was one; `None` if the client is
    /// not open, or there are too many subscriptions.
    pub fn subscribe(&self, name: &[u8], kind: Match, delivery: Delivery) -> Option<(usize, u64)> {
        let (realtime, me) = (self.realtime.upgrade()?, self.me.upgrade()?);
        let mut subscriptions = self.subscriptions.lock();
        if !self.is_open() {
            return None;
        }
        let own = match delivery {
            Delivery::Event(id) => id,
            _ => 0,
        };
        let known = subscriptions.ids.get(name).copied();
        let others = known.is_none().then_some(subscriptions.ids.len());
        if let Some(limit) = limit(&realtime, others, name, kind) {
            self.log_refusal(&mut subscriptions, &realtime, limit);
            return None;
        }
        let id = known.filter(|id| *id != 0).unwrap_or(own);
        if known != Some(id) {
            subscriptions.ids.insert(name.into(), id);
        }
        let delivery = match delivery {
            Delivery::Event(_) => Delivery::Event(id),
            direct => direct,
        };
        Some((realtime.hub.subscribe(me, name, kind, delivery), id))
    }

    fn log_refusal(&self, subscriptions: &mut Subscriptions, realtime: &Realtime, limit: &str) {
        if !std::mem::replace(&mut subscriptions.is_refused, true) {
            realtime.worker.log.about_peer(
                About::Client,
                self.peer,
                format_args!("refused a subscription of {}: {limit} is reached", self.describe()),
            );
        }
    }

    /// Ends a subscription. Returns how many subscribers of that name are left in this process, and the id of its
    /// events; `None` if there was no subscription.
    pub fn unsubscribe(&self, name: &[u8]) -> Option<(usize, u64)> {
        let realtime = self.realtime.upgrade()?;
        let mut subscriptions = self.subscriptions.lock();
        let id = subscriptions.ids.remove(name)?;
        realtime.hub.unsubscribe(self.id, name).map(|left| (left, id))
    }

    /// Ends all subscriptions; returns the names that have no subscriber left in this process.
    pub(super) fn unsubscribe_all(&self, realtime: &Realtime) -> Vec<Box<[u8]>> {
        let subscriptions = std::mem::take(&mut self.subscriptions.lock().ids);
        let names = subscriptions.into_keys();
        names
            .filter(|name| realtime.hub.unsubscribe(self.id, name) == Some(0))
            .collect()
    }

    /// Adds a message for a block of the app, unless too many wait. The peer is not to blame then.
    pub(super) fn publish_event(&self, publication: &Arc<Publication>, id: u64) {
        let Some(realtime) = self.realtime.upgrade() else {
            return;
        };
        let config = &realtime.worker.config;
        let inbox = self.inbox.lock();
        if inbox.takes_published(config.client_pending_messages, config.client_pending_bytes) {
            if inbox.is_empty() {
                self.lags.store(false, Relaxed);
            }
            drop(inbox);
            return self.tell(Event::Published(id, Arc::clone(publication)));
        }
        drop(inbox);
        match config.client_overflow {
            Overflow::Drop => self.drop_published(&realtime),
            Overflow::Close => {
                realtime.worker.counters().overflowed.fetch_add(1, Relaxed);
                self.fail(self.outbox.lock(), TRY_AGAIN_LATER, LAG);
            }
        }
    }

    /// Logs the first message that is dropped until the app has caught up.
    fn drop_published(&self, realtime: &Realtime) {
        realtime.worker.counters().dropped.fetch_add(1, Relaxed);
        if !self.lags.swap(true, Relaxed) {
            realtime.worker.log.about_peer(
                About::Client,
                self.peer,
                format_args!("dropping messages for {}: {LAG}", self.describe()),
            );
        }
    }
}

/// The option that refuses a subscription to a client that has `others`; `None` if it has one of that name, which may only
/// become a pattern.
fn limit(realtime: &Realtime, others: Option<usize>, name: &[u8], kind: Match) -> Option<&'static str> {
    let (config, hub) = (&realtime.worker.config, &realtime.hub);
    let is_reached = |count: usize, most: usize| most > 0 && count >= most;
    if others.is_some_and(|others| is_reached(others, config.max_subscriptions)) {
        Some("max_subscriptions")
    } else if others.is_some() && is_reached(hub.subscriptions(), config.max_subscriptions_total) {
        Some("max_subscriptions_total")
    } else if config.max_patterns > 0 && hub.has_too_many_patterns(name, kind, config.max_patterns) {
        Some("max_patterns")
    } else {
        None
    }
}
