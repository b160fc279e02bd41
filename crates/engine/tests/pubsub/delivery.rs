//! Delivery within one process.

use crate::recorder::*;
use fairlead_engine::pubsub::{Delivery, Hub, Match, Posted, Publication, Scope, Subscriber};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

fn hub() -> Arc<Hub> {
    let hub = Hub::new(None).unwrap();
    hub.start().unwrap();
    hub
}

#[test]
fn a_message_reaches_those_who_subscribed_its_channel_and_nobody_else() {
    let hub = hub();
    let (exact, glob, subject, other) = (Recorder::new(), Recorder::new(), Recorder::new(), Recorder::new());
    exact.subscribe_as(&hub, "news.art", Match::Exact, Delivery::Binary);
    glob.subscribe_as(&hub, "news.*", Match::Glob, Delivery::Event(7));
    subject.subscribe(&hub, "*.art", Match::Subject);
    other.subscribe(&hub, "news", Match::Exact);
    other.subscribe(&hub, "*.sport", Match::Subject);
    other.subscribe(&hub, "news.*", Match::Exact);
    publish(&hub, "news.art", "hello", Scope::Cluster);
    publish(&hub, "end", "end", Scope::Process);
    publish(&hub, "news", "end", Scope::Process);
    for (recorder, delivery) in [
        (exact, Delivery::Binary),
        (glob, Delivery::Event(7)),
        (subject, Delivery::Text),
    ] {
        let seen = recorder.wait_for(1);
        let (publication, how) = &seen[0];
        assert_eq!(
            (&*publication.channel, &*publication.message),
            (&b"news.art"[..], &b"hello"[..])
        );
        assert_eq!((*how, seen.len()), (delivery, 1));
    }
    assert_eq!(other.messages(1), ["end"]);
    assert_eq!(hub.stats().counted.published, 3);
    eventually("all is counted", || hub.stats().counted.delivered == 4);
}

/// Strangers may choose the patterns of the application.
#[test]
fn no_pattern_finds_a_channel_of_the_server() {
    let hub = hub();
    let (all, tokens, part, own) = (Recorder::new(), Recorder::new(), Recorder::new(), Recorder::new());
    all.subscribe(&hub, "*", Match::Glob);
    part.subscribe(&hub, "fair*", Match::Glob);
    tokens.subscribe(&hub, ">", Match::Subject);
    own.subscribe(&hub, "fairlead/cable", Match::Exact);
    for channel in ["fairlead/cable", "fairlead", "fairy"] {
        publish(&hub, channel, channel, Scope::Cluster);
    }
    for recorder in [all, tokens, part] {
        assert_eq!(recorder.messages(2), ["fairlead", "fairy"]);
    }
    assert_eq!(own.messages(1), ["fairlead/cable"]);
}

#[test]
fn each_matching_subscription_of_a_subscriber_counts() {
    let hub = hub();
    let recorder = Recorder::on(&hub, "news");
    recorder.subscribe_as(&hub, "n*", Match::Glob, Delivery::Event(1));
    publish(&hub, "news", "hello", Scope::Cluster);
    let mut deliveries: Vec<Delivery> = recorder.wait_for(2).iter().map(|(_, how)| *how).collect();
    deliveries.sort_by_key(|how| *how != Delivery::Text);
    assert_eq!(deliveries, [Delivery::Text, Delivery::Event(1)]);
}

#[test]
fn the_same_text_again_replaces_the_subscription() {
    let hub = hub();
    let (one, two) = (Recorder::new(), Recorder::new());
    assert_eq!(one.subscribe(&hub, "news*", Match::Exact), 1);
    assert_eq!(two.subscribe(&hub, "news*", Match::Exact), 2);
    assert_eq!(one.subscribe_as(&hub, "news*", Match::Glob, Delivery::Event(3)), 2);
    assert_eq!(one.subscribe_as(&hub, "news*", Match::Glob, Delivery::Event(4)), 2);
    assert_eq!((hub.channels(), hub.subscriptions()), (1, 2), "a pattern is no channel");
    publish(&hub, "news*", "to both", Scope::Cluster);
    publish(&hub, "newspaper", "to one", Scope::Cluster);
    assert_eq!(one.messages(2), ["to both", "to one"]);
    assert!(one.wait_for(2).iter().all(|(_, how)| *how == Delivery::Event(4)));
    assert_eq!(two.messages(1), ["to both"]);
    assert_eq!(hub.unsubscribe(one.id(), b"news*"), Some(1));
    assert_eq!(hub.unsubscribe(one.id(), b"news*"), None);
    assert_eq!(hub.unsubscribe(two.id(), b"news"), None);
    assert_eq!(hub.unsubscribe(two.id(), b"news*"), Some(0));
    assert_eq!((hub.channels(), hub.subscriptions()), (0, 0));
}

#[test]
fn nothing_comes_after_the_end_of_a_subscription() {
    let hub = hub();
    let (leaver, stayer) = (Recorder::on(&hub, "news"), Recorder::on(&hub, "news"));
    publish(&hub, "news", "one", Scope::Cluster);
    leaver.wait_for(1);
    assert_eq!(hub.unsubscribe(leaver.id(), b"news"), Some(1));
    publish(&hub, "news", "two", Scope::Cluster);
    stayer.wait_for(2);
    leaver.subscribe(&hub, "news", Match::Exact);
    publish(&hub, "news", "three", Scope::Cluster);
    assert_eq!(leaver.messages(2), ["one", "three"]);
}

#[test]
fn who_is_closed_is_not_subscribed() {
    let hub = hub();
    let (closed, open) = (Recorder::new(), Recorder::on(&hub, "news"));
    closed.close();
    assert_eq!(closed.subscribe(&hub, "news", Match::Exact), 1);
    publish(&hub, "news", "hello", Scope::Cluster);
    open.wait_for(1);
    assert!(closed.wait_for(0).is_empty());
    assert_eq!(Arc::strong_count(&closed), 1);
}

#[test]
fn eight_publishers_keep_their_order_and_nothing_comes_twice() {
    let hub = hub();
    let recorders = [Recorder::on(&hub, "news"), Recorder::on(&hub, "news")];
    publish_from_threads(&hub, "news", "p", 8, 5000);
    for recorder in recorders {
        let messages = recorder.messages(8 * 5000);
        assert_in_order(&messages, 8, 5000);
    }
    eventually("all is counted", || hub.stats().counted.delivered == 2 * 8 * 5000);
}

#[test]
fn ten_thousand_subscribers_close_while_somebody_publishes() {
    const COUNT: usize = 10_000;
    let hub = hub();
    let crowd: Vec<Arc<Recorder>> = (0..COUNT).map(|_| Recorder::on(&hub, "news")).collect();
    publish(&hub, "news", "to all", Scope::Cluster);
    crowd.iter().for_each(|recorder| _ = recorder.wait_for(1));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let waits = AtomicUsize::new(0);
            while !done.load(SeqCst) {
                publish_patiently(&hub, "news", "to whom it may concern", &waits);
                let queued = || hub.stats().queued < 4;
                eventually("the dispatcher keeps up", queued);
            }
        });
        for (number, recorder) in crowd.iter().enumerate() {
            recorder.close();
            assert_eq!(hub.unsubscribe(recorder.id(), b"news"), Some(COUNT - 1 - number));
        }
        done.store(true, SeqCst);
    });
    assert_eq!(hub.stats().subscriptions, 0);
    eventually("nothing holds them", || {
        crowd.iter().all(|it| Arc::strong_count(it) == 1)
    });
}

#[test]
fn what_came_together_is_sent_together() {
    let hub = hub();
    let (holder, recorder) = (Recorder::on(&hub, "hold"), Recorder::on(&hub, "news"));
    holder.gate().shut();
    publish(&hub, "hold", "", Scope::Cluster);
    holder.gate().wait_until_reached();
    for number in 0..100 {
        publish(&hub, "news", number.to_string(), Scope::Cluster);
    }
    holder.gate().open();
    recorder.wait_for(100);
    hub.stop();
    // Once, unless the machine is so busy that a round ends early.
    assert!((1..50).contains(&recorder.flushed()), "{} times", recorder.flushed());
}

#[test]
fn a_subscriber_that_panics_hurts_nobody_else() {
    struct Bad(u64);
    impl Subscriber for Bad {
        fn id(&self) -> u64 {
            self.0
        }
        fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
            assert_ne!(&*publication.message, b"in deliver", "to be expected in this test");
            true
        }
        fn flush(&self) {
            panic!("to be expected in this test");
        }
        fn is_open(&self) -> bool {
            true
        }
    }
    let hub = hub();
    let good: Vec<_> = (0..20)
        .map(|number| {
            if number % 5 == 0 {
                hub.subscribe(Arc::new(Bad(next_id())), b"news", Match::Exact, Delivery::Text);
            }
            Recorder::on(&hub, "news")
        })
        .collect();
    publish(&hub, "news", "in deliver", Scope::Cluster);
    eventually("they have panicked", || hub.stats().panics == 4);
    publish(&hub, "news", "in flush", Scope::Cluster);
    eventually("they have panicked again", || hub.stats().panics == 8);
    publish(&hub, "news", "in deliver", Scope::Cluster);
    for recorder in good {
        assert_eq!(recorder.messages(3), ["in deliver", "in flush", "in deliver"]);
        eventually("it is flushed", || recorder.flushed() == 3);
    }
}

#[test]
fn publishers_wait_when_the_dispatcher_falls_behind() {
    for (count, size, most_waiting) in [(100, 1 << 20, 64), (40_000, 10, 20_000)] {
        let hub = hub();
        let recorder = Recorder::on(&hub, "news");
        recorder.gate().shut();
        let waits = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..count {
                    let message = number.to_string() + &" ".repeat(size);
                    assert_eq!(publish_patiently(&hub, "news", message, &waits), Posted::default());
                }
            });
            eventually("the publisher waits", || waits.load(SeqCst) > 0);
            assert!(hub.stats().queued <= most_waiting);
            recorder.gate().open();
        });
        for (number, (publication, _)) in recorder.wait_for(count).iter().enumerate() {
            assert!(publication.message.starts_with(format!("{number} ").as_bytes()));
        }
        recorder.gate().shut();
        for _ in 0..50 {
            publish(&hub, "news", vec![b' '; size], Scope::Cluster);
        }
        recorder.gate().open();
        recorder.wait_for(count + 50);
    }
}

#[test]
fn a_publication_waits_for_the_start_and_none_is_lost_at_the_end() {
    let hub = Hub::new(None).unwrap();
    let recorder = Recorder::on(&hub, "news");
    publish(&hub, "news", "early", Scope::Cluster);
    assert_eq!(hub.stats().queued, 1);
    hub.start().unwrap();
    assert_eq!(recorder.messages(1), ["early"]);
    recorder.gate().shut();
    publish(&hub, "news", "held", Scope::Cluster);
    recorder.gate().wait_until_reached();
    for number in 0..1000 {
        publish(&hub, "news", number.to_string(), Scope::Cluster);
    }
    recorder.gate().open();
    hub.stop();
    assert_eq!(recorder.wait_for(0).len(), 1002);
    assert_eq!(publish(&hub, "news", "late", Scope::Cluster), Posted { undelivered: 1 });
    hub.stop();
    assert_eq!(recorder.wait_for(0).len(), 1002);
}

#[test]
fn a_dropped_hub_lets_its_subscribers_go() {
    let hub = hub();
    let recorder = Recorder::on(&hub, "news");
    publish(&hub, "news", "hello", Scope::Cluster);
    drop(hub);
    assert_eq!(recorder.messages(1), ["hello"]);
    eventually("it is released", || Arc::strong_count(&recorder) == 1);
}
