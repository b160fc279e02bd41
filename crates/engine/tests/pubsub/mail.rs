//! Messages between workers.

use crate::recorder::*;
use fairlead_engine::pubsub::{Bus, Hub, Match, Posted, Scope};
use fairlead_engine::Scoreboard;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn bus() -> Arc<Bus> {
    Arc::new(Bus::new(Box::leak(Box::default()), 6).unwrap())
}

fn worker(bus: &Arc<Bus>, slot: usize) -> Arc<Hub> {
    let hub = Hub::new(Some((Arc::clone(bus), slot))).unwrap();
    hub.start().unwrap();
    hub
}

/// Marks a worker as a reader of its mailbox although it does not read: it was killed, and nobody has noticed yet.
fn dead_worker(bus: &Arc<Bus>, slot: usize) -> &'static Scoreboard {
    worker(bus, slot).stop();
    bus.scoreboard().slot(slot).reads_mail.store(1, SeqCst);
    bus.scoreboard()
}

/// Publishes from the supervisor until it has to wait, and then calls `block`.
fn publish_until_full(bus: &Bus, message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> (usize, Posted) {
    let mut waits = 0;
    for count in 1..1_000_000 {
        let posted = bus.publish(b"news", message, &mut |wait| {
            waits += 1;
            block(wait);
        });
        if waits > 0 {
            return (count, posted);
        }
        assert_eq!(posted, Posted::default());
    }
    panic!("the mailbox has no bound");
}

#[test]
fn messages_of_all_sizes_arrive_whole_at_every_worker() {
    let bus = bus();
    let hubs = [0, 1, 5].map(|slot| worker(&bus, slot));
    let recorders = hubs.each_ref().map(|hub| Recorder::on(hub, "news"));
    let sizes = [
        0,
        1,
        32 * 1024 - 4,
        32 * 1024 - 3,
        32 * 1024,
        32 * 1024 + 1,
        10 << 20,
        3,
    ];
    let message = |size: usize| (0..size).map(|byte| (byte * 7 + size) as u8).collect::<Vec<u8>>();
    for size in sizes {
        assert_eq!(
            publish(&hubs[1], "news", message(size), Scope::Cluster),
            Posted::default()
        );
    }
    for recorder in &recorders {
        let seen = recorder.wait_for(sizes.len());
        assert_eq!(seen.len(), sizes.len());
        for ((publication, _), size) in seen.iter().zip(sizes) {
            assert_eq!(&*publication.channel, b"news");
            assert!(*publication.message == message(size), "{size} bytes");
        }
    }
    assert_eq!(hubs[1].stats().counted.mail_sent, 2 * sizes.len() as u64);
    assert_eq!(hubs[2].stats().counted.mail_received, sizes.len() as u64);
    eventually("no file waits", || {
        bus.scoreboard().slot(5).mail_bytes.load(SeqCst) == 0
    });
}

#[test]
fn a_scope_says_which_workers_get_a_message() {
    let bus = bus();
    let hubs = [0, 1].map(|slot| worker(&bus, slot));
    let recorders = hubs.each_ref().map(|hub| Recorder::on(hub, "\0\u{ff}"));
    for scope in [Scope::Process, Scope::Siblings, Scope::Cluster] {
        publish(&hubs[0], "\0\u{ff}", format!("{scope:?}"), scope);
    }
    bus.publish("\0\u{ff}".as_bytes(), b"Supervisor", &mut |_| panic!("waits"));
    for recorder in &recorders {
        recorder.wait_for(3);
    }
    let mut own = recorders[0].messages(3);
    own.sort();
    assert_eq!(own, ["Cluster", "Process", "Supervisor"]);
    assert_eq!(recorders[1].messages(3), ["Siblings", "Cluster", "Supervisor"]);
    assert_eq!(bus.scoreboard().others().mail_sent.load(SeqCst), 2);
}

#[test]
fn workers_that_flood_each_other_lose_nothing() {
    let bus = bus();
    let hubs = [0, 1].map(|slot| worker(&bus, slot));
    let recorders = hubs.each_ref().map(|hub| Recorder::on(hub, "news"));
    std::thread::scope(|scope| {
        for (hub, name) in hubs.iter().zip(["a", "b"]) {
            scope.spawn(move || publish_from_threads(hub, "news", name, 4, 5000));
        }
    });
    for recorder in &recorders {
        let messages = recorder.messages(2 * 4 * 5000);
        assert_in_order(&messages, 8, 5000);
    }
    for hub in &hubs {
        let stats = hub.stats().counted;
        assert_eq!(
            (stats.mail_sent, stats.mail_received, stats.mail_lost),
            (20_000, 20_000, 0)
        );
    }
}

#[test]
fn mail_for_a_predecessor_is_thrown_away() {
    let bus = bus();
    let scoreboard = dead_worker(&bus, 1);
    for message in [&b"short"[..], &[7; 100_000]] {
        assert_eq!(
            bus.publish(b"news", message, &mut |_| panic!("waits")),
            Posted::default()
        );
    }
    scoreboard.slot(1).reset();
    let hub = Hub::new(Some((Arc::clone(&bus), 1))).unwrap();
    let recorder = Recorder::on(&hub, "news");
    hub.start().unwrap();
    bus.publish(b"news", b"for the successor", &mut |_| panic!("waits"));
    assert_eq!(recorder.messages(1), ["for the successor"]);
    assert_eq!(hub.stats().counted.mail_received, 1);
}

#[test]
fn a_publisher_waits_for_a_full_mailbox() {
    let bus = bus();
    let hub = worker(&bus, 1);
    let recorder = Recorder::on(&hub, "news");
    for message in [&b"short"[..], &[7; 30_000], &[7; 40_000], &[7; 1 << 20]] {
        recorder.gate().shut();
        let before = recorder.wait_for(0).len();
        let (count, posted) = publish_until_full(&bus, message, &mut |wait| {
            recorder.gate().open();
            wait();
        });
        assert_eq!(posted, Posted::default());
        assert!(count > 10, "only {count} messages before it waits");
        let seen = recorder.wait_for(before + count);
        assert_eq!(seen.len(), before + count);
    }
    assert_eq!(bus.scoreboard().others().mail_waits.load(SeqCst), 4);
    assert_eq!(bus.scoreboard().others().mail_lost.load(SeqCst), 0);
}

#[test]
fn long_messages_that_wait_are_bounded() {
    let bus = bus();
    let hub = worker(&bus, 1);
    let recorder = Recorder::on(&hub, "news");
    recorder.gate().shut();
    bus.publish(b"news", b"hold", &mut |_| panic!("waits"));
    recorder.gate().wait_until_reached();
    let (count, posted) = publish_until_full(&bus, &[7; 10 << 20], &mut |wait| {
        recorder.gate().open();
        wait();
    });
    assert_eq!((count, posted), (7, Posted::default()));
    recorder.wait_for(1 + count);
}

#[test]
fn a_worker_that_takes_nothing_is_given_up_until_it_does() {
    let bus = bus();
    let scoreboard = dead_worker(&bus, 1);
    let living = worker(&bus, 2);
    let recorder = Recorder::on(&living, "news");
    let begun = Instant::now();
    let (count, posted) = publish_until_full(&bus, &[7; 30_000], &mut |wait| wait());
    assert_eq!(posted, Posted { undelivered: 1 });
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    let at_once = bus.publish(b"news", &[7; 30_000], &mut |_| panic!("waits again"));
    assert_eq!(at_once, Posted { undelivered: 1 });
    assert_eq!(scoreboard.others().mail_lost.load(SeqCst), 2);
    assert_eq!(recorder.wait_for(count + 1).len(), count + 1);

    scoreboard.slot(1).reset();
    let successor = worker(&bus, 1);
    let recorder = Recorder::on(&successor, "news");
    assert_eq!(
        bus.publish(b"news", b"hello", &mut |_| panic!("waits")),
        Posted::default()
    );
    assert_eq!(recorder.messages(1), ["hello"]);
}

#[test]
fn nobody_waits_for_a_worker_that_is_gone() {
    let bus = bus();
    let scoreboard = dead_worker(&bus, 1);
    let begun = Instant::now();
    let (_, posted) = publish_until_full(&bus, &[7; 30_000], &mut |wait| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the publisher waits", || {
                    scoreboard.others().mail_waits.load(SeqCst) == 1
                });
                scoreboard.slot(1).reset();
            });
            wait();
        });
    });
    assert_eq!(posted, Posted::default());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(
        bus.publish(b"news", b"hello", &mut |_| panic!("waits")),
        Posted::default()
    );
}

#[test]
fn a_worker_that_stops_gets_no_more_mail_and_reads_what_it_got() {
    let bus = bus();
    let hub = worker(&bus, 1);
    let recorder = Recorder::on(&hub, "news");
    recorder.gate().shut();
    for number in 0..100 {
        bus.publish(b"news", number.to_string().as_bytes(), &mut |_| panic!("waits"));
    }
    recorder.gate().wait_until_reached();
    std::thread::scope(|scope| {
        scope.spawn(|| hub.stop());
        eventually("it reads no more", || {
            bus.scoreboard().slot(1).reads_mail.load(SeqCst) == 0
        });
        bus.publish(b"news", b"late", &mut |_| panic!("waits"));
        recorder.gate().open();
    });
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(recorder.messages(0), expected);
    assert_eq!(bus.scoreboard().others().mail_sent.load(SeqCst), 100);
}

#[test]
fn own_messages_and_mail_take_turns() {
    let bus = bus();
    let hubs = [0, 1].map(|slot| worker(&bus, slot));
    let (holder, recorder) = (Recorder::on(&hubs[0], "hold"), Recorder::new());
    recorder.subscribe(&hubs[0], "*", Match::Glob);
    holder.gate().shut();
    publish(&hubs[0], "hold", "", Scope::Process);
    holder.gate().wait_until_reached();
    let waits = AtomicUsize::new(0);
    for number in 0..100 {
        publish(&hubs[0], "own", number.to_string(), Scope::Process);
        publish_patiently(&hubs[1], "mail", number.to_string(), &waits);
    }
    holder.gate().open();
    let seen = recorder.wait_for(201);
    let first: Vec<&[u8]> = seen.iter().take(50).map(|(it, _)| &*it.channel).collect();
    assert!(first.contains(&&b"own"[..]) && first.contains(&&b"mail"[..]));
    assert_eq!(waits.load(SeqCst), 0);
}
