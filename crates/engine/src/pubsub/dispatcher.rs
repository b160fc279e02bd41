//! The dispatcher: the native thread of a process that delivers. It takes publications of this process and mail from
//! others, gives each publication to its subscribers, and then lets every subscriber that got some send all of them at
//! once.
//!
//! One queue and one thread keep the order. The dispatcher needs no lock of the language and waits for no other thread,
//! so publishers that wait for it make progress.

use super::between::{Between, Job};
use super::channels::{Ids, Recipients};
use super::history::{History, Next};
use super::hub::Shared;
use super::mailbox::{space, DatagramBuffer, TakenMail};
use super::passing::Passing;
use super::publication::{Origin, Publication};
use super::queue::Taken;
use super::reached::Targets;
use super::subscriber::Subscriber;
use crate::clock::Nanos;
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{fence, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Most publications that are delivered before their subscribers send.
const MOST_PUBLICATIONS: usize = 256;

/// Limits of the time in which a round delivers. Between them it is the time that the last sending took. So under load,
/// delivering and sending get half of the time each, and the longer the queue is, the more is sent in one write.
const SHORTEST_ROUND: Duration = Duration::from_millis(2);
const LONGEST_ROUND: Duration = Duration::from_millis(50);

/// The time after which the dispatcher looks into the history although nothing has woken it: a publisher may have died before
/// it could.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The same while another release publishes through the history, and cannot wake this dispatcher.
const JOINT_SLEEP: Duration = Duration::from_millis(10);

/// The longest time without mail for which messages of the history wait for mail from before another release uses it.
const LONGEST_MAIL: Duration = Duration::from_secs(1);

/// The capacity kept for touched subscribers. Clearing a larger table would slow down the small rounds that follow a
/// large one.
const MOST_KEPT: usize = 16 * 1024;

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    /// Lists of the recipients of the current publication.
    recipients: Vec<Recipients>,
    touched: Touched,
    space: Box<DatagramBuffer>,
    passing: Passing,
    /// The time of the last look at the clock.
    now: Nanos,
    /// The time in which the next round delivers.
    round: Duration,
    /// Set while another release uses the history.
    joint: Option<Joint>,
}

/// The time in which another release uses the history.
struct Joint {
    /// Publications that only one release has got, so far.
    divided: u64,
    /// The publications from before, which are in mailboxes, and the end of the wait for them.
    mail: Option<(Targets, Nanos)>,
}

/// Subscribers that have something to send, in the order in which they got it.
#[derive(Default)]
struct Touched {
    ids: HashSet<u64, Ids>,
    subscribers: Vec<Arc<dyn Subscriber>>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<Shared>, mut passing: Passing) -> Dispatcher {
        passing.note_joint(shared.history().is_some_and(History::is_joint));
        Dispatcher {
            shared,
            passing,
            now: Nanos::now(),
            recipients: Vec::new(),
            touched: Touched::default(),
            space: space(),
            round: SHORTEST_ROUND,
            joint: None,
        }
    }

    /// Runs until the queue is closed, and delivers everything that was in it.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let asleep = &shared.counters().asleep;
        loop {
            let now = Nanos::now();
            self.passing.tidy_up(now);
            let has_more = || {
                asleep.store(1, SeqCst);
                fence(SeqCst);
                shared.has_unread(self.passing.place())
            };
            let longest = self.longest_sleep(now);
            if !shared.queue.sleep(shared.mailbox(), longest, has_more) {
                break;
            }
            asleep.store(0, SeqCst);
            while self.deliver_round() {}
        }
        // Mail may have arrived between the last check and the end.
        while self.deliver_round() {}
    }

    fn longest_sleep(&self, now: Nanos) -> Option<Duration> {
        let history = self.shared.history();
        let has_history = history.is_some_and(|history| history.end() > 0);
        let is_joint = history.is_some_and(History::is_joint);
        let times = [
            self.shared.beat.remaining(now),
            has_history.then_some(LONGEST_SLEEP),
            is_joint.then_some(JOINT_SLEEP),
            self.passing.due().map(|due| due - now),
        ];
        times.into_iter().flatten().min()
    }

    /// Delivers and sends. Returns false if there was nothing to do.
    fn deliver_round(&mut self) -> bool {
        self.now = Nanos::now();
        let end = self.now + self.round;
        let mut handed_out = 0;
        let mut mail = true;
        if let Some(publication) = self.shared.beat.take(self.now) {
            self.recipients.extend(self.shared.channels.exact(&publication.channel));
            self.deliver(&publication);
        }
        while handed_out < MOST_PUBLICATIONS {
            let before = handed_out;
            let mut is_empty = false;
            match self.shared.queue.take() {
                Taken::Publication(publication) => self.hand_out(&publication),
                Taken::Unwanted(publication) => {
                    self.end_joint();
                    self.passing.pass(&publication, self.now);
                }
                Taken::Jobs(jobs) => self.run_between(jobs),
                Taken::Nothing => is_empty = true,
            }
            handed_out += usize::from(!is_empty);
            if mail {
                match self.next_mail() {
                    TakenMail::Mail(publication) => self.hand_out(&publication),
                    TakenMail::Spoiled | TakenMail::Announcement(..) | TakenMail::Wake => {}
                    TakenMail::Nothing => mail = false,
                }
                handed_out += usize::from(mail);
            }
            handed_out += usize::from(self.read_on());
            self.now = Nanos::now();
            if handed_out == before || self.now >= end {
                break;
            }
        }
        self.flush();
        handed_out > 0
    }

    fn next_mail(&mut self) -> TakenMail {
        match &self.shared.bus {
            Some((bus, slot)) => bus.take(*slot, &mut self.space),
            None => TakenMail::Nothing,
        }
    }

    /// Delivers the next message of the history. Returns false if there is none.
    fn read_on(&mut self) -> bool {
        let mut place = self.passing.place();
        if !self.shared.has_unread(place) {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let Some(history) = shared.history() else {
            return false;
        };
        if history.is_joint() && !self.begin_joint(history) {
            return false;
        }
        let recipients = &mut self.recipients;
        let next = history.next(&mut place, |channel| {
            shared.channels.find(channel, recipients);
            !recipients.is_empty()
        });
        shared.has_read(place);
        let is_end = matches!(next, Next::Nothing);
        match next {
            Next::Message(publication) => self.deliver(&publication),
            Next::TooLong if history.is_joint() => {
                let lists: Vec<Recipients> = self.recipients.drain(..).collect();
                shared.lose(&lists);
            }
            Next::Overrun => {
                self.recipients.clear();
                shared.lose_all();
            }
            Next::TooLong => self.recipients.clear(),
            Next::Unwanted | Next::Nothing => {}
        }
        self.passing.move_to(place);
        !is_end
    }

    /// Another release uses the history, too. Returns false while mail from before that moment may come: it goes first.
    fn begin_joint(&mut self, history: &History) -> bool {
        self.passing.note_joint(true);
        let joint = self.joint.get_or_insert_with(|| Joint {
            divided: history.divided(),
            mail: Some((self.shared.targets(), self.now + LONGEST_MAIL)),
        });
        if let Some((mail, until)) = &joint.mail {
            if self.now < *until && !self.shared.has_reached(mail) {
                return false;
            }
            joint.mail = None;
        }
        if joint.divided != history.divided() {
            joint.divided = history.divided();
            self.shared.lose_all();
        }
        true
    }

    /// Mail has come. If the history is joint no longer, everything in it goes first.
    fn end_joint(&mut self) {
        if !self.passing.is_joint() || self.shared.history().is_some_and(History::is_joint) {
            return;
        }
        self.joint = None;
        self.passing.note_joint(false);
        let end = self.shared.history().map_or(0, History::end);
        while self.passing.place() < end && self.read_on() {}
    }

    fn hand_out(&mut self, publication: &Arc<Publication>) {
        self.end_joint();
        if !matches!(publication.origin, Origin::SentToOthers(_)) {
            self.shared.channels.find(&publication.channel, &mut self.recipients);
            self.deliver(publication);
        }
        self.passing.pass(publication, self.now);
        if let Some(Joint {
            mail: Some((_, until)), ..
        }) = &mut self.joint
        {
            *until = self.now + LONGEST_MAIL;
        }
    }

    /// Runs jobs between two publications.
    fn run_between(&mut self, jobs: Vec<Job>) {
        let shared = Arc::clone(&self.shared);
        let between = Between::new(&mut self.passing, shared.history());
        for job in jobs {
            if catch_unwind(AssertUnwindSafe(|| job(&between))).is_err() {
                shared.panics.fetch_add(1, Relaxed);
            }
        }
    }

    /// Delivers to the recipients that were found.
    fn deliver(&mut self, publication: &Arc<Publication>) {
        let mut delivered = 0;
        for list in self.recipients.drain(..) {
            delivered += list.len();
            self.shared.for_each(&list, |recipient| {
                if recipient.subscriber.deliver(publication, recipient.delivery) {
                    self.touched.add(&recipient.subscriber);
                }
            });
        }
        self.shared.counters().delivered.fetch_add(delivered as u64, Relaxed);
    }

    fn flush(&mut self) {
        if self.touched.subscribers.is_empty() {
            return;
        }
        let begun = Nanos::now();
        self.shared
            .for_each(&self.touched.subscribers, |subscriber| subscriber.flush());
        self.touched.clear();
        self.round = (Nanos::now() - begun).clamp(SHORTEST_ROUND, LONGEST_ROUND);
    }
}

impl Shared {
    /// Tells all subscribers that they may have lost messages.
    fn lose_all(&self) {
        self.lose(&self.channels.all());
    }

    fn lose(&self, lists: &[Recipients]) {
        self.counters().mail_lost.fetch_add(1, Relaxed);
        lists
            .iter()
            .for_each(|list| self.for_each(list, |recipient| recipient.subscriber.lose()));
    }

    /// Calls `act` with each of `items`. After a panic it continues with the others.
    fn for_each<T>(&self, items: &[T], mut act: impl FnMut(&T)) {
        let mut rest = items.iter();
        while catch_unwind(AssertUnwindSafe(|| rest.by_ref().for_each(&mut act))).is_err() {
            self.panics.fetch_add(1, Relaxed);
        }
    }
}

impl Touched {
    fn add(&mut self, subscriber: &Arc<dyn Subscriber>) {
        if self.ids.insert(subscriber.id()) {
            self.subscribers.push(Arc::clone(subscriber));
        }
    }

    fn clear(&mut self) {
        if self.subscribers.len() > MOST_KEPT {
            *self = Touched::default();
        }
        self.ids.clear();
        self.subscribers.clear();
    }
}
