//! Finds workers that have used up a limit: of memory, requests or age. The machine replaces them one at a time.

use crate::background::Background;
use crate::children::Child;
use crate::fleet::Fleet;
use crate::machine::{Event, Machine, Moment, ProcessId, RecycleReason, WorkerView};
use crate::process_memory;
use crate::settings::RecyclingSettings;
use fairlead_engine::Slot;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Time between two readings of the memory of all workers.
const READINGS: Duration = Duration::from_secs(5);

const MEBIBYTE: u64 = 1024 * 1024;

/// The memory of workers, or why it cannot be read.
type Readings = Vec<(ProcessId, io::Result<u64>)>;

/// The limits of workers, and their measured values.
pub(super) struct Recycler {
    settings: RecyclingSettings,
    workers: BTreeMap<ProcessId, Record>,
    memory: Option<Background<Readings>>,
    read_at: Moment,
    /// The processes at the last reading.
    sharers: BTreeSet<ProcessId>,
    /// True if a worker is stuck: the next one is replaced as soon as possible.
    urgent: bool,
    /// True once a problem with memory was reported: one line for a configuration is enough.
    reported: bool,
}

/// A worker.
struct Record {
    /// The time when it had settled.
    since: Moment,
    /// Its random part of the jitter, from 0 to 1.
    chance: f64,
    memory: Option<Memory>,
}

/// The memory of a worker, in bytes: its share of all pages. When another process ends, the others have larger shares
/// of the same pages, and have not grown.
#[derive(Clone, Copy)]
struct Memory {
    /// At the first reading, and the growth since then around ends of other processes.
    first: u64,
    /// At the last reading.
    last: u64,
    /// Growth before the last reading that `first` does not have.
    grown: u64,
}

impl Memory {
    fn new(first: u64) -> Memory {
        Memory {
            first,
            last: first,
            grown: 0,
        }
    }

    /// Takes the next reading. `has_lost_sharer`: another process has ended since the last one.
    fn read(self, now: u64, has_lost_sharer: bool) -> Memory {
        let grown = now.saturating_sub(self.last);
        match has_lost_sharer {
            // It may have ended before the last reading was made.
            true => Memory {
                first: self.first + self.grown + grown,
                last: now,
                grown: 0,
            },
            false => Memory {
                last: now,
                grown,
                ..self
            },
        }
    }
}

impl Recycler {
    pub(super) fn new(settings: &RecyclingSettings, now: Moment) -> Recycler {
        Recycler {
            settings: settings.clone(),
            workers: BTreeMap::new(),
            memory: None,
            read_at: now,
            sharers: BTreeSet::new(),
            urgent: false,
            reported: false,
        }
    }

    /// Returns true if the next look must not wait for a second.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// Uses other limits from now on.
    pub(super) fn adopt(&mut self, settings: &RecyclingSettings) {
        self.settings = settings.clone();
        self.reported = false;
    }

    /// Returns events for workers that must be replaced, the most urgent first, and a problem for the log.
    pub(super) fn look(&mut self, now: Moment, machine: &Machine, fleet: &Fleet) -> (Vec<Event>, Option<String>) {
        let settled: Vec<WorkerView> = machine
            .workers()
            .filter(|worker| worker.settled && !worker.sole && !machine.borrows(worker.generation))
            .collect();
        self.workers
            .retain(|id, _| settled.iter().any(|worker| worker.id == *id));
        for worker in &settled {
            self.workers.entry(worker.id).or_insert_with(|| {
                self.read_at = now; // the first reading tells what the application needs
                Record::new(now)
            });
        }
        let problem = self.read_memory(now, &settled, fleet);
        let board = fleet.memory().scoreboard();
        let spent = settled
            .iter()
            .filter_map(|worker| Some((self.spent(worker.id, board.slot(worker.slot), now)?, worker.id)));
        let mut spent: Vec<((RecycleReason, String), ProcessId)> = spent.collect();
        spent.sort();
        self.urgent = spent
            .first()
            .is_some_and(|((reason, _), _)| *reason == RecycleReason::Stuck);
        let events = spent
            .into_iter()
            .map(|((reason, detail), id)| Event::Recycle(id, reason, detail));
        (events.collect(), problem)
    }

    /// The limit that a worker has used up, with the figures.
    fn spent(&self, id: ProcessId, slot: &Slot, now: Moment) -> Option<(RecycleReason, String)> {
        let record = self.workers.get(&id)?;
        let stuck = slot.stuck.load(Relaxed);
        if stuck > 0 {
            let requests = if stuck == 1 { "request runs" } else { "requests run" };
            let text = format!("{stuck} {requests} for longer than stuck_after");
            return Some((RecycleReason::Stuck, text));
        }
        let share = 1.0 - self.settings.jitter * record.chance;
        self.memory_spent(record, share)
            .map(|text| (RecycleReason::Memory, text))
            .or_else(|| {
                self.requests_spent(slot, share)
                    .map(|text| (RecycleReason::Requests, text))
            })
            .or_else(|| {
                self.age_spent(now - record.since, share)
                    .map(|text| (RecycleReason::Age, text))
            })
    }

    fn memory_spent(&self, record: &Record, share: f64) -> Option<String> {
        let (memory, most) = (record.memory?, part(self.settings.max_memory?, share));
        // If an application needs more from its start, a replacement brings nothing until it has grown.
        let limit = most.max(memory.first + memory.first / 4);
        (memory.last > limit).then(|| {
            let (used, limit) = (memory.last / MEBIBYTE, limit / MEBIBYTE);
            format!("it uses {used} MiB, more than {limit} MiB (worker_max_memory)")
        })
    }

    fn requests_spent(&self, slot: &Slot, share: f64) -> Option<String> {
        let limit = part(self.settings.max_requests?, share);
        let requests = slot.requests.load(Relaxed).saturating_sub(slot.files.load(Relaxed));
        (requests >= limit)
            .then(|| format!("it has served {requests} requests, at least {limit} (worker_max_requests)"))
    }

    fn age_spent(&self, age: Duration, share: f64) -> Option<String> {
        let limit = self.settings.max_age? * share;
        (age.as_secs_f64() >= limit).then(|| {
            format!(
                "it has served for {} s, at least {limit:.0} s (worker_max_age)",
                age.as_secs()
            )
        })
    }

    // --- memory

    /// Takes over the results, and begins the next reading. Returns a problem for the log.
    fn read_memory(&mut self, now: Moment, settled: &[WorkerView], fleet: &Fleet) -> Option<String> {
        let most = self.settings.max_memory?;
        let mut problem = None;
        let results = self.memory.as_mut().map(Background::results).unwrap_or_default();
        let readings: Readings = results.into_iter().flatten().collect();
        let has_lost_sharer = !readings.is_empty() && self.note_sharers(fleet);
        for (id, reading) in readings {
            let Some(record) = self.workers.get_mut(&id) else {
                continue;
            };
            match reading {
                Ok(last) => {
                    let before = record.memory;
                    let memory = before.map_or(Memory::new(last), |memory| memory.read(last, has_lost_sharer));
                    record.memory = Some(memory);
                    let first = memory.first;
                    if first > most {
                        let (first, most) = (first / MEBIBYTE, most / MEBIBYTE);
                        problem = Some(format!(
                            "a worker uses {first} MiB right after its start, so worker_max_memory ({most} MiB) is too low; \
                             workers are recycled when they have grown by a quarter"
                        ));
                    }
                }
                Err(error) if has_ended(&error) => {}
                Err(error) => {
                    problem = Some(format!(
                        "the memory of a worker cannot be read, so worker_max_memory has no effect: {error}"
                    ));
                }
            }
        }
        self.begin_reading(now, settled, fleet);
        problem.filter(|_| !std::mem::replace(&mut self.reported, true))
    }

    /// Returns true if a process has ended since the last call.
    fn note_sharers(&mut self, fleet: &Fleet) -> bool {
        let now: BTreeSet<ProcessId> = fleet.children.iter().flat_map(Child::names).collect();
        let has_lost = !self.sharers.is_subset(&now);
        self.sharers = now;
        has_lost
    }

    fn begin_reading(&mut self, now: Moment, settled: &[WorkerView], fleet: &Fleet) {
        if now < self.read_at {
            return;
        }
        if self.memory.is_none() {
            self.memory = Background::new("fairlead memory").ok();
        }
        let Some(memory) = self.memory.as_mut().filter(|memory| memory.is_idle()) else {
            return; // the kernel is slow, and tells more later
        };
        self.read_at = now + READINGS;
        let pid = |worker: &WorkerView| Some((worker.id, fleet.children.find(worker.id)?.pid()?));
        let pids: Vec<(ProcessId, i32)> = settled.iter().filter_map(pid).collect();
        let read = |(id, pid)| (id, process_memory::proportional(pid));
        let _ = memory.run(move || pids.into_iter().map(read).collect());
    }
}

impl Record {
    fn new(now: Moment) -> Record {
        let random = RandomState::new().hash_one(0);
        Record {
            since: now,
            chance: random as f64 / u64::MAX as f64,
            memory: None,
        }
    }
}

/// True if a process is gone, or is about to be.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn part(limit: u64, share: f64) -> u64 {
    (limit as f64 * share) as u64
}

#[cfg(test)]
mod tests;
