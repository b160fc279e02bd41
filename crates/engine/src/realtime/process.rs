//! A subscription of the process itself: its messages run as events, one at a time and in order, in turn with requests
//! and with the events of clients.

use super::client::next_id;
use super::{Realtime, Scheduled};
use crate::pubsub::{Delivery, Publication, Subscriber};
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Limits of the messages that may wait for the app; further ones are dropped, counted and logged.
const MOST_EVENTS: usize = 64 * 1024;
const MOST_BYTES: usize = 64 * 1024 * 1024;

#[derive(Default)]
struct Backlog {
    /// The engine in which the events run.
    realtime: Weak<Realtime>,
    publications: VecDeque<Arc<Publication>>,
    bytes: usize,
    scheduled: bool,
    /// A message was dropped since the app last caught up.
    drops: bool,
}

/// A subscription that belongs to no client.
pub struct ProcessSubscription {
    me: Weak<ProcessSubscription>,
    id: u64,
    is_open: AtomicBool,
    waiting: Mutex<Backlog>,
}

impl std::fmt::Debug for ProcessSubscription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ProcessSubscription")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl ProcessSubscription {
    /// A subscription with events that run in the engine of `realtime`; for
    /// [`Hub::subscribe`](crate::pubsub::Hub::subscribe).
    pub(crate) fn new(realtime: &Arc<Realtime>) -> Arc<ProcessSubscription> {
        Arc::new_cyclic(|me| ProcessSubscription {
            me: me.clone(),
            id: next_id(),
            is_open: AtomicBool::new(true),
            waiting: Mutex::new(Backlog {
                realtime: Arc::downgrade(realtime),
                ..Backlog::default()
            }),
        })
    }

    /// Makes the events run in another engine, after the earlier one has ended.
    pub(crate) fn move_to(&self, realtime: &Arc<Realtime>) {
        let mut waiting = self.waiting.lock();
        waiting.realtime = Arc::downgrade(realtime);
        waiting.scheduled = !waiting.publications.is_empty();
        let schedule = waiting.scheduled;
        drop(waiting);
        if let (true, Some(me)) = (schedule, self.me.upgrade()) {
            realtime.schedule(Scheduled::Subscription(me));
        }
    }

    /// Unique in the process; passed to [`App::published`](crate::App::published).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Drops waiting messages, and takes no more.
    pub fn close(&self) {
        self.is_open.store(false, Relaxed);
        let mut waiting = self.waiting.lock();
        waiting.publications.clear();
        waiting.bytes = 0;
    }

    pub(super) fn take(&self) -> Option<Arc<Publication>> {
        let mut waiting = self.waiting.lock();
        let publication = waiting.publications.pop_front()?;
        waiting.bytes -= publication.message.len();
        Some(publication)
    }

    /// Ends a turn. Returns true if there are more messages.
    pub(super) fn end_turn(&self) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.scheduled = !waiting.publications.is_empty();
        waiting.scheduled
    }

    fn drop_one(waiting: &mut Backlog) {
        let Some(realtime) = waiting.realtime.upgrade() else {
            return;
        };
        realtime.worker.counters().dropped.fetch_add(1, Relaxed);
        if !std::mem::replace(&mut waiting.drops, true) {
            realtime.worker.log.error(format_args!(
                "the application does not keep up with messages of a subscription of the process; some are dropped"
            ));
        }
    }
}

impl Subscriber for ProcessSubscription {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.publications.len() >= MOST_EVENTS || waiting.bytes > MOST_BYTES {
            Self::drop_one(&mut waiting);
            return false;
        }
        if waiting.publications.is_empty() {
            waiting.drops = false;
        }
        waiting.bytes += publication.message.len();
        waiting.publications.push_back(Arc::clone(publication));
        let schedule = !std::mem::replace(&mut waiting.scheduled, true);
        let realtime = waiting.realtime.upgrade();
        drop(waiting);
        if let (true, Some(realtime), Some(me)) = (schedule, realtime, self.me.upgrade()) {
            realtime.schedule(Scheduled::Subscription(me));
        }
        false
    }

    fn flush(&self) {}

    fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }
}
