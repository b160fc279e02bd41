//! Subscribers that move to workers of another release, which share nothing but the history with their own.

use crate::recorder::*;
use fairlead_engine::pubsub::{
    Between, Bus, Cut, Delivery, History, Hub, Match, Posted, Publication, Scope, Subscriber,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread::scope;
use std::time::{Duration, Instant};

/// A subscriber that moves once.
struct Traveller {
    id: u64,
    received: Mutex<Vec<String>>,
    /// It was received elsewhere.
    seen: Mutex<Cut>,
    losses: AtomicUsize,
}

impl Subscriber for Traveller {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
        if self.seen.lock().has(publication) {
            return false;
        }
        let message = String::from_utf8_lossy(&publication.message);
        self.received.lock().push(message.chars().take(40).collect());
        false
    }

    fn flush(&self) {}

    fn is_open(&self) -> bool {
        true
    }

    fn lose(&self) {
        self.losses.fetch_add(1, SeqCst);
    }
}

impl Traveller {
    fn begin(hub: &Hub) -> Arc<Traveller> {
        let traveller = Arc::new(Traveller {
            id: next_id(),
            received: Mutex::default(),
            seen: Mutex::default(),
            losses: AtomicUsize::new(0),
        });
        hub.subscribe(traveller.clone(), b"news", Match::Exact, Delivery::Text);
        traveller
    }

    fn go(self: &Arc<Self>, from: &Arc<Hub>, to: &Arc<Hub>) {
        let targets = from.targets();
        // A publisher that is interrupted at the wrong moment leaves a gap, which counts as lost after 20 seconds at most.
        let begun = Instant::now();
        while !from.has_reached(&targets) {
            assert!(begun.elapsed() < 3 * PATIENCE, "it reaches everything from before");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (own, hub) = (Arc::clone(self), Arc::clone(from));
        let place = between(from, move |between| {
            hub.unsubscribe(own.id, b"news");
            between.cut().place()
        });
        let (own, hub) = (Arc::clone(self), Arc::clone(to));
        between(to, move |between| {
            let missed = between.missed_in_history(place, &|channel| channel == b"news").unwrap();
            hub.subscribe(own.clone(), b"news", Match::Exact, Delivery::Text);
            *own.seen.lock() = Cut::up_to(place);
            missed.iter().for_each(|one| _ = own.deliver(one, Delivery::Text));
        });
    }
}

fn between<R: Send + 'static>(hub: &Hub, job: impl FnOnce(&Between<'_>) -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    assert!(hub.at_cut(Box::new(move |between| sender.send(job(between)).unwrap())));
    receiver.recv_timeout(PATIENCE).unwrap()
}

/// Ends the publishers, also after a failure.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Two workers of each of two releases. `words`: of the history.
fn releases(words: usize) -> (Arc<History>, [Arc<Bus>; 2], [Arc<Hub>; 4]) {
    let words = (0..words).map(|_| Default::default()).collect::<Vec<_>>().leak();
    let history = Arc::new(History::create(words, None).unwrap());
    let bus = |()| {
        let bus = Bus::new(Box::leak(Box::default()), 2).unwrap();
        Arc::new(bus.with_history(Some(Arc::clone(&history))))
    };
    let buses = [(); 2].map(bus);
    let hubs = std::array::from_fn(|index| Hub::new(Some((Arc::clone(&buses[index / 2]), index % 2))).unwrap());
    (history, buses, hubs)
}

#[test]
fn a_subscriber_that_moves_to_another_release_gets_each_publication_once_and_in_order() {
    let (history, buses, hubs) = releases(512 * 1024);
    hubs[..2].iter().for_each(|hub| hub.start().unwrap());
    let travellers = [0, 0, 1].map(|hub| (hub, Traveller::begin(&hubs[hub])));
    let is_over = AtomicBool::new(false);
    let published: Mutex<HashMap<String, usize>> = Mutex::default();
    let publisher = |name: &str, publish: &dyn Fn(&[u8]) -> Posted| {
        let mut count = 0;
        while !is_over.load(SeqCst) {
            let message = format!("{name} {count} {}", "x".repeat(count % 300));
            assert_eq!(publish(message.as_bytes()), Posted::default());
            count += 1;
            std::thread::sleep(Duration::from_micros(200));
        }
        published.lock().insert(name.into(), count);
    };
    let has_begun = AtomicBool::new(false);
    scope(|threads| {
        let (publisher, has_begun) = (&publisher, &has_begun);
        let over = Over(&is_over);
        for (number, hub) in hubs.iter().enumerate() {
            threads.spawn(move || {
                // The workers of the other release publish nothing before the history is joint.
                eventually("the start", || number < 2 || has_begun.load(SeqCst));
                publisher(&format!("plain{number}"), &|message| {
                    hub.publish(b"news", message, Scope::Cluster, &mut |wait| wait())
                });
            });
        }
        let (kept, child) = (&hubs[0], &buses[0]);
        threads.spawn(move || {
            publisher("kept", &|message| {
                kept.publish_kept(b"news", message, &mut |wait| wait())
            });
        });
        threads.spawn(move || {
            publisher("child", &|message| child.publish(b"news", message, &mut |wait| wait()));
        });
        std::thread::sleep(Duration::from_millis(30));
        history.set_joint(true);
        hubs[2..].iter().for_each(|hub| hub.start().unwrap());
        has_begun.store(true, SeqCst);
        for (from, traveller) in &travellers {
            std::thread::sleep(Duration::from_millis(50));
            traveller.go(&hubs[*from], &hubs[3 - from]);
        }
        std::thread::sleep(Duration::from_millis(50));
        drop(over);
    });
    // The workers of the first release have ended.
    hubs[..2].iter().for_each(|hub| hub.stop());
    history.set_joint(false);
    hubs[3].publish(b"news", b"last 0", Scope::Cluster, &mut |wait| wait());
    published.lock().insert("last".into(), 1);
    for (_, traveller) in &travellers {
        let has_last = || traveller.received.lock().last().is_some_and(|last| last == "last 0");
        eventually("the last message, at the end", has_last);
        assert_eq!(traveller.losses.load(SeqCst), 0);
        let mut next: HashMap<String, usize> = HashMap::new();
        for message in traveller.received.lock().iter() {
            let mut words = message.split(' ');
            let (name, number) = (words.next().unwrap(), words.next().unwrap().parse::<usize>().unwrap());
            let next = next.entry(name.into()).or_default();
            assert_eq!(number, *next, "of {name}");
            *next += 1;
        }
        assert_eq!(next, *published.lock());
    }
}

#[test]
fn subscribers_in_both_releases_hear_of_a_message_that_is_too_long_to_reach_all_of_them() {
    let (history, _, hubs) = releases(64 * 1024);
    history.set_joint(true);
    hubs.iter().for_each(|hub| hub.start().unwrap());
    let subscribers = [0, 3].map(|hub| Traveller::begin(&hubs[hub]));
    let publish = |message: &[u8]| hubs[1].publish(b"news", message, Scope::Cluster, &mut |wait| wait());
    assert_eq!(publish(&[b'x'; 100_000]), Posted { undelivered: 1 });
    for subscriber in &subscribers {
        eventually("it is told", || subscriber.losses.load(SeqCst) == 1);
    }
    assert_eq!(publish(b"short"), Posted::default());
    for subscriber in &subscribers {
        eventually("the next one", || *subscriber.received.lock() == ["short"]);
    }
}

#[test]
fn a_dispatcher_that_sleeps_hears_what_the_other_release_publishes() {
    let (history, buses, hubs) = releases(64 * 1024);
    hubs[0].start().unwrap();
    let subscriber = Traveller::begin(&hubs[0]);
    hubs[0].publish(b"news", b"by mail", Scope::Cluster, &mut |wait| wait());
    eventually("it sleeps soon", || !subscriber.received.lock().is_empty());
    std::thread::sleep(Duration::from_millis(20));
    history.set_joint(true);
    buses[0].rouse();
    hubs[2].start().unwrap();
    hubs[2].publish(b"news", b"by history", Scope::Cluster, &mut |wait| wait());
    eventually("the message", || {
        *subscriber.received.lock() == ["by mail", "by history"]
    });
}
