//! The hub: publish and subscribe within one process, shared by all its subscribers and publishers.

use super::beat::{Beat, NextBeat};
use super::between::Job;
use super::bus::Bus;
use super::channels::{Channels, Full, Recipient, Totals};
use super::cut::Cut;
use super::dispatcher::Dispatcher;
use super::history::{History, Position};
use super::keeping::{self, GivenUp};
use super::passing::Passing;
use super::publication::Publication;
use super::publication_id::PublicationId;
use super::queue::Queue;
use super::reached::{Reached, Targets};
use super::subscriber::{Delivery, Subscriber};
use crate::clock::{Millis, FAREWELL};
use crate::cluster::scoreboard::{Scoreboard, Slot};
use crate::cluster::statistics::Stats;
use crate::sync::{Condvar, Mutex};
use fairlead_wire::pattern::Match;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The processes that a publication is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every process of the server.
    #[default]
    Cluster,
    /// This process alone.
    Process,
    /// Every process but this one.
    Siblings,
}

/// The result of `publish`. At that time the message is queued, and not yet delivered to subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// The number of processes that read their mail and did not take the message in time; includes this process, if it
    /// no longer delivers.
    pub undelivered: usize,
}

/// The statistics of a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PubSubStats {
    /// Subscriptions of this process.
    pub subscriptions: usize,
    /// Publications that wait for the dispatcher.
    pub queued: usize,
    /// The counts of this process; see the table of statistics.
    pub counted: Stats,
    /// Panics of subscribers.
    pub panics: u64,
}

/// One per process. Made after the fork; messages that are published before [`Hub::start`] wait for it.
pub struct Hub {
    shared: Arc<Shared>,
    /// The process that made it. A process forked from it has no dispatcher, and must touch no lock: a thread that
    /// exists only in the parent may hold it.
    process: u32,
}

/// The state that the dispatcher and the publishers share.
pub(super) struct Shared {
    pub(super) channels: Channels,
    pub(super) queue: Queue,
    pub(super) bus: Option<(Arc<Bus>, usize)>,
    /// The history of this process alone; otherwise the bus has it.
    own_history: Option<Arc<History>>,
    given_up: GivenUp,
    /// The publications from before the dispatcher: it hands out none of them.
    start: OnceLock<Cut>,
    pub(super) beat: NextBeat,
    /// The place in the history at which this process stops reading.
    last_place: AtomicU64,
    reached: Arc<Reached>,
    pub(super) panics: AtomicU64,
    /// See [`Hub::progress`].
    progress: [AtomicU64; 3],
    own: Slot,
    /// True once the dispatcher has ended.
    ended: (Mutex<bool>, Condvar),
}

impl Hub {
    /// A hub for this process alone, or for worker number `slot` of the workers that share a bus.
    ///
    /// # Errors
    /// If the descriptor that wakes the dispatcher cannot be made.
    pub fn new(bus: Option<(Arc<Bus>, usize)>) -> io::Result<Arc<Hub>> {
        Hub::with_history(bus, None)
    }

    /// The same. `history`: of this process, if it has no bus.
    ///
    /// # Errors
    /// As above.
    pub fn with_history(bus: Option<(Arc<Bus>, usize)>, history: Option<Arc<History>>) -> io::Result<Arc<Hub>> {
        let shared = Shared {
            channels: Channels::default(),
            queue: Queue::new()?,
            bus,
            own_history: history,
            given_up: GivenUp::default(),
            start: OnceLock::new(),
            beat: NextBeat::default(),
            last_place: AtomicU64::new(u64::MAX),
            reached: Arc::default(),
            panics: AtomicU64::new(0),
            progress: Default::default(),
            own: Slot::default(),
            ended: Default::default(),
        };
        Ok(Arc::new(Hub {
            shared: Arc::new(shared),
            process: std::process::id(),
        }))
    }

    /// Starts the dispatcher, and announces that this process reads its mail. Does nothing the second time.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(&self) -> io::Result<()> {
        if self.is_elsewhere() || !self.shared.queue.open() {
            return Ok(());
        }
        let place = self.shared.start_reading();
        if let Some((bus, slot)) = &self.shared.bus {
            bus.open(*slot);
        }
        // A sender counts before it looks for open mailboxes. So all later publications come.
        let start = self.targets().0.at(place);
        let _ = self.shared.start.set(start.clone());
        let passing = Passing::new(self.shared.scoreboard(), Arc::clone(&self.shared.reached), start);
        let shared = Arc::clone(&self.shared);
        let named = std::thread::Builder::new().name("fairlead dispatcher".into());
        let started = named.spawn(move || {
            Dispatcher::new(Arc::clone(&shared), passing).run();
            shared.end();
        });
        if started.is_err() {
            self.shared.end();
            self.stop();
        }
        started.map(drop)
    }

    /// Takes no more publications and no more mail, delivers queued publications, and ends the dispatcher.
    pub fn stop(&self) {
        if self.is_elsewhere() {
            return;
        }
        self.shared.close_mailbox();
        if self.shared.queue.close() {
            let (ended, changed) = &self.shared.ended;
            changed.wait_while_for(&mut ended.lock(), |ended| !*ended, FAREWELL);
        }
    }

    /// Subscribes to the channel `name`, or to all channels that match it. Replaces this subscriber's earlier
    /// subscription with the same text. Returns the number of subscribers of this text in this process.
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>, name: &[u8], kind: Match, delivery: Delivery) -> usize {
        let subscribed = self.subscribe_within(subscriber, name, kind, delivery, Totals::default());
        subscribed.unwrap_or_default()
    }

    /// The same, unless one of the totals is used up.
    ///
    /// # Errors
    /// The total that is used up, and the owner with the largest part of it.
    pub fn subscribe_within(
        &self,
        subscriber: Arc<dyn Subscriber>,
        name: &[u8],
        kind: Match,
        delivery: Delivery,
        totals: Totals,
    ) -> Result<usize, Full> {
        let recipient = Recipient {
            subscriber: Arc::clone(&subscriber),
            delivery,
        };
        let count = self.shared.channels.subscribe(recipient, name, kind, totals)?;
        if subscriber.is_open() {
            return Ok(count);
        }
        // The subscriber closed in between, and may not have found this subscription.
        let left = self.shared.channels.unsubscribe(subscriber.id(), name);
        Ok(left.unwrap_or(count - 1))
    }

    /// Subscribes to a beat, which begins with its first subscriber. A process has one beat.
    pub(crate) fn subscribe_to_beat(&self, subscriber: Arc<dyn Subscriber>, beat: &'static Beat) {
        self.subscribe(subscriber, beat.channel, Match::Exact, Delivery::Text);
        if self.shared.beat.begin(beat) {
            self.shared.queue.rouse();
        }
    }

    /// Ends the subscription of the subscriber with this id to the text `name`. Returns the number of its subscribers
    /// left in this process; `None` if there was no such subscription.
    pub fn unsubscribe(&self, id: u64, name: &[u8]) -> Option<usize> {
        self.shared.channels.unsubscribe(id, name)
    }

    /// Publishes. Returns when the message is queued for the dispatcher and in the mailboxes of the other processes. It
    /// waits only if one of them is full, inside of `block`, which must run its argument without the lock of the
    /// language.
    pub fn publish(
        &self,
        channel: &[u8],
        message: &[u8],
        scope: Scope,
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        if self.is_elsewhere() {
            return self.publish_from_child(channel, message, scope, block);
        }
        let takes_history = || scope == Scope::Cluster && self.shared.is_joint();
        if takes_history() {
            return self.publish_kept(channel, message, block);
        }
        let id = self.next_id(scope);
        // The second look: subscribers of the other release wait for all numbers from before the history was joint. This one
        // counts as lost then.
        match takes_history() {
            true => self.publish_kept(channel, message, block),
            false => self.post((channel, message), scope, id, block),
        }
    }

    /// The id of the next publication for other processes.
    fn next_id(&self, scope: Scope) -> Option<PublicationId> {
        let bus = self.shared.bus.as_ref().filter(|_| scope != Scope::Process);
        bus.map(|(bus, slot)| bus.next_id(Some(*slot)))
    }

    /// Publishes through the mailboxes to the whole server, although the history might be used.
    fn post_to_all(&self, channel: &[u8], message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        let scope = Scope::Cluster;
        self.post((channel, message), scope, self.next_id(scope), block)
    }

    /// Publishes through mailboxes.
    fn post(
        &self,
        (channel, message): (&[u8], &[u8]),
        scope: Scope,
        id: Option<PublicationId>,
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        self.counters().published.fetch_add(1, Relaxed);
        let bus = self.shared.bus.as_ref().filter(|_| scope != Scope::Process);
        let is_wanted = || scope != Scope::Siblings && !self.shared.channels.is_empty();
        let mut posted = Posted::default();
        // With an id also if nobody wants it: subscribers may come from other processes.
        if id.is_some() || is_wanted() {
            let publication = Arc::new(Publication::of(channel, message, id, scope == Scope::Siblings));
            let is_taken = self.shared.queue.push(&publication, &is_wanted, block);
            posted.undelivered += usize::from(!is_taken);
        }
        if let (Some((bus, slot)), Some(id)) = (bus, id) {
            posted.undelivered += bus.send(Some(*slot), id, (channel, message), block).undelivered;
        }
        posted
    }

    /// Publishes to every process of the server, through the history, which keeps the message. Like [`Hub::publish`] if there
    /// is no history.
    pub fn publish_kept(&self, channel: &[u8], message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        let Some(history) = self.shared.history() else {
            return self.post_to_all(channel, message, block);
        };
        if let Some((bus, slot)) = &self.shared.bus {
            let own = (!self.is_elsewhere()).then_some(*slot);
            let (posted, is_kept) = bus.publish_kept(own, history, channel, message, block);
            if own.is_some() {
                self.shared.queue.rouse();
            }
            return match (own.is_some(), is_kept) {
                (true, false) => self.post_to_all(channel, message, block),
                _ => posted,
            };
        }
        if self.is_elsewhere() {
            return Posted { undelivered: 1 };
        }
        self.counters().published.fetch_add(1, Relaxed);
        let readers = || vec![(0, self.counters())];
        let (posted, appended) = keeping::append(history, &readers, &self.shared.given_up, (channel, message), block);
        self.shared.queue.rouse();
        match appended {
            Some((_, true)) => posted,
            _ => self.post((channel, message), Scope::Process, None, block),
        }
    }

    /// The history of the messages, if this process has one.
    pub fn history(&self) -> Option<&History> {
        self.shared.history()
    }

    /// Publishes from a process that the app has forked: it has the mailboxes, but no subscribers of its own.
    fn publish_from_child(
        &self,
        channel: &[u8],
        message: &[u8],
        scope: Scope,
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        match &self.shared.bus {
            Some((bus, _)) if scope != Scope::Process => bus.publish(channel, message, block),
            _ => Posted { undelivered: 1 },
        }
    }

    /// Runs `job` between two publications, on the thread of the dispatcher, after all publications that this process has
    /// queued before. Returns false if there is no dispatcher; then `job` never runs.
    pub fn at_cut(&self, job: Job) -> bool {
        !self.is_elsewhere() && self.shared.queue.push_job(job)
    }

    /// Everything that was published before this call.
    pub fn targets(&self) -> Targets {
        self.shared.targets_with(self.history().map_or(0, History::end))
    }

    /// Returns true if the dispatcher of this process has handed out everything that was published before
    /// [`Hub::targets`] was called. A publication that a process has lost counts after 10 to 20 seconds, so ask again.
    pub fn has_reached(&self, targets: &Targets) -> bool {
        let has_reached = self.shared.reached.has(targets);
        if !has_reached && !self.is_elsewhere() {
            self.shared.queue.rouse();
        }
        has_reached
    }

    /// True if the dispatcher of this process has been there since a cut was made: then it has handed out all publications
    /// that the cut does not have.
    pub fn reaches_back_to(&self, cut: &Cut) -> bool {
        self.shared.start.get().is_some_and(|start| cut.covers(start))
    }

    /// Makes this process the leader, if there is none. Returns true if it leads. It leads until it
    /// stops leading, or has ended.
    pub fn lead(&self) -> bool {
        match &self.shared.bus {
            Some((bus, slot)) if !self.is_elsewhere() => {
                bus.scoreboard().lead(*slot) && self.history().is_none_or(History::lead)
            }
            Some(_) => false,
            None => true,
        }
    }

    /// The number of the last piece of work that a leader has done, the time since then, and the position after it in the history.
    pub fn progress(&self) -> (u64, Duration, Option<Position>) {
        let [number, time, offset] = self.progress_words();
        let since = Millis::now() - Millis::from_number(time.load(SeqCst));
        let offset = offset.load(SeqCst);
        let position = self.history().map(|history| Position {
            offset,
            ..history.position()
        });
        (number.load(SeqCst), since, position)
    }

    /// Stores the number of a piece of work that this process has done.
    pub fn note_progress(&self, done: u64) {
        let [number, time, offset] = self.progress_words();
        time.store(Millis::now().to_number(), SeqCst);
        number.store(done, SeqCst);
        // At last: a leader that ends before this leaves an earlier position.
        offset.store(self.history().map_or(0, |history| history.position().offset), SeqCst);
    }

    fn progress_words(&self) -> &[AtomicU64; 3] {
        match (self.history(), &self.shared.bus) {
            (Some(history), _) => history.progress(),
            (None, Some((bus, _))) => &bus.scoreboard().progress,
            (None, None) => &self.shared.progress,
        }
    }

    /// Lets another process lead.
    pub fn stop_leading(&self) {
        if let Some((bus, slot)) = self.shared.bus.as_ref().filter(|_| !self.is_elsewhere()) {
            self.history().into_iter().for_each(History::stop_leading);
            bus.scoreboard().stop_leading(*slot);
        }
    }

    /// The slot with the counters of this process.
    pub fn counters(&self) -> &Slot {
        self.shared.counters()
    }

    /// The number of channels with subscribers in this process. Patterns do not count.
    pub fn channels(&self) -> usize {
        self.shared.channels.names()
    }

    /// The number of subscribers of a channel in this process. Patterns do not count.
    pub fn subscribers(&self, channel: &[u8]) -> usize {
        self.shared.channels.exact(channel).map_or(0, |list| list.len())
    }

    /// The number of subscriptions in this process.
    pub fn subscriptions(&self) -> usize {
        self.shared.channels.len()
    }

    /// The current statistics.
    pub fn stats(&self) -> PubSubStats {
        let counters = self.counters();
        PubSubStats {
            subscriptions: self.shared.channels.len(),
            queued: self.shared.queue.len(),
            counted: counters.stats(counters),
            panics: self.shared.panics.load(Relaxed),
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub(super) fn counters(&self) -> &Slot {
        match &self.bus {
            Some((bus, slot)) => bus.scoreboard().slot(*slot),
            None => &self.own,
        }
    }

    fn scoreboard(&self) -> Option<&'static Scoreboard> {
        let (bus, _) = self.bus.as_ref()?;
        Some(bus.scoreboard())
    }

    pub(super) fn history(&self) -> Option<&History> {
        match &self.bus {
            Some((bus, _)) => bus.history(),
            None => self.own_history.as_deref(),
        }
    }

    fn is_joint(&self) -> bool {
        self.history().is_some_and(History::is_joint)
    }

    fn targets_with(&self, place: u64) -> Targets {
        Targets(Cut::of_all(self.scoreboard(), place))
    }

    /// The mail that was sent before this call.
    pub(super) fn targets(&self) -> Targets {
        self.targets_with(0)
    }

    pub(super) fn has_reached(&self, targets: &Targets) -> bool {
        self.reached.has(targets)
    }

    /// Announces that this process reads the history from its end on, and returns that place.
    fn start_reading(&self) -> u64 {
        let place = self.history().map_or(0, History::end);
        let reads = self.history().is_some();
        self.counters()
            .history_place
            .store(if reads { place + 1 } else { 0 }, SeqCst);
        place
    }

    /// Announces that this process has read the history up to `place`.
    pub(super) fn has_read(&self, place: u64) {
        let own = &self.counters().history_place;
        if own.load(Relaxed) != 0 {
            own.store(place + 1, SeqCst);
        }
    }

    /// Returns true if the history has more for this process than `place`.
    pub(super) fn has_unread(&self, place: u64) -> bool {
        let end = self.history().map_or(0, History::end);
        place < end.min(self.last_place.load(SeqCst))
    }

    /// Readable when this process has mail.
    pub(super) fn mailbox(&self) -> Option<BorrowedFd<'_>> {
        self.bus.as_ref().and_then(|(bus, slot)| bus.receiver(*slot))
    }

    fn end(&self) {
        *self.ended.0.lock() = true;
        self.ended.1.notify_all();
    }

    fn close_mailbox(&self) {
        let end = self.history().map_or(0, History::end);
        self.last_place.store(end, SeqCst);
        self.counters().history_place.store(0, SeqCst);
        if let Some((bus, slot)) = &self.bus {
            bus.close(*slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::mailbox::{self, TakenMail};

    #[test]
    fn a_process_that_the_app_has_forked_publishes_to_the_workers() {
        let scoreboard: &'static Scoreboard = Box::leak(Box::default());
        let bus = Arc::new(Bus::new(scoreboard, 2).expect("a bus"));
        (0..2).for_each(|slot| bus.open(slot));
        let hub = Hub::new(Some((Arc::clone(&bus), 0))).expect("a hub");
        let mut hub = Arc::into_inner(hub).expect("the only one");
        hub.process = 0;
        let publish = |scope| hub.publish(b"news", b"hello", scope, &mut |_| panic!("waits"));
        assert_eq!(publish(Scope::Process), Posted { undelivered: 1 });
        assert_eq!(publish(Scope::Cluster), Posted::default());
        hub.stop();
        for slot in 0..2 {
            let take = || bus.take(slot, &mut mailbox::space());
            assert!(
                matches!(take(), TakenMail::Mail(mail) if *mail.channel == *b"news"),
                "slot {slot}"
            );
            assert!(matches!(take(), TakenMail::Nothing));
            assert!(scoreboard.slot(slot).reads_mail(), "the child must not change this");
        }
        assert_eq!(
            (hub.shared.queue.len(), scoreboard.others().published.load(Relaxed)),
            (0, 1)
        );
    }
}
