//! The response to `/status`: the state of the server and its processes, the last restart, the counters of each
//! process, and the times that requests have waited.

use super::counts::{Counters, Counts, Room, Times};
use super::date;
use super::host::CgroupMemory;
use super::status::{Child, Paused, ReforkEffect, Restart, RestartState, ServerState, Status};
use crate::machine::RecycleReason;
use fairlead_engine::Scoreboard;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The response, in the order of its keys.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    version: &'a str,
    pid: u32,
    state: ServerState,
    generation: u32,
    started_at: String,
    addresses: &'a [String],
    restart: Option<ShownRestart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<ShownPause>,
    workers: usize,
    max_threads: usize,
    waits: Times<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acme: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<CgroupMemory>,
    #[serde(flatten)]
    processes: Processes<'a>,
}

/// A pause, with times in seconds.
#[derive(Serialize)]
pub(super) struct ShownPause {
    timeout: f64,
    left: f64,
}

/// A restart, as programs see it.
#[derive(Serialize)]
pub(super) struct ShownRestart<'a> {
    kind: &'static str,
    state: RestartState,
    error: Option<&'a str>,
    at: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Processes<'a> {
    Sole {
        counters: Option<Counters>,
    },
    Workers {
        waiting_room: Option<Room<'a>>,
        recycled: BTreeMap<RecycleReason, u64>,
        refork: ShownRefork,
        worker_status: Vec<Worker>,
    },
}

/// The automatic reforks, and the memory of all processes in bytes.
#[derive(Serialize)]
struct ShownRefork {
    automatic: u32,
    memory_before: Option<u64>,
    memory_after: Option<u64>,
}

impl From<ReforkEffect> for ShownRefork {
    fn from(effect: ReforkEffect) -> ShownRefork {
        ShownRefork {
            automatic: effect.reforks,
            memory_before: effect.memory.map(|[before, _]| before),
            memory_after: effect.memory.map(|[_, after]| after),
        }
    }
}

#[derive(Serialize)]
struct Worker {
    index: usize,
    slot: usize,
    pid: Option<i32>,
    generation: u32,
    booted: bool,
    ending: bool,
    started_at: String,
    heartbeat_age: Option<f64>,
    counters: Option<Counters>,
}

impl<'a> Report<'a> {
    /// The report of this server.
    pub(super) fn new(
        status: &'a Status,
        scoreboard: Option<&'a Scoreboard>,
        cgroup: Option<CgroupMemory>,
    ) -> Report<'a> {
        Report {
            version: &status.version,
            pid: status.pid,
            state: status.state,
            generation: status.generation,
            started_at: date::milliseconds(status.started_at),
            addresses: &status.addresses,
            restart: status.restart.as_ref().map(ShownRestart::from),
            pause: status.pause.map(ShownPause::from),
            workers: status.workers,
            max_threads: status.max_threads,
            waits: Times(scoreboard),
            acme: status.acme.as_deref(),
            cgroup,
            processes: Processes::new(status, scoreboard),
        }
    }
}

impl<'a> Processes<'a> {
    fn new(status: &Status, scoreboard: Option<&'a Scoreboard>) -> Processes<'a> {
        let counts = Counts::of(scoreboard);
        if status.has_workers() {
            return Processes::Workers {
                waiting_room: scoreboard.map(Room),
                recycled: status.recycled.iter().copied().collect(),
                refork: ShownRefork::from(status.refork),
                worker_status: status
                    .children
                    .iter()
                    .map(|child| Worker::new(child, &counts))
                    .collect(),
            };
        }
        let sole = status.sole();
        Processes::Sole {
            counters: sole.and_then(|child| counts.of_child(child)).copied(),
        }
    }
}

impl Worker {
    fn new(child: &Child, counts: &Counts) -> Worker {
        Worker {
            index: child.index,
            slot: child.slot,
            pid: child.pid,
            generation: child.generation,
            booted: child.booted,
            ending: child.ending,
            started_at: date::milliseconds(child.started_at),
            heartbeat_age: child.heartbeat_age,
            counters: counts.of_child(child).copied(),
        }
    }
}

impl From<Paused> for ShownPause {
    fn from(pause: Paused) -> ShownPause {
        ShownPause {
            timeout: pause.timeout.as_secs_f64(),
            left: pause.left.as_secs_f64(),
        }
    }
}

impl<'a> From<&'a Restart> for ShownRestart<'a> {
    fn from(restart: &'a Restart) -> ShownRestart<'a> {
        ShownRestart {
            kind: restart.kind_name(),
            state: restart.state,
            error: restart.error.as_deref(),
            at: date::milliseconds(restart.at),
        }
    }
}
