//! The dispatcher: the one native thread of a process that delivers. It takes what was published here and what came by mail,
//! hands each publication to its subscribers, and then has every subscriber that was touched send all of it at once.
//!
//! One queue and one thread keep the order. It needs no lock of a language and waits for nobody, so whoever waits for it
//! does get on.

use super::channels::{Ids, Recipients};
use super::hub::Shared;
use super::mailbox::{space, DatagramBuffer, TakenMail};
use super::publication::Publication;
use super::subscriber::Subscriber;
use crate::clock::Nanos;
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// Publications handed out before their subscribers send.
const MOST_PUBLICATIONS: usize = 256;

/// The time to hand out. Within these limits it is what the last sending took: under load half of the time
/// each, and the more that waits, the more goes out in one write.
const SHORTEST_ROUND: Duration = Duration::from_millis(2);
const LONGEST_ROUND: Duration = Duration::from_millis(50);

/// Touched subscribers for which room is kept; to clear more of it would burden the small rounds that follow a large one.
const MOST_KEPT: usize = 16 * 1024;

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    /// Lists of those who get the publication at hand.
    recipients: Vec<Recipients>,
    touched: Touched,
    space: Box<DatagramBuffer>,
    /// How long the next round hands out.
    round: Duration,
}

/// Who has something to send, in the order in which they got it.
#[derive(Default)]
struct Touched {
    ids: HashSet<u64, Ids>,
    subscribers: Vec<Arc<dyn Subscriber>>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<Shared>) -> Dispatcher {
        Dispatcher {
            shared,
            recipients: Vec::new(),
            touched: Touched::default(),
            space: space(),
            round: SHORTEST_ROUND,
        }
    }

    /// Works until the queue is closed and what had come by then is delivered.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        while shared.queue.sleep(shared.mailbox()) {
            while self.deliver_round() {}
        }
        // Mail may have come after the last look and before the end.
        while self.deliver_round() {}
    }

    /// Hands out and sends; false when there was nothing to do.
    fn deliver_round(&mut self) -> bool {
        let end = Nanos::now() + self.round;
        let mut handed_out = 0;
        let mut mail = true;
        while handed_out < MOST_PUBLICATIONS {
            let before = handed_out;
            if let Some(publication) = self.shared.queue.take() {
                self.hand_out(&publication);
                handed_out += 1;
            }
            if mail {
                match self.next_mail() {
                    TakenMail::Mail(publication) => self.hand_out(&Arc::new(publication)),
                    TakenMail::Spoiled | TakenMail::Introduction(..) => {}
                    TakenMail::Nothing => mail = false,
                }
                handed_out += usize::from(mail);
            }
            if handed_out == before || Nanos::now() >= end {
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

    fn hand_out(&mut self, publication: &Arc<Publication>) {
        self.shared.channels.find(&publication.channel, &mut self.recipients);
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
    /// Calls `act` with each of `items`, with the others too when it panics with one.
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
