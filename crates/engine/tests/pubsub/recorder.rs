//! A subscriber that records its messages, and can delay the dispatcher.

use fairlead_engine::pubsub::{Delivery, Hub, Match, Posted, Publication, Scope, Subscriber};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Recorder {
    id: u64,
    closed: AtomicBool,
    seen: Mutex<Vec<(Arc<Publication>, Delivery)>>,
    changed: Condvar,
    flushed: AtomicUsize,
    gate: Gate,
}

/// Holds the dispatcher while it is shut.
#[derive(Default)]
pub struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
    reached: AtomicBool,
}

impl Gate {
    pub fn shut(&self) {
        *self.shut.lock() = true;
    }

    pub fn open(&self) {
        *self.shut.lock() = false;
        self.opened.notify_all();
    }

    pub fn wait_until_reached(&self) {
        eventually("the dispatcher stands at the gate", || self.reached.load(SeqCst));
    }

    fn pass(&self) {
        let mut shut = self.shut.lock();
        self.reached.store(*shut, SeqCst);
        self.opened.wait_while_for(&mut shut, |shut| *shut, PATIENCE);
    }
}

impl Subscriber for Recorder {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool {
        self.gate.pass();
        self.seen.lock().push((Arc::clone(publication), delivery));
        self.changed.notify_all();
        true
    }

    fn flush(&self) {
        self.flushed.fetch_add(1, SeqCst);
    }

    fn is_open(&self) -> bool {
        !self.closed.load(SeqCst)
    }
}

impl Recorder {
    pub fn new() -> Arc<Recorder> {
        Arc::new(Recorder {
            id: next_id(),
            closed: AtomicBool::new(false),
            seen: Mutex::default(),
            changed: Condvar::new(),
            flushed: AtomicUsize::new(0),
            gate: Gate::default(),
        })
    }

    /// A recorder with a subscription to a channel.
    pub fn on(hub: &Hub, channel: &str) -> Arc<Recorder> {
        let recorder = Recorder::new();
        recorder.subscribe(hub, channel, Match::Exact);
        recorder
    }

    pub fn subscribe(self: &Arc<Self>, hub: &Hub, text: &str, kind: Match) -> usize {
        self.subscribe_as(hub, text, kind, Delivery::Text)
    }

    pub fn subscribe_as(self: &Arc<Self>, hub: &Hub, text: &str, kind: Match, delivery: Delivery) -> usize {
        hub.subscribe(Arc::clone(self) as Arc<dyn Subscriber>, text.as_bytes(), kind, delivery)
    }

    pub fn close(&self) {
        self.closed.store(true, SeqCst);
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn flushed(&self) -> usize {
        self.flushed.load(SeqCst)
    }

    /// Waits until there are `count` messages, and returns all.
    pub fn wait_for(&self, count: usize) -> Vec<(Arc<Publication>, Delivery)> {
        let mut seen = self.seen.lock();
        let end = Instant::now() + PATIENCE;
        while seen.len() < count {
            let late = self.changed.wait_until(&mut seen, end).timed_out();
            assert!(!late, "only {} of {count} publications came", seen.len());
        }
        seen.clone()
    }

    /// Does the same, and returns texts.
    pub fn messages(&self, count: usize) -> Vec<String> {
        let text = |message: &[u8]| String::from_utf8_lossy(message).into_owned();
        self.wait_for(count).iter().map(|(it, _)| text(&it.message)).collect()
    }
}

pub fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, SeqCst) + 1
}

/// Publishes without waiting.
pub fn publish(hub: &Hub, channel: &str, message: impl AsRef<[u8]>, scope: Scope) -> Posted {
    hub.publish(channel.as_bytes(), message.as_ref(), scope, &mut |_| panic!("waits"))
}

/// Publishes, and increments `waits` if it has to wait.
pub fn publish_patiently(hub: &Hub, channel: &str, message: impl AsRef<[u8]>, waits: &AtomicUsize) -> Posted {
    hub.publish(channel.as_bytes(), message.as_ref(), Scope::Cluster, &mut |wait| {
        waits.fetch_add(1, SeqCst);
        wait();
    })
}

pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Publishes from `threads` threads, `count` messages each, which contain their thread and number; some are long.
pub fn publish_from_threads(hub: &Arc<Hub>, channel: &str, name: &str, threads: usize, count: usize) {
    let waits = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (hub, waits) = (hub, &waits);
            scope.spawn(move || {
                for number in 0..count {
                    let filler = if number % 100 == 99 { 40_000 } else { number % 50 };
                    let message = format!("{name}{thread} {number} {}", "x".repeat(filler));
                    let posted = publish_patiently(hub, channel, message, waits);
                    assert_eq!(posted, Posted::default());
                }
            });
        }
    });
}

/// Asserts that every message of every publisher has arrived once and in order.
pub fn assert_in_order(messages: &[String], publishers: usize, count: usize) {
    let mut next = std::collections::HashMap::new();
    for message in messages {
        let mut words = message.split(' ');
        let publisher = words.next().unwrap().to_string();
        let number: usize = words.next().unwrap().parse().unwrap();
        let expected = next.entry(publisher.clone()).or_insert(0);
        assert_eq!(number, *expected, "the next message of {publisher}");
        *expected += 1;
    }
    assert_eq!(next.len(), publishers);
    assert!(next.values().all(|received| *received == count), "{next:?}");
}
