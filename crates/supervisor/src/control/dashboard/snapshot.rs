//! The state of the server at one moment, for the page and for `fairlead top`.

use super::super::counts::{Counters, Counts, Room};
use super::super::host::{MemoryOf, ProcessMemory};
use super::super::report::{ShownPause, ShownRestart};
use super::super::status::{Child, ServerState, Status};
use super::figures;
use super::history::{rounded, History, Point};
use super::running::{slowest, Running};
use crate::control::date;
use fairlead_engine::Scoreboard;
use serde::Serialize;
use std::time::SystemTime;

/// The snapshot, in the order of its keys.
#[derive(Serialize)]
pub(super) struct Snapshot<'a> {
    version: &'a str,
    ruby: &'a str,
    pid: u32,
    state: ServerState,
    generation: u32,
    started_at: String,
    uptime: f64,
    addresses: &'a [String],
    pause: Option<ShownPause>,
    restart: Option<ShownRestart<'a>>,
    workers: usize,
    max_threads: usize,
    /// Milliseconds since the beginning of the history.
    now: u64,
    point: Option<&'a Point>,
    /// Of the latencies in ten minutes: the median, the 95th and the 99th percentile.
    percentiles: [Option<f64>; 3],
    waiting_room: Option<Room<'a>>,
    processes: Vec<Process>,
    running: Vec<Running>,
    refusals: Vec<(&'static str, u64)>,
    /// Bytes of all processes, including the supervisor and the spawners; `None` before they are known.
    memory: Option<u64>,
}

/// A worker, or the sole process.
#[derive(Serialize)]
struct Process {
    index: usize,
    slot: usize,
    pid: Option<i32>,
    generation: u32,
    state: &'static str,
    uptime: f64,
    heartbeat_age: Option<f64>,
    rate: f64,
    #[serde(flatten)]
    counters: Counters,
    channels: i64,
    subscriptions: i64,
    published: u64,
    delivered: u64,
    dropped: u64,
    websockets: i64,
    event_streams: i64,
    /// Bytes; `None` before they are known.
    memory: Option<u64>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(
        status: &'a Status,
        scoreboard: Option<&'a Scoreboard>,
        memory: &[ProcessMemory],
        history: &'a History,
    ) -> Snapshot<'a> {
        let counts = Counts::of(scoreboard);
        let process = |child| Process::new(child, &counts, scoreboard, memory, history);
        Snapshot {
            version: &status.version,
            ruby: &status.ruby.version,
            pid: status.pid,
            state: status.state,
            generation: status.generation,
            started_at: date::milliseconds(status.started_at),
            uptime: age(status.started_at),
            addresses: &status.addresses,
            pause: status.pause.map(ShownPause::from),
            restart: status.restart.as_ref().map(ShownRestart::from),
            workers: status.workers,
            max_threads: status.max_threads,
            now: history.age().as_millis() as u64,
            point: history.last(),
            percentiles: history.percentiles().map(|time| time.map(rounded)),
            waiting_room: scoreboard.filter(|_| status.has_workers()).map(Room),
            processes: status.children.iter().map(process).collect(),
            running: scoreboard.map_or_else(Vec::new, |scoreboard| slowest(scoreboard, &status.children)),
            refusals: scoreboard.map_or_else(Vec::new, figures::refusals),
            memory: (!memory.is_empty()).then(|| memory.iter().map(|process| process.bytes).sum()),
        }
    }
}

impl Process {
    fn new(
        child: &Child,
        counts: &Counts,
        scoreboard: Option<&Scoreboard>,
        memory: &[ProcessMemory],
        history: &History,
    ) -> Process {
        let own = MemoryOf::Worker {
            index: child.index,
            slot: child.slot,
        };
        let slot = scoreboard.map(|scoreboard| scoreboard.slot(child.slot));
        let stats = slot.map(|slot| slot.stats(slot)).unwrap_or_default();
        Process {
            index: child.index,
            slot: child.slot,
            pid: child.pid,
            generation: child.generation,
            state: child.state_name(),
            uptime: age(child.started_at),
            heartbeat_age: child.heartbeat_age,
            rate: rounded(history.rate(child.slot)),
            counters: counts.of_child(child).copied().unwrap_or_default(),
            channels: stats.channels,
            subscriptions: stats.subscriptions,
            published: stats.published,
            delivered: stats.delivered,
            dropped: stats.dropped,
            websockets: stats.websockets,
            event_streams: stats.event_streams,
            memory: memory
                .iter()
                .find(|process| process.of == own)
                .map(|process| process.bytes),
        }
    }
}

/// Seconds since then; 0 if the clock was set back.
fn age(then: SystemTime) -> f64 {
    then.elapsed().map_or(0.0, |age| rounded(age.as_secs_f64()))
}
