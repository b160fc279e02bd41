//! What pub/sub itself costs: publications into outboxes in memory, without sockets and without Ruby.
//! Usage: `publish SUBSCRIBERS SECONDS`.

use fairlead_engine::pubsub::{Bus, Delivery, Hub, Match, Publication, Scope, Subscriber, WireForm};
use fairlead_engine::Scoreboard;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Outbox {
    id: u64,
    waiting: Mutex<Vec<Arc<WireForm>>>,
    flushes: Arc<AtomicU64>,
}

impl Subscriber for Outbox {
    fn id(&self) -> u64 {
        self.id
    }

    fn deliver(&self, publication: &Arc<Publication>, _: Delivery) -> bool {
        let frame = publication.encoded(0, |message| [&[0x81, message.len() as u8], message].concat());
        self.waiting.lock().push(Arc::clone(frame));
        true
    }

    fn flush(&self) {
        self.waiting.lock().clear();
        self.flushes.fetch_add(1, Relaxed);
    }

    fn is_open(&self) -> bool {
        true
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().unwrap_or(0));
    let subscribers = arguments.next().unwrap_or(10_000);
    let time = Duration::from_secs(arguments.next().unwrap_or(2));
    let post = Arc::new(Bus::new(Box::leak(Box::<Scoreboard>::default()), 64)?);
    let hubs = [worker(&post, 0)?, worker(&post, 1)?];
    let flushes = Arc::new(AtomicU64::new(0));
    for id in 0..subscribers {
        let outbox = Outbox {
            id,
            waiting: Mutex::default(),
            flushes: Arc::clone(&flushes),
        };
        let outbox: Arc<dyn Subscriber> = Arc::new(outbox);
        hubs[0].subscribe(Arc::clone(&outbox), b"all", Match::Exact, Delivery::Text);
        hubs[0].subscribe(outbox, format!("one/{id}").as_bytes(), Match::Exact, Delivery::Text);
    }
    let run = |name: &str, from: &Hub, scope, message: &[u8], channel: &dyn Fn(u64) -> String| {
        measure(name, from, &hubs[0], scope, message, channel, time, &flushes);
    };
    run("to all", &hubs[0], Scope::Process, &[b'x'; 100], &|_| "all".into());
    run("to one", &hubs[0], Scope::Process, &[b'x'; 100], &|n| {
        format!("one/{}", n % subscribers.max(1))
    });
    run("mail to one", &hubs[1], Scope::Siblings, &[b'x'; 100], &|n| {
        format!("one/{}", n % subscribers.max(1))
    });
    run("mail of a worker", &hubs[1], Scope::Cluster, &[b'x'; 100], &|n| {
        format!("one/{}", n % subscribers.max(1))
    });
    run(
        "1 MiB mail to one",
        &hubs[1],
        Scope::Siblings,
        &[b'x'; 1 << 20],
        &|_| "one/0".into(),
    );
    // The subscribers are at the sender; the other worker only receives.
    let one = |n| format!("one/{}", n % subscribers.max(1));
    let (from, to) = (&hubs[0], &hubs[1]);
    measure(
        "to one and a worker",
        from,
        to,
        Scope::Cluster,
        &[b'x'; 100],
        &one,
        time,
        &flushes,
    );
    Ok(())
}

fn worker(post: &Arc<Bus>, slot: usize) -> std::io::Result<Arc<Hub>> {
    let hub = Hub::new(Some((Arc::clone(post), slot)))?;
    hub.start()?;
    Ok(hub)
}

#[allow(clippy::too_many_arguments, reason = "a table row")]
fn measure(
    name: &str,
    from: &Hub,
    to: &Hub,
    scope: Scope,
    message: &[u8],
    channel: &dyn Fn(u64) -> String,
    time: Duration,
    flushes: &AtomicU64,
) {
    let before = (to.stats().counted.delivered, flushes.load(Relaxed));
    let begun = Instant::now();
    let (mut published, mut waits) = (0, 0);
    while begun.elapsed() < time {
        from.publish(channel(published).as_bytes(), message, scope, &mut |wait| {
            waits += 1;
            wait();
        });
        published += 1;
    }
    while to.stats().queued > 0 || to.stats().counted.mail_received < from.stats().counted.mail_sent {
        std::thread::sleep(Duration::from_millis(1));
    }
    let per_second = |count: u64| count as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{name:>19}: {:>9.0} published/s  {:>11.0} delivered/s  {:>9.0} flushes/s  {waits} waits",
        per_second(published),
        per_second(to.stats().counted.delivered - before.0),
        per_second(flushes.load(Relaxed) - before.1),
    );
}
