//! Subscribers that move from worker to worker while everybody publishes.

use crate::recorder::*;
use fairlead_engine::pubsub::{
    Between, Bus, Cut, Delivery, History, Hub, Lost, Match, Posted, Publication, Scope, Subscriber, Targets,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::{scope, Scope as Threads};

/// The subscriptions of each traveller.
const SUBSCRIPTIONS: [(&[u8], Match); 2] = [(b"news", Match::Exact), (b"wild.*", Match::Glob)];

/// A subscriber without a worker.
#[derive(Default)]
struct Traveller {
    received: Mutex<Vec<String>>,
    /// The number of publications that a worker has delivered on arrival, and the number that one has skipped.
    missed: AtomicUsize,
    skipped: AtomicUsize,
    /// Increases when it leaves, and again when it arrives.
    steps: AtomicUsize,
}

/// A traveller at a worker.
struct Stay {
    id: u64,
    traveller: Arc<Traveller>,
    /// It has got these.
    cut: Cut,
}

impl Traveller {
    fn receive(&self, publication: &Publication) {
        let text = String::from_utf8_lossy(&publication.message).into_owned();
        self.received.lock().push(text);
    }
}

impl Subscriber for Stay {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
        if self.cut.has(publication) {
            self.traveller.skipped.fetch_add(1, SeqCst);
        } else {
            self.traveller.receive(publication);
        }
        false
    }

    fn flush(&self) {}

    fn is_open(&self) -> bool {
        true
    }
}

impl Stay {
    fn subscribe(self: &Arc<Self>, hub: &Hub) {
        for (name, kind) in SUBSCRIPTIONS {
            let subscriber: Arc<dyn Subscriber> = Arc::<Stay>::clone(self);
            hub.subscribe(subscriber, name, kind, Delivery::Text);
        }
    }

    /// Leaves a worker, with a cut.
    fn leave(&self, hub: &Arc<Hub>) -> Vec<u8> {
        let (own, id) = (Arc::clone(hub), self.id);
        let mut cut = between(hub, move |between| {
            for (name, _) in SUBSCRIPTIONS {
                own.unsubscribe(id, name);
            }
            Cut::clone(&between.cut())
        });
        cut.add_all(&self.cut);
        cut.to_bytes()
    }
}

/// Arrives at a worker.
fn arrive(traveller: &Arc<Traveller>, hub: &Arc<Hub>, cut: &[u8]) -> Result<Arc<Stay>, Lost> {
    let cut = Cut::from_bytes(cut).unwrap();
    let (own, traveller) = (Arc::clone(hub), Arc::clone(traveller));
    between(hub, move |between| {
        let missed = between.missed(&cut, &|channel| channel == b"news" || channel.starts_with(b"wild."))?;
        missed.iter().for_each(|publication| traveller.receive(publication));
        traveller.missed.fetch_add(missed.len(), SeqCst);
        let id = next_id();
        let stay = Arc::new(Stay { id, traveller, cut });
        stay.subscribe(&own);
        Ok(stay)
    })
}

/// Returns the result of `job`.
fn between<R: Send + 'static>(hub: &Hub, job: impl FnOnce(&Between<'_>) -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    assert!(hub.at_cut(Box::new(move |between| sender.send(job(between)).unwrap())));
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn reach(hub: &Hub, targets: &Targets) {
    eventually("the dispatcher has handed everything out", || hub.has_reached(targets));
}

/// Workers that share a history of a mebibyte; all but the last are started.
fn workers<const COUNT: usize>() -> (Arc<Bus>, [Arc<Hub>; COUNT]) {
    let words = (0..128 * 1024).map(|_| Default::default()).collect::<Vec<_>>().leak();
    let history = History::create(words, None).unwrap();
    let bus = Bus::new(Box::leak(Box::default()), COUNT).unwrap();
    let bus = Arc::new(bus.with_history(Some(Arc::new(history))));
    let hubs = std::array::from_fn(|slot| Hub::new(Some((Arc::clone(&bus), slot))).unwrap());
    hubs.iter().take(COUNT - 1).for_each(|hub| hub.start().unwrap());
    (bus, hubs)
}

/// A run of publishers and travellers.
struct Journey {
    bus: Arc<Bus>,
    hubs: [Arc<Hub>; 4],
    travellers: [Arc<Traveller>; 3],
    /// Everything from before the start of the last worker.
    late: OnceLock<Targets>,
    has_seen_enough: AtomicBool,
    /// The number of messages of each publisher.
    published: Mutex<HashMap<String, usize>>,
}

/// Workers that travellers visit. The other one only publishes.
const VISITED: [usize; 3] = [0, 1, LATE];
const LATE: usize = 3;

impl Journey {
    fn publisher<'a>(
        &'a self,
        threads: &'a Threads<'a, '_>,
        name: &str,
        publish: impl Fn(&[u8], &mut dyn FnMut(&mut dyn FnMut())) -> Posted + Send + 'a,
    ) {
        let name = name.to_string();
        threads.spawn(move || {
            let mut count = 0;
            while !self.has_seen_enough.load(SeqCst) {
                let filler = if count % 100 == 99 { 40_000 } else { count % 50 };
                let message = format!("{name} {count} {}", "x".repeat(filler));
                assert_eq!(publish(message.as_bytes(), &mut |wait| wait()), Posted::default());
                count += 1;
                // Neither a worker nor a traveller may fall so far behind that the others forget what it has not got.
                if count % 20 == 0 {
                    self.wait_for_all();
                }
            }
            self.published.lock().insert(name, count);
        });
    }

    fn wait_for_all(&self) {
        let targets = self.hubs[0].targets();
        let hubs = self.hubs.iter().enumerate();
        hubs.filter(|(number, _)| *number != LATE || self.late.get().is_some())
            .for_each(|(_, hub)| reach(hub, &targets));
        for traveller in &self.travellers {
            let steps = || traveller.steps.load(SeqCst);
            let before = steps();
            eventually("the traveller arrives", || before % 2 == 0 || steps() > before);
        }
    }

    fn publish<'a>(&'a self, threads: &'a Threads<'a, '_>) {
        for (number, hub) in self.hubs.iter().enumerate() {
            for (name, channel) in [("a", &b"news"[..]), ("b", b"wild.life"), ("c", b"unwanted")] {
                self.publisher(threads, &format!("{name}{number}"), move |message, block| {
                    hub.publish(channel, message, Scope::Cluster, block)
                });
            }
            self.publisher(threads, &format!("kept{number}"), move |message, block| {
                hub.publish_kept(b"wild.kept", message, block)
            });
        }
        let publisher_only = &self.hubs[2];
        self.publisher(threads, "siblings", |message, block| {
            publisher_only.publish(b"news", message, Scope::Siblings, block)
        });
        self.publisher(threads, "others", |message, block| {
            self.bus.publish(b"news", message, block)
        });
        self.publisher(threads, "keep", |message, block| self.bus.keep(b"news", message, block));
    }

    /// Travels until it has seen enough,
    fn travel(&self, traveller: &Arc<Traveller>, mut stay: Arc<Stay>, mut random: u32) {
        let (mut moves, mut here) = (0, 0);
        let seen = |counter: &AtomicUsize| counter.load(SeqCst);
        while moves < 200 || seen(&traveller.missed).min(seen(&traveller.skipped)) < 50 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let there = VISITED[random as usize % 65_536 % VISITED.len()];
            if there == LATE {
                let late = if moves < 50 {
                    self.late.get()
                } else {
                    Some(self.start_late())
                };
                let Some(late) = late else {
                    continue;
                };
                reach(&self.hubs[here], late);
            }
            traveller.steps.fetch_add(1, SeqCst);
            let cut = stay.leave(&self.hubs[here]);
            stay = arrive(traveller, &self.hubs[there], &cut).unwrap();
            traveller.steps.fetch_add(1, SeqCst);
            (moves, here) = (moves + 1, there);
        }
        let missed_and_skipped = [&traveller.missed, &traveller.skipped].map(seen);
        println!("{moves} moves, {missed_and_skipped:?} missed and skipped");
        drop(stay);
    }

    /// Starts the last worker, and returns everything from before its start.
    fn start_late(&self) -> &Targets {
        self.late.get_or_init(|| {
            self.hubs[LATE].start().unwrap();
            self.hubs[LATE].targets()
        })
    }
}

#[test]
fn travellers_get_each_publication_once_and_in_order() {
    let (bus, hubs) = workers();
    let journey = Journey {
        bus,
        hubs,
        travellers: Default::default(),
        late: OnceLock::new(),
        has_seen_enough: AtomicBool::new(false),
        published: Mutex::default(),
    };
    let nothing = Cut::default().to_bytes();
    let begin = |traveller| arrive(traveller, &journey.hubs[0], &nothing).unwrap();
    let stays = journey.travellers.each_ref().map(begin);
    scope(|threads| {
        journey.publish(threads);
        let moving = journey.travellers.iter().zip(stays).zip(1..);
        let travel = |((traveller, stay), random)| journey.travel(traveller, stay, random);
        let moving = moving.map(|traveller| threads.spawn(move || travel(traveller)));
        let ended: Vec<_> = moving
            .collect::<Vec<_>>()
            .into_iter()
            .map(|travel| travel.join())
            .collect();
        journey.has_seen_enough.store(true, SeqCst);
        assert!(ended.iter().all(Result::is_ok));
    });
    journey.wait_for_all();
    for traveller in &journey.travellers {
        journey.assert_is_complete(&traveller.received.lock());
    }
}

#[test]
fn a_mailbox_that_was_given_up_is_no_loss_for_a_traveller() {
    let (bus, [stuck, other]) = workers();
    other.start().unwrap();
    let (recorder, traveller) = (Recorder::on(&stuck, "news"), Arc::default());
    let stay = arrive(&traveller, &stuck, &Cut::default().to_bytes()).unwrap();
    recorder.gate().shut();
    let publish = |number: usize, block: &mut dyn FnMut(&mut dyn FnMut())| {
        let message = format!("others {number} {}", "x".repeat(10_000));
        bus.publish(b"news", message.as_bytes(), block)
    };
    let taken = (0..).take_while(|number| publish(*number, &mut |wait| wait()) == Posted::default());
    let taken = taken.count();
    for number in taken + 1..taken + 4 {
        assert_eq!(publish(number, &mut |_| panic!("waits")), Posted { undelivered: 1 });
    }
    recorder.gate().open();
    recorder.wait_for(taken);
    assert_eq!(publish(taken + 4, &mut |_| panic!("waits")), Posted::default());
    recorder.wait_for(taken + 1);
    reach(&other, &other.targets());
    let cut = stay.leave(&stuck);
    let _stay = arrive(&traveller, &other, &cut).unwrap();
    assert_eq!(traveller.missed.load(SeqCst), 4);
    let mut received: Vec<usize> = traveller.received.lock().iter().map(|it| number(it)).collect();
    received.sort_unstable();
    assert!(received.into_iter().eq(0..taken + 5));
}

#[test]
fn a_traveller_hears_that_publications_are_lost() {
    let (bus, [first, second, late]) = workers();
    let traveller = Arc::default();
    let stay = arrive(&traveller, &first, &Cut::default().to_bytes()).unwrap();
    let leave = || {
        reach(&second, &first.targets());
        stay.leave(&first)
    };
    let mail = |message: &[u8]| bus.publish(b"unwanted", message, &mut |wait| wait());
    let kept = |message: &[u8]| bus.keep(b"unwanted", message, &mut |wait| wait());
    type Way<'a> = &'a dyn Fn(&[u8]) -> Posted;
    for (publish, size, few, many) in [(&mail as Way<'_>, 2_000, 1000, 5000), (&kept, 20_000, 10, 100)] {
        let cut = leave();
        for (count, is_lost) in [(few, false), (many, true)] {
            for _ in 0..count {
                assert_eq!(publish(&vec![b'x'; size]), Posted::default());
            }
            reach(&second, &second.targets());
            assert_eq!(arrive(&traveller, &second, &cut).is_err(), is_lost);
        }
    }
    let before = leave();
    assert_eq!(mail(b"before the start"), Posted::default());
    late.start().unwrap();
    assert_eq!(arrive(&traveller, &late, &before).err(), Some(Lost));
    assert!(arrive(&traveller, &late, &leave()).is_ok());
}

#[test]
fn a_message_for_siblings_is_for_the_subscribers_that_were_elsewhere() {
    let (_, [first, second]) = workers();
    second.start().unwrap();
    let traveller = Arc::default();
    let stay = arrive(&traveller, &second, &Cut::default().to_bytes()).unwrap();
    // The message comes to the second worker after the traveller has left.
    let (from, to, id) = (Arc::clone(&first), Arc::clone(&second), stay.id);
    let cut = between(&second, move |between| {
        for (name, _) in SUBSCRIPTIONS {
            to.unsubscribe(id, name);
        }
        publish(&from, "news", "to the second", Scope::Siblings);
        between.cut().to_bytes()
    });
    let stay = arrive(&traveller, &first, &cut).unwrap();
    publish(&first, "news", "not to the first", Scope::Siblings);
    let _stay = arrive(&traveller, &second, &stay.leave(&first)).unwrap();
    publish(&first, "news", "end", Scope::Cluster);
    reach(&second, &first.targets());
    assert_eq!(*traveller.received.lock(), ["to the second", "end"]);
}

#[test]
fn a_job_runs_after_the_publications_that_were_queued_before_it() {
    let hub = Hub::new(None).unwrap();
    assert!(!hub.at_cut(Box::new(|_| panic!("runs"))), "there is no dispatcher yet");
    hub.start().unwrap();
    let (recorder, jobs) = (Recorder::on(&hub, "news"), Arc::new(Mutex::new(Vec::new())));
    recorder.gate().shut();
    publish(&hub, "news", "hold", Scope::Process);
    recorder.gate().wait_until_reached();
    for number in 1..4 {
        for job in 0..100 {
            let (jobs, recorder) = (Arc::clone(&jobs), Arc::clone(&recorder));
            assert!(hub.at_cut(Box::new(move |_| {
                jobs.lock().push((number, recorder.wait_for(0).len()));
                assert_ne!((number, job), (2, 7), "to be expected in this test");
            })));
        }
        publish(&hub, "news", number.to_string(), Scope::Process);
    }
    recorder.gate().open();
    hub.stop();
    let expected = (1..4).flat_map(|number| [(number, number); 100]);
    assert!(jobs.lock().iter().copied().eq(expected));
    assert_eq!((recorder.messages(0).len(), hub.stats().panics), (4, 1));
    assert!(
        !hub.at_cut(Box::new(|_| panic!("runs"))),
        "there is no dispatcher any more"
    );
}

/// The number in a message.
fn number(message: &str) -> usize {
    message.split(' ').nth(1).unwrap().parse().unwrap()
}

impl Journey {
    /// Asserts that a traveller has got each message of each publisher once, and in order.
    fn assert_is_complete(&self, received: &[String]) {
        let mut expected: HashMap<&str, usize> = HashMap::new();
        for message in received {
            let (publisher, _) = message.split_once(' ').unwrap();
            let next = expected.entry(publisher).or_default();
            assert_eq!(number(message), *next, "the next message of {publisher}");
            *next += 1;
        }
        let published = self.published.lock();
        let wanted = published.iter().filter(|(name, _)| !name.starts_with('c'));
        for (name, count) in wanted {
            assert_eq!(expected.get(&**name), Some(count), "messages of {name}");
        }
    }
}
