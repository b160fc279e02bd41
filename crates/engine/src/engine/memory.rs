//! Returns memory to the system: the allocator keeps freed memory for the next burst. It is returned after a burst of clients, by
//! the counts of their memory, and when the process has become quiet and has grown, or has had a burst: the app uses memory that
//! nobody counts. Then the app collects its garbage first, which holds memory of the allocator. A collection stops all threads of the
//! app, so collections take a small part of the time. The first one collects young objects, which is most of the garbage, and stops the
//! threads for a third of the time (docs/decisions/quiet-collections.md). All objects follow if the process is still larger:
//!
//! ```text
//!   quiet, grown ── young ── memory returned ── small again: done
//!                                            └─ still grown, nothing runs for 5 s, or a minute is over ── all ── memory returned
//! ```

use super::job::Job;
use crate::app::Garbage;
use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::exchange::Services;
use crate::limits::burst;
use crate::scheduler::Scheduler;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Estimated memory of a connection, without the memory counted for its request.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// Requests may still run when a burst ends. They get `STEPS` steps to finish first. Small bursts follow each other: the memory is kept
/// for the time of `QUIET` before these steps.
const STEP: Duration = Duration::from_millis(250);
const STEPS: u32 = 20;

/// A process is quiet if it has run few jobs for this time. Another look after `LOOK` is a safety net.
const QUIET: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(60);

/// Jobs of a quiet process in `QUIET`, at most: health checks and a few clients.
const QUIET_JOBS: u64 = 10;

/// The collection of all objects waits up to this time for a moment without any job.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause after a collection is so many times its duration, so that collections take up to 0.5 % of the time; but it is not longer
/// than `LONGEST_PAUSE`, in case the process was stopped meanwhile.
const COLLECTION_PAUSE: u32 = 200;
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// See the head of this file.
pub(super) struct Memory {
    services: Arc<Services>,
    connections: Arc<Connections>,
    scheduler: Arc<Scheduler<Job>>,
    bursts: Bursts,
    growth: Mutex<Growth>,
    is_trimming: AtomicBool,
}

/// The bursts of clients.
struct Bursts {
    /// Peak of the current burst, in bytes. Written only by the poller.
    peak: AtomicU64,
    /// Smallest burst that is worth the work.
    worthwhile: AtomicU64,
}

impl Memory {
    pub(super) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        scheduler: &Arc<Scheduler<Job>>,
    ) -> Arc<Memory> {
        let resident = (services.worker.config.resident_memory)();
        Arc::new(Memory {
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            scheduler: Arc::clone(scheduler),
            bursts: Bursts::new(resident),
            growth: Mutex::new(Growth::new(Millis::now(), resident)),
            is_trimming: AtomicBool::new(false),
        })
    }

    /// Checks if a burst is over; called by the poller.
    pub(super) fn look_after(self: &Arc<Self>) {
        let (worker, services) = (&self.services.worker, &self.services);
        let connections = worker.counters().connections.load(Relaxed).max(0) as u64;
        let (counted, _) = worker.config.request_totals.used();
        let messages = services.realtime.intake().bytes() as u64;
        let unsent = services.spool.memory();
        let used = connections * CONNECTION_BYTES + counted + messages + unsent;
        if let Some(peak) = self.bursts.has_receded(used) {
            self.growth.lock().had_burst = true;
            let is_large = peak >= burst::WORTHWHILE_BYTES;
            self.trim_after(if is_large { Duration::ZERO } else { QUIET });
        }
    }

    /// Called by the monitor when no job has run for a while: has garbage collected and memory returned if the process is quiet after
    /// a busy time. Returns the time until the next call.
    pub(super) fn rest(self: &Arc<Self>) -> Duration {
        let worker = &self.services.worker;
        let (now, jobs) = (Millis::now(), worker.counters().turns());
        if let Some(left) = self.growth.lock().quiet(now, jobs) {
            return left;
        }
        let is_free = !worker.is_leaving() && self.scheduler.now().busy() == 0;
        if !is_free {
            return LOOK;
        }
        let garbage = self.growth.lock().garbage((worker.config.resident_memory)());
        if let Some(garbage) = garbage {
            self.scheduler.schedule(Job::Collection(garbage));
        }
        LOOK
    }

    /// Runs `collect`, which collects this garbage of the app, and returns the memory that this has freed.
    pub(super) fn collect(self: &Arc<Self>, garbage: Garbage, collect: impl FnOnce()) {
        let begin = Millis::now();
        collect();
        self.growth.lock().note_collection(garbage, begin, Millis::now());
        self.trim_after(Duration::ZERO);
    }

    /// Trims on a separate thread that ends afterwards: trimming is rare and takes milliseconds.
    fn trim_after(self: &Arc<Self>, time: Duration) {
        if self.is_trimming.swap(true, Relaxed) {
            return;
        }
        let memory = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("fairlead memory".into());
        let started = thread.spawn(move || wait_and_trim(&memory, time));
        self.is_trimming.store(started.is_ok(), Relaxed);
    }

    fn trim(&self) {
        self.is_trimming.store(false, Relaxed);
        self.connections.parked().shrink();
        self.scheduler.ready().shrink();
        let config = &self.services.worker.config;
        (config.trim_memory)();
        let resident = (config.resident_memory)();
        self.growth.lock().returned(Millis::now(), resident);
        self.bursts.follow(resident);
    }
}

/// Does not keep the engine alive during the wait.
fn wait_and_trim(memory: &Weak<Memory>, time: Duration) {
    std::thread::sleep(time);
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        let Some(memory) = memory.upgrade() else { return };
        if memory.scheduler.now().busy() == 0 {
            break;
        }
    }
    if let Some(memory) = memory.upgrade() {
        memory.trim();
    }
}

impl Bursts {
    /// `resident`: memory of the process.
    fn new(resident: u64) -> Bursts {
        Bursts {
            peak: AtomicU64::new(0),
            worthwhile: AtomicU64::new(burst::worthwhile_bytes(resident)),
        }
    }

    /// Takes into account that the process needs `resident` bytes without a burst.
    fn follow(&self, resident: u64) {
        self.worthwhile.store(burst::worthwhile_bytes(resident), Relaxed);
    }

    /// Returns the peak of a burst that is over, with `now` bytes in use, once per burst.
    fn has_receded(&self, now: u64) -> Option<u64> {
        let peak = self.peak.load(Relaxed);
        let has_receded = burst::is_over(peak, now, self.worthwhile.load(Relaxed));
        if has_receded || now > peak {
            self.peak.store(now, Relaxed);
        }
        has_receded.then_some(peak)
    }
}

/// The growth of the process between two quiet times.
struct Growth {
    /// Time of the last look, and the jobs that had run.
    since: Millis,
    jobs: u64,
    /// Least memory of the process since it was last returned.
    least: u64,
    /// A burst of clients has ended since the last look. The app still has garbage of it.
    had_burst: bool,
    /// Garbage of the last collection, until memory was returned after it.
    collected: Option<Garbage>,
    /// Garbage of the next collection.
    next: Garbage,
    /// Time by which all objects are to be collected, if they are next.
    all_by: Millis,
    /// Duration of the collections since memory was back.
    spent: Duration,
    /// End of the pause after the last collection.
    paused_until: Millis,
}

impl Growth {
    fn new(now: Millis, resident: u64) -> Growth {
        Growth {
            since: now,
            jobs: 0,
            least: resident,
            had_burst: false,
            collected: None,
            next: Garbage::Young,
            all_by: now,
            spent: Duration::ZERO,
            paused_until: now,
        }
    }

    fn note_collection(&mut self, garbage: Garbage, begin: Millis, end: Millis) {
        self.collected = Some(garbage);
        self.spent += end - begin;
        self.paused_until = end + self.spent.saturating_mul(COLLECTION_PAUSE).min(LONGEST_PAUSE);
    }

    /// Memory was returned. If that was not enough after a collection of young objects, all objects are next; the pause comes
    /// after them.
    fn returned(&mut self, now: Millis, resident: u64) {
        match (self.collected.take(), self.has_grown(resident)) {
            (Some(Garbage::Young), true) => {
                (self.next, self.all_by, self.paused_until) = (Garbage::All, now + PATIENCE, now);
            }
            (None, true) => {} // a burst has ended: the garbage is still there
            _ => (self.least, self.next, self.spent) = (resident, Garbage::Young, Duration::ZERO),
        }
    }

    /// True if returning the memory since the process had least is worth the work.
    fn has_grown(&mut self, resident: u64) -> bool {
        self.least = self.least.min(resident);
        resident - self.least >= burst::worthwhile_bytes(self.least)
    }

    /// `None` if the process has been quiet since the last look, and the pause is over; otherwise the time until this may be true.
    fn quiet(&mut self, now: Millis, jobs: u64) -> Option<Duration> {
        let left = QUIET.saturating_sub(now - self.since).max(self.paused_until - now);
        let most = match self.next {
            Garbage::All if now < self.all_by => 0,
            _ => QUIET_JOBS,
        };
        let is_quiet = jobs.wrapping_sub(self.jobs) <= most;
        if is_quiet && !left.is_zero() {
            return Some(left);
        }
        (self.since, self.jobs) = (now, jobs);
        (!is_quiet).then_some(QUIET)
    }

    /// The garbage to collect: if there was a burst, or the process has grown.
    fn garbage(&mut self, resident: u64) -> Option<Garbage> {
        let has_grown = self.has_grown(resident);
        if !has_grown {
            // The app has collected all objects itself meanwhile.
            (self.next, self.spent) = (Garbage::Young, Duration::ZERO);
        }
        (std::mem::take(&mut self.had_burst) || has_grown).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mebibytes(count: u64) -> u64 {
        count * 1024 * 1024
    }

    #[test]
    fn the_end_of_a_burst_is_reported_once() {
        let bursts = Bursts::new(mebibytes(1000));
        assert_eq!(bursts.has_receded(mebibytes(100)), None);
        assert_eq!(bursts.has_receded(mebibytes(20)), None);
        assert_eq!(bursts.has_receded(mebibytes(13)), None);
        assert_eq!(bursts.has_receded(mebibytes(12)), Some(mebibytes(100)));
        assert_eq!(bursts.has_receded(mebibytes(1)), None);
    }

    #[test]
    fn a_burst_is_an_eighth_of_a_small_process() {
        let bursts = Bursts::new(mebibytes(1000));
        bursts.has_receded(mebibytes(8));
        assert_eq!(bursts.has_receded(0), None);
        bursts.follow(mebibytes(24));
        bursts.has_receded(mebibytes(3));
        assert_eq!(bursts.has_receded(0), Some(mebibytes(8)));
        bursts.has_receded(mebibytes(2));
        assert_eq!(bursts.has_receded(0), None);
    }

    #[test]
    fn a_process_is_quiet_when_it_has_run_few_jobs_for_a_while() {
        let start = Millis::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut growth = Growth::new(start, 0);
        assert_eq!(growth.quiet(at(2), 5), Some(Duration::from_secs(3)));
        assert_eq!(growth.quiet(at(3), 100), Some(QUIET), "many jobs begin a new time");
        assert_eq!(growth.quiet(at(7), 105), Some(Duration::from_secs(1)));
        assert_eq!(growth.quiet(at(8), 110), None);
        assert_eq!(growth.quiet(at(60), 200), Some(QUIET), "it was busy since");
    }

    #[test]
    fn a_collection_that_has_taken_long_is_not_repeated_soon() {
        let start = Millis::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut growth = Growth::new(start, 0);
        growth.note_collection(Garbage::All, at(5_000), at(5_400));
        assert_eq!(growth.quiet(at(6_000), 0), Some(Duration::from_millis(79_400)));
        assert_eq!(growth.quiet(at(85_399), 5), Some(Duration::from_millis(1)));
        assert_eq!(growth.quiet(at(85_400), 5), None);
        growth.returned(at(5_400), 0);
        growth.note_collection(Garbage::Young, at(85_400), at(85_410));
        assert_eq!(growth.quiet(at(90_400), 5), None, "a short one costs little");
        growth.note_collection(Garbage::All, at(0), at(100_000));
        assert_eq!(growth.quiet(at(100_000), 5), Some(Duration::from_secs(3_600)));
    }

    #[test]
    fn memory_is_returned_when_the_process_has_grown_since_it_had_least() {
        let mut growth = Growth::new(Millis::now(), mebibytes(300));
        assert_eq!(growth.garbage(mebibytes(300)), None);
        assert_eq!(growth.garbage(mebibytes(200)), None);
        assert_eq!(growth.garbage(mebibytes(215)), None);
        assert_eq!(growth.garbage(mebibytes(216)), Some(Garbage::Young));
        growth = Growth::new(Millis::now(), mebibytes(24));
        assert_eq!(growth.garbage(mebibytes(26)), None);
        assert_eq!(growth.garbage(mebibytes(27)), Some(Garbage::Young));
        growth = Growth::new(Millis::now(), 0);
        growth.had_burst = true;
        assert_eq!(growth.garbage(1), Some(Garbage::Young));
        assert_eq!(growth.garbage(1), None, "once after a burst");
    }

    #[test]
    fn all_objects_are_collected_if_the_process_is_still_large_without_the_young_ones() {
        let start = Millis::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut growth = Growth::new(start, mebibytes(300));
        growth.note_collection(Garbage::Young, at(5_000), at(5_100));
        growth.returned(at(5_300), mebibytes(310));
        assert_eq!(growth.garbage(mebibytes(310)), None, "the young ones were enough");

        growth.note_collection(Garbage::Young, at(45_000), at(45_100));
        growth.returned(at(45_300), mebibytes(330));
        assert_eq!(growth.quiet(at(50_300), 0), None, "no pause lies between the two");
        assert_eq!(growth.garbage(mebibytes(330)), Some(Garbage::All));
        growth.note_collection(Garbage::All, at(50_300), at(50_600));
        growth.returned(at(50_800), mebibytes(330));
        assert_eq!(growth.garbage(mebibytes(330)), None, "it needs the memory");
        assert_eq!(growth.garbage(mebibytes(346)), Some(Garbage::Young));
        let pause = Duration::from_millis(50_600 + 200 * 400 - 60_000);
        assert_eq!(growth.quiet(at(60_000), 0), Some(pause), "after both");
    }

    #[test]
    fn all_objects_are_collected_when_nothing_runs_or_a_minute_later() {
        let start = Millis::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut growth = Growth::new(start, mebibytes(300));
        growth.note_collection(Garbage::Young, at(10), at(10));
        growth.returned(at(10), mebibytes(400));
        assert_eq!(growth.quiet(at(12), 1), Some(QUIET), "a client is active");
        assert_eq!(growth.quiet(at(17), 2), Some(QUIET));
        assert_eq!(growth.quiet(at(20), 2), Some(Duration::from_secs(2)));
        assert_eq!(growth.quiet(at(22), 2), None);
        growth.returned(at(23), mebibytes(400));
        assert_eq!(
            growth.garbage(mebibytes(400)),
            Some(Garbage::All),
            "the end of a burst changes nothing"
        );
        assert_eq!(growth.quiet(at(69), 3), Some(QUIET));
        assert_eq!(growth.quiet(at(74), 4), None, "a minute has passed");
    }

    #[test]
    fn young_objects_are_first_again_if_the_process_has_become_small_by_itself() {
        let now = Millis::now();
        let mut growth = Growth::new(now, mebibytes(300));
        growth.note_collection(Garbage::Young, now, now);
        growth.returned(now, mebibytes(330));
        assert_eq!(growth.garbage(mebibytes(310)), None);
        assert_eq!(growth.garbage(mebibytes(330)), Some(Garbage::Young));
    }

    #[test]
    fn small_peaks_are_not_bursts() {
        let bursts = Bursts::new(mebibytes(1000));
        assert_eq!(bursts.has_receded(burst::WORTHWHILE_BYTES - 1), None);
        assert_eq!(bursts.has_receded(0), None);
    }
}
