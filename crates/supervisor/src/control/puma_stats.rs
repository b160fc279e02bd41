//! The statistics with Puma's keys in Puma's order, for programs that watch Puma.

use super::counts::{Counters, Counts};
use super::date;
use super::host::CgroupMemory;
use super::peaks::{Peak, Peaks};
use super::status::{Child, Status};
use crate::settings::RubySettings;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// The version of Puma that has these keys.
const PUMA: &str = "8.0.2";

/// The response to `/stats`.
#[derive(Debug, Serialize)]
pub(super) struct PumaStats<'a> {
    #[serde(flatten)]
    processes: Processes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<CgroupMemory>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Processes<'a> {
    /// Without workers.
    Single(Single<'a>),
    /// With workers.
    Cluster(Cluster<'a>),
}

#[derive(Debug, Serialize)]
struct Single<'a> {
    started_at: String,
    #[serde(flatten)]
    pool: Pool,
    versions: Versions<'a>,
}

#[derive(Debug, Serialize)]
struct Cluster<'a> {
    started_at: String,
    workers: usize,
    phase: i64,
    booted_workers: usize,
    old_workers: usize,
    worker_status: Vec<Worker>,
    versions: Versions<'a>,
}

#[derive(Debug, Serialize)]
struct Worker {
    started_at: String,
    pid: Option<i32>,
    index: usize,
    phase: i64,
    booted: bool,
    last_checkin: String,
    last_status: LastStatus,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum LastStatus {
    Known(Pool),
    Unknown {},
}

/// The statistics of a worker.
#[derive(Debug, Serialize)]
pub(super) struct Pool {
    pub(super) backlog: i64,
    pub(super) running: i64,
    pub(super) pool_capacity: i64,
    pub(super) busy_threads: i64,
    io_threads: i64,
    backlog_max: i64,
    pub(super) max_threads: i64,
    pub(super) requests_count: u64,
    reactor_max: i64,
}

#[derive(Debug, Serialize)]
struct Versions<'a> {
    puma: &'static str,
    fairlead: &'a str,
    ruby: &'a RubySettings,
}

impl<'a> PumaStats<'a> {
    /// `counts`: including the requests of the waiting room.
    pub(super) fn new(
        status: &'a Status,
        counts: &Counts,
        peaks: &Peaks,
        cgroup: Option<CgroupMemory>,
    ) -> PumaStats<'a> {
        let processes = if status.has_workers() {
            Processes::Cluster(Cluster::new(status, counts, peaks))
        } else {
            Processes::Single(Single::new(status, counts, peaks))
        };
        PumaStats { processes, cgroup }
    }
}

impl<'a> Cluster<'a> {
    fn new(status: &'a Status, counts: &Counts, peaks: &Peaks) -> Cluster<'a> {
        let is_old = |child: &&Child| child.generation != status.generation;
        let worker = |child| Worker::new(child, status, counts, peaks);
        Cluster {
            started_at: date::seconds(status.started_at),
            workers: status.children.len(),
            phase: phase(status.generation),
            booted_workers: status.children.iter().filter(|child| child.booted).count(),
            old_workers: status.children.iter().filter(is_old).count(),
            worker_status: status.children.iter().map(worker).collect(),
            versions: versions(status),
        }
    }
}

impl<'a> Single<'a> {
    fn new(status: &'a Status, counts: &Counts, peaks: &Peaks) -> Single<'a> {
        let sole = status.sole();
        let counters = sole
            .and_then(|child| counts.of_child(child))
            .copied()
            .unwrap_or_default();
        let peak = sole.map(|child| peaks.of(child.slot)).unwrap_or_default();
        Single {
            started_at: date::seconds(status.started_at),
            pool: Pool::new(&counters, peak, status.max_threads),
            versions: versions(status),
        }
    }
}

impl Worker {
    fn new(child: &Child, status: &Status, counts: &Counts, peaks: &Peaks) -> Worker {
        let counters = counts.of_child(child).filter(|_| child.booted);
        let pool = counters.map(|counters| Pool::new(counters, peaks.of(child.slot), status.max_threads));
        Worker {
            started_at: date::seconds(child.started_at),
            pid: child.pid,
            index: child.index,
            phase: phase(child.generation),
            booted: child.booted,
            last_checkin: date::seconds(last_sign_of_life(child)),
            last_status: pool.map_or(LastStatus::Unknown {}, LastStatus::Known),
        }
    }
}

impl Pool {
    pub(super) fn new(counters: &Counters, peak: Peak, max_threads: usize) -> Pool {
        let max_threads = i64::try_from(max_threads).unwrap_or(i64::MAX);
        Pool {
            backlog: counters.queued,
            running: counters.threads,
            pool_capacity: (max_threads - counters.busy_threads).max(0),
            busy_threads: counters.busy_threads,
            io_threads: 0,
            backlog_max: peak.backlog,
            max_threads,
            requests_count: counters.requests,
            reactor_max: peak.reactor,
        }
    }
}

fn last_sign_of_life(child: &Child) -> SystemTime {
    let age = child
        .heartbeat_age
        .and_then(|age| Duration::try_from_secs_f64(age).ok());
    age.and_then(|age| SystemTime::now().checked_sub(age))
        .unwrap_or(child.started_at)
}

/// Puma counts the phased restarts, Fairlead counts the loadings of the code.
pub(super) fn phase(generation: u32) -> i64 {
    i64::from(generation) - 1
}

fn versions(status: &Status) -> Versions<'_> {
    Versions {
        puma: PUMA,
        fairlead: &status.version,
        ruby: &status.ruby,
    }
}
