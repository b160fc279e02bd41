//! The bus: a [`Mailbox`] for each worker. The processes of one server publish to each other through it.
//!
//! A publisher waits while the mailbox of a worker is full, so nothing is lost as long as all workers make progress. If
//! a worker takes nothing for a while, the publisher gives it up: it reports that, and does not wait for this worker
//! again before the worker has taken something. The thread that takes envelopes out (the dispatcher) never puts any in,
//! so two workers that publish to each other cannot wait for each other.
//!
//! Mailboxes are inherited. If the supervisor opens one later, for one more worker, it sends it to the other workers by
//! mail; a publisher that needs it earlier waits for it.

use super::envelope::{self, Envelope};
use super::history::History;
use super::hub::Posted;
use super::keeping::{self, GivenUp};
use super::mailbox::{space, DatagramBuffer, Mailbox, Put, TakenMail};
use super::publication_id::PublicationId;
use super::PATIENCE;
use crate::clock::Millis;
use crate::cluster::scoreboard::{Scoreboard, Slot, SLOTS};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{fence, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// Longest wait for a mailbox to become writable before checking again.
const STEP: Timespec = nanoseconds(20_000_000);

/// The same if the system is short of a resource that no socket reports.
const SHORT_STEP: Timespec = nanoseconds(2_000_000);

const fn nanoseconds(count: i64) -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: count,
    }
}

/// All mailboxes. Made before the first fork and inherited by every worker, together with the [`Scoreboard`].
pub struct Bus {
    scoreboard: &'static Scoreboard,
    mailboxes: [OnceLock<Mailbox>; SLOTS],
    /// For each worker that this process has given up: the envelopes that it had taken until then, plus one. Otherwise
    /// 0.
    given_up: [AtomicU64; SLOTS],
    history: Option<Arc<History>>,
    /// Dispatchers that do not read the history.
    given_up_readers: GivenUp,
}

/// A worker that has no room for an envelope.
struct FullMailbox {
    slot: usize,
    /// Its socket reports when there is room.
    full: bool,
    /// The number of envelopes that it had taken when it last took one, and the time of that.
    taken: u64,
    since: Millis,
}

impl Bus {
    /// The version of what the mailboxes carry: processes may share them if it is equal.
    pub const FORMAT: u32 = envelope::FORMAT;

    /// Opens the mailboxes of the first `workers` workers; to be called before the first fork.
    ///
    /// # Errors
    /// If the socket pairs cannot be made.
    pub fn new(scoreboard: &'static Scoreboard, workers: usize) -> std::io::Result<Bus> {
        let bus = Bus {
            scoreboard,
            mailboxes: std::array::from_fn(|_| OnceLock::new()),
            given_up: std::array::from_fn(|_| AtomicU64::new(0)),
            history: None,
            given_up_readers: GivenUp::default(),
        };
        (0..workers).try_for_each(|slot| bus.add(slot))?;
        Ok(bus)
    }

    /// Adds a history, which all processes of the server share.
    #[must_use]
    pub fn with_history(self, history: Option<Arc<History>>) -> Bus {
        Bus { history, ..self }
    }

    /// The history that all processes of the server share.
    pub fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }

    /// Opens the mailbox of worker number `slot` if there is none yet; to be called before that worker is forked.
    ///
    /// # Errors
    /// If the socket pair cannot be made.
    pub fn add(&self, slot: usize) -> std::io::Result<()> {
        if self.mailboxes[slot].get().is_none() {
            let _ = self.mailboxes[slot].set(Mailbox::new()?);
        }
        Ok(())
    }

    /// The mailbox of worker number `slot`, if this process knows it: the descriptors that another process needs to
    /// [`Bus::adopt`] it.
    pub fn descriptors(&self, slot: usize) -> Option<[BorrowedFd<'_>; 2]> {
        let mailbox = self.mailboxes[slot].get()?;
        Some([mailbox.sender(), mailbox.receiver()])
    }

    /// Stores the mailbox of worker number `slot`, which another process has opened. A known mailbox stays.
    pub fn adopt(&self, slot: usize, descriptors: [OwnedFd; 2]) {
        let _ = self.mailboxes[slot].set(Mailbox::adopt(descriptors));
    }

    /// Sends workers the mailboxes that were opened after they were forked. A worker without room for the envelope gets
    /// it the next time; the scoreboard says which mailboxes it knows.
    pub fn introduce(&self) {
        let opened = self.known();
        for (reader, mailbox) in self.mailboxes.iter().enumerate() {
            let (own, Some(mailbox)) = (self.scoreboard.slot(reader), mailbox.get()) else {
                continue;
            };
            let missing = opened & !own.known_mailboxes.load(SeqCst);
            if missing == 0 || !own.reads_mail() {
                continue;
            }
            for (slot, other) in self.mailboxes.iter().enumerate() {
                if let (true, Some(other)) = (missing >> slot & 1 == 1, other.get()) {
                    mailbox.introduce(slot, other);
                }
            }
        }
    }

    /// The mailboxes that this process knows, a bit for each.
    fn known(&self) -> u64 {
        let known = self.mailboxes.iter().enumerate();
        known.fold(0, |bits, (slot, mailbox)| {
            bits | u64::from(mailbox.get().is_some()) << slot
        })
    }

    /// The scoreboard that says which workers read their mail.
    pub fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// Publishes to all workers, from a process without a hub. `block` as for [`Hub::publish`](super::Hub::publish).
    pub fn publish(&self, channel: &[u8], message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        let is_joint = || self.history().is_some_and(History::is_joint);
        if is_joint() {
            return self.keep(channel, message, block);
        }
        let id = self.next_id(None);
        // As in `Hub::publish`.
        match is_joint() {
            true => self.keep(channel, message, block),
            false => self.post((channel, message), id, block),
        }
    }

    fn post(&self, message: (&[u8], &[u8]), id: PublicationId, block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        self.scoreboard.others().published.fetch_add(1, Relaxed);
        self.send(None, id, message, block)
    }

    /// Publishes to all workers, through the history, from a process without a hub. Like [`Bus::publish`] if there is no
    /// history.
    pub fn keep(&self, channel: &[u8], message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        let Some(history) = &self.history else {
            return self.post((channel, message), self.next_id(None), block);
        };
        match self.publish_kept(None, history, channel, message, block) {
            (posted, true) => posted,
            (_, false) => self.post((channel, message), self.next_id(None), block),
        }
    }

    /// Appends a message to the history, and wakes the dispatchers of all workers except `own`. Returns false if the message
    /// is too long for the history, and has to be published in the other way.
    pub(super) fn publish_kept(
        &self,
        own: Option<usize>,
        history: &History,
        channel: &[u8],
        message: &[u8],
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> (Posted, bool) {
        let counters = own.map_or(self.scoreboard.others(), |slot| self.scoreboard.slot(slot));
        let readers = || self.readers();
        let given_up = &self.given_up_readers;
        let (posted, appended) = keeping::append(history, &readers, given_up, (channel, message), block);
        let is_joint = history.is_joint();
        let undelivered = posted.undelivered + usize::from(!matches!(appended, Some((_, true))));
        let posted = Posted { undelivered };
        if appended.is_none() && is_joint {
            history.divide();
        }
        if appended.is_none_or(|(_, is_kept)| !is_kept && !is_joint) {
            // A stopped process has the lock, or it is too long: the message goes the other way. If another release
            // would not get it, the entry without it tells its subscribers in both.
            return (posted, false);
        }
        counters.published.fetch_add(1, Relaxed);
        self.wake(own, block);
        counters.mail_lost.fetch_add(posted.undelivered as u64, Relaxed);
        (posted, true)
    }

    /// Wakes the dispatchers of all workers, because another release uses the history from now on: it cannot wake them, so they
    /// look into it themselves.
    pub fn rouse(&self) {
        self.wake(None, &mut |_| {});
    }

    /// The workers that read the history.
    fn readers(&self) -> Vec<(usize, &Slot)> {
        (0..self.scoreboard.mailboxes())
            .map(|slot| (slot, self.scoreboard.slot(slot)))
            .filter(|(_, reader)| reader.history_place.load(SeqCst) != 0)
            .collect()
    }

    /// Wakes the dispatchers that sleep. A dispatcher that could not be woken looks for itself, a little later.
    fn wake(&self, own: Option<usize>, block: &mut dyn FnMut(&mut dyn FnMut())) {
        fence(SeqCst);
        let readers = self.readers().into_iter().map(|(slot, _)| slot);
        let others = readers.filter(|slot| Some(*slot) != own);
        let mut strangers: Vec<usize> = others.filter(|slot| !self.wake_one(*slot)).collect();
        if !strangers.is_empty() {
            let since = Millis::now();
            block(&mut || {
                while !strangers.is_empty() && Millis::now() - since < PATIENCE {
                    let _ = poll(&mut [], Some(&SHORT_STEP));
                    strangers.retain(|slot| self.scoreboard.slot(*slot).reads_mail() && !self.wake_one(*slot));
                }
            });
        }
    }

    /// Wakes the dispatcher of a worker, if it sleeps. Returns false if this process does not know its mailbox yet, or the
    /// system is short of something. A dispatcher with a full mailbox is awake.
    fn wake_one(&self, slot: usize) -> bool {
        let asleep = &self.scoreboard.slot(slot).asleep;
        if asleep.load(SeqCst) == 0 || asleep.swap(0, SeqCst) == 0 {
            return true;
        }
        let mailbox = self.mailboxes[slot].get();
        let is_awake = mailbox.is_some_and(|mailbox| !matches!(mailbox.rouse(), Put::Short));
        if !is_awake {
            asleep.store(1, SeqCst);
        }
        is_awake
    }

    /// The id of the next publication of worker number `own`, or of a process without a hub.
    pub(super) fn next_id(&self, own: Option<usize>) -> PublicationId {
        PublicationId::next(self.scoreboard, own)
    }

    /// Sends a message to a channel to all workers that read their mail, except worker number `own`.
    pub(super) fn send(
        &self,
        own: Option<usize>,
        id: PublicationId,
        (channel, message): (&[u8], &[u8]),
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        let counters = own.map_or(self.scoreboard.others(), |slot| self.scoreboard.slot(slot));
        let mut envelope = Envelope::new(id, channel, message);
        let mut waiting = Vec::new();
        let mut undelivered = 0;
        for slot in (0..self.scoreboard.mailboxes()).filter(|slot| Some(*slot) != own) {
            let reader = self.scoreboard.slot(slot);
            if !reader.reads_mail() {
                continue;
            }
            match self.put(slot, &mut envelope, counters) {
                Put::Done => {}
                Put::Failed => undelivered += 1,
                _ if self.has_given_up(slot) => undelivered += 1,
                put => waiting.push(FullMailbox {
                    slot,
                    full: put == Put::Full,
                    taken: reader.mail_received.load(Relaxed),
                    since: Millis::now(),
                }),
            }
        }
        if !waiting.is_empty() {
            counters.mail_waits.fetch_add(1, Relaxed);
            block(&mut || undelivered += self.wait(&mut waiting, &mut envelope, counters));
            // In case `block` has not run it, or has not let it finish.
            undelivered += waiting.len();
        }
        counters.mail_lost.fetch_add(undelivered as u64, Relaxed);
        Posted { undelivered }
    }

    fn put(&self, slot: usize, envelope: &mut Envelope<'_>, counters: &Slot) -> Put {
        let Some(mailbox) = self.mailboxes[slot].get() else {
            return Put::Short;
        };
        let put = mailbox.put(envelope, &self.scoreboard.slot(slot).mail_bytes);
        if put == Put::Done {
            counters.mail_sent.fetch_add(1, Relaxed);
            if self.given_up[slot].load(Relaxed) != 0 {
                self.given_up[slot].store(0, Relaxed);
            }
        }
        put
    }

    fn has_given_up(&self, slot: usize) -> bool {
        self.given_up[slot].load(Relaxed) == self.scoreboard.slot(slot).mail_received.load(Relaxed) + 1
    }

    /// Waits until `waiting` is empty. Returns the number of workers that did not get the envelope although they read
    /// their mail.
    fn wait(&self, waiting: &mut Vec<FullMailbox>, envelope: &mut Envelope<'_>, counters: &Slot) -> usize {
        let mut undelivered = 0;
        while !waiting.is_empty() {
            self.pause(waiting);
            waiting.retain_mut(|worker| {
                let reader = self.scoreboard.slot(worker.slot);
                if !reader.reads_mail() {
                    return false;
                }
                let put = self.put(worker.slot, envelope, counters);
                worker.full = put == Put::Full;
                let stays = matches!(put, Put::Full | Put::Short) && worker.deserves_patience(reader);
                if !stays && put != Put::Done {
                    self.given_up[worker.slot].store(worker.taken + 1, Relaxed);
                    undelivered += 1;
                }
                stays
            });
        }
        undelivered
    }

    fn pause(&self, waiting: &[FullMailbox]) {
        let full = waiting.iter().filter(|worker| worker.full);
        let mut fds: Vec<PollFd<'_>> = full
            .filter_map(|worker| self.mailboxes[worker.slot].get())
            .map(|mailbox| PollFd::from_borrowed_fd(mailbox.sender(), PollFlags::OUT))
            .collect();
        let step = if fds.len() == waiting.len() { STEP } else { SHORT_STEP };
        let _ = poll(&mut fds, Some(&step));
    }

    /// Announces that worker number `slot` reads its mail from now on. Drops mail for its predecessor.
    pub(super) fn open(&self, slot: usize) {
        let own = self.scoreboard.slot(slot);
        own.reads_mail.store(0, SeqCst);
        if let Some(mailbox) = self.mailboxes[slot].get() {
            mailbox.clear(&mut space(), &own.mail_bytes);
        }
        own.known_mailboxes.store(self.known(), SeqCst);
        self.scoreboard.count_mailbox(slot);
        own.reads_mail.store(1, SeqCst);
    }

    /// Announces that worker number `slot` reads no more mail.
    pub(super) fn close(&self, slot: usize) {
        self.scoreboard.slot(slot).reads_mail.store(0, SeqCst);
    }

    /// Takes the oldest envelope out of a worker's own mailbox.
    pub(super) fn take(&self, slot: usize, space: &mut DatagramBuffer) -> TakenMail {
        let own = self.scoreboard.slot(slot);
        let Some(mailbox) = self.mailboxes[slot].get() else {
            return TakenMail::Nothing;
        };
        loop {
            let taken = mailbox.take(space, &own.mail_bytes);
            match taken {
                TakenMail::Announcement(slot, mailbox) => {
                    self.meet(own, slot, mailbox);
                    continue;
                }
                TakenMail::Mail(_) => _ = own.mail_received.fetch_add(1, Relaxed),
                TakenMail::Spoiled => _ = own.mail_lost.fetch_add(1, Relaxed),
                TakenMail::Wake => continue,
                TakenMail::Nothing => {}
            }
            return taken;
        }
    }

    /// Stores the mailbox of another worker. `own`: the counters of this worker.
    fn meet(&self, own: &Slot, slot: usize, mailbox: Option<Mailbox>) {
        if let (Some(place), Some(mailbox)) = (self.mailboxes.get(slot), mailbox) {
            let _ = place.set(mailbox);
            own.known_mailboxes.fetch_or(1 << slot, SeqCst);
        }
    }

    /// Readable when worker number `slot` has mail.
    pub(super) fn receiver(&self, slot: usize) -> Option<BorrowedFd<'_>> {
        self.mailboxes[slot].get().map(Mailbox::receiver)
    }
}

impl FullMailbox {
    /// Returns true if the worker has taken an envelope recently.
    fn deserves_patience(&mut self, reader: &Slot) -> bool {
        let (taken, now) = (reader.mail_received.load(Relaxed), Millis::now());
        if taken != self.taken {
            (self.taken, self.since) = (taken, now);
        }
        now - self.since < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::envelope::announcement;

    /// A bus for one worker, and the worker's copy of it.
    fn supervisor_and_worker() -> (Bus, Bus) {
        let bus = Bus::new(Box::leak(Box::default()), 1).expect("a mailbox");
        let worker = forked(&bus);
        worker.open(0);
        (bus, worker)
    }

    fn forked(bus: &Bus) -> Bus {
        let child = Bus::new(bus.scoreboard, 0).expect("no mailbox");
        for (own, known) in child.mailboxes.iter().zip(&bus.mailboxes) {
            if let Some(mailbox) = known.get() {
                own.set(mailbox.copy()).expect("nothing there");
            }
        }
        child
    }

    fn take(bus: &Bus, slot: usize) -> TakenMail {
        bus.take(slot, &mut space())
    }

    #[test]
    fn there_is_one_mailbox_for_each_worker_and_no_more() {
        let bus = Bus::new(Box::leak(Box::default()), 3).expect("mailboxes");
        assert_eq!(bus.known(), 0b111);
    }

    #[test]
    fn a_publisher_waits_for_the_mailbox_of_a_worker_that_came_later() {
        let (bus, old) = supervisor_and_worker();
        bus.add(1).expect("a mailbox");
        let new = forked(&bus);
        new.open(1);
        let posted = old.send(Some(0), old.next_id(Some(0)), (b"news", b"hello"), &mut |wait| {
            bus.introduce();
            // The worker's dispatcher would do this meanwhile.
            assert!(matches!(take(&old, 0), TakenMail::Nothing));
            wait();
        });
        assert_eq!(posted, Posted::default());
        assert!(matches!(take(&new, 1), TakenMail::Mail(mail) if *mail.message == *b"hello"));
        let posted = old.send(Some(0), old.next_id(Some(0)), (b"news", &[7; 100_000]), &mut |_| {
            panic!("waits")
        });
        assert_eq!(posted, Posted::default());
        assert!(matches!(take(&new, 1), TakenMail::Mail(mail) if mail.message.len() == 100_000));
        bus.introduce();
        let mailbox = old.mailboxes[0].get().expect("its own");
        let mail = mailbox.take(&mut space(), &old.scoreboard.slot(0).mail_bytes);
        assert!(
            matches!(mail, TakenMail::Nothing),
            "a known mailbox is not sent again: {mail:?}"
        );
    }

    #[test]
    fn a_mailbox_whose_descriptors_were_lost_is_introduced_again() {
        let (bus, worker) = supervisor_and_worker();
        let sender = bus.mailboxes[0].get().expect("a mailbox").sender();
        rustix::net::send(sender, &announcement(1), rustix::net::SendFlags::empty()).expect("room");
        assert!(matches!(take(&worker, 0), TakenMail::Nothing));
        bus.add(1).expect("a mailbox");
        bus.introduce();
        assert!(matches!(take(&worker, 0), TakenMail::Nothing));
        assert_eq!(worker.known(), 0b11);
        assert_eq!(bus.scoreboard.slot(0).mail_lost.load(Relaxed), 0);
    }
}
