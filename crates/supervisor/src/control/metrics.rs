//! The response to `/metrics`, from the scoreboard and the state of the supervisor: in the text format of Prometheus, or in
//! OpenMetrics if the client accepts that. No Ruby process is asked, so it also works while all of them hang.

use super::counts::Counts;
use super::exposition::Page;
use super::health;
use super::peaks::Peak;
use super::puma_stats::{phase, Pool};
use super::request::Request;
use super::response::Response;
use super::status::{Child, RestartState, Status};
use fairlead_engine::{Figure, Kind, Scoreboard, Shown, Statistic, Stats};

/// Its name, its help text, and its value.
type PumaMetric = (&'static str, &'static str, fn(&Pool) -> i64);

/// Puma's names, as the gem yabeda-puma-plugin exports them: for each worker.
const PUMA_OF_WORKER: [PumaMetric; 6] = [
    ("puma_backlog", "Requests that wait for a thread.", |pool| pool.backlog),
    ("puma_running", "Threads that have started.", |pool| pool.running),
    (
        "puma_pool_capacity",
        "Threads that could take another request.",
        |pool| pool.pool_capacity,
    ),
    ("puma_busy_threads", "Threads that run the application.", |pool| {
        pool.busy_threads
    }),
    ("puma_max_threads", "Most threads of a worker.", |pool| pool.max_threads),
    ("puma_requests_count", "Requests served.", |pool| {
        i64::try_from(pool.requests_count).unwrap_or(i64::MAX)
    }),
];

/// Further names, as the gem prometheus_exporter exports them: for all workers of the same code.
const PUMA_OF_PHASE: [PumaMetric; 3] = [
    ("puma_request_backlog", "Requests that wait for a thread.", |pool| {
        pool.backlog
    }),
    ("puma_running_threads", "Threads that have started.", |pool| {
        pool.running
    }),
    (
        "puma_thread_pool_capacity",
        "Threads that could take another request.",
        |pool| pool.pool_capacity,
    ),
];

/// The response to a request.
pub(super) fn answer(request: &Request, status: &Status, scoreboard: Option<&Scoreboard>) -> Response {
    let mut page = Page::accepted_by(request);
    server(&mut page, status);
    if let Some(scoreboard) = scoreboard {
        workers(&mut page, status, scoreboard);
        room(&mut page, scoreboard);
        times(&mut page, scoreboard);
        puma(&mut page, status, &Counts::dealt(Some(scoreboard)));
    }
    page.response()
}

/// The server as a whole, and its last restart.
fn server(page: &mut Page, status: &Status) {
    let info = [
        ("version", status.version.as_str()),
        ("ruby", status.ruby.version.as_str()),
    ];
    page.gauge("fairlead_info", "The versions of the server and of Ruby.")
        .value(&info, 1);
    page.gauge("fairlead_ready", "1 if /ready responds with 200.")
        .value(&[], u8::from(health::is_ready(status)));
    page.gauge("fairlead_generation", "The number of times that the code was loaded.")
        .value(&[], status.generation);
    page.gauge(
        "fairlead_workers",
        "The configured number of workers; 0 for a single process.",
    )
    .value(&[], status.workers);
    let children = |state: fn(&Child) -> bool| status.children.iter().filter(|child| state(child)).count();
    let mut processes = page.gauge("fairlead_processes", "Processes that run the application, by state.");
    processes.value(
        &[("state", "booting")],
        children(|child| !child.booted && !child.ending),
    );
    processes.value(&[("state", "serving")], children(Child::serves));
    processes.value(&[("state", "ending")], children(|child| child.ending));
    if let Some(restart) = &status.restart {
        let state = match restart.state {
            RestartState::Running => "running",
            RestartState::Done => "done",
            RestartState::Failed => "failed",
        };
        page.gauge("fairlead_restart_info", "The running restart, or the last one.")
            .value(&[("kind", restart.kind_name()), ("state", state)], 1);
    }
}

/// Each statistic of each worker. A new worker in the same slot begins at 0.
fn workers(page: &mut Page, status: &Status, scoreboard: &Scoreboard) {
    let started = status
        .children
        .iter()
        .filter(|child| scoreboard.slot(child.slot).age().is_some());
    let all: Vec<(OfChild, Stats)> = started
        .map(|child| {
            let slot = scoreboard.slot(child.slot);
            (OfChild::new(child), slot.stats(slot))
        })
        .collect();
    for (number, statistic) in Statistic::all().iter().enumerate() {
        if statistic.kind == Kind::Histogram || statistic.shown == Shown::Nowhere {
            continue;
        }
        let mut family = page.statistic(statistic, "fairlead_");
        for (child, stats) in &all {
            if let Some((_, Figure::Number(value))) = stats.iter().nth(number) {
                family.value(&child.labels(), value);
            }
        }
    }
    let mut ages = page.gauge(
        "fairlead_heartbeat_age_seconds",
        "Time since the process last showed that its native threads run.",
    );
    for child in &status.children {
        if let Some(age) = child.heartbeat_age {
            ages.value(&OfChild::new(child).labels(), age);
        }
    }
    let mut generations = page.gauge(
        "fairlead_worker_generation",
        "The generation of the code that the process runs.",
    );
    for child in &status.children {
        generations.value(&OfChild::new(child).labels(), child.generation);
    }
}

/// Requests that wait for any worker.
fn room(page: &mut Page, scoreboard: &Scoreboard) {
    for (statistic, value) in scoreboard.room() {
        page.statistic(&statistic, "fairlead_waiting_room_").value(&[], value);
    }
}

/// The waits of requests, in all workers since the start.
fn times(page: &mut Page, scoreboard: &Scoreboard) {
    for (statistic, histogram) in scoreboard.times() {
        let name = match statistic.name {
            "waiting_room_time" => "waiting_room",
            name => name,
        };
        page.histogram(&format!("fairlead_{name}_seconds"), statistic.help, &histogram);
    }
}

/// The figures under the names of exporters for Puma.
fn puma(page: &mut Page, status: &Status, counts: &Counts) {
    let is_old = |child: &&Child| child.generation != status.generation;
    let booted = status.children.iter().filter(|child| child.booted);
    for (name, help, count) in [
        ("puma_workers", "Workers.", status.children.len()),
        ("puma_booted_workers", "Workers that serve.", booted.clone().count()),
        (
            "puma_old_workers",
            "Workers with old code.",
            status.children.iter().filter(is_old).count(),
        ),
    ] {
        page.gauge(name, help).value(&[], count);
    }
    // The label of a worker is its index, which a worker and its replacement share for a moment.
    let serving = booted.filter(|child| !child.ending).filter_map(|child| {
        let pool = Pool::new(counts.of_child(child)?, Peak::default(), status.max_threads);
        Some((child.index, pool))
    });
    let mut by_index: Vec<(usize, Pool)> = serving.collect();
    by_index.sort_by_key(|(index, _)| *index);
    by_index.dedup_by_key(|(index, _)| *index);
    for (name, help, read) in PUMA_OF_WORKER {
        let mut family = page.gauge(name, help);
        for (index, pool) in &by_index {
            family.value(&[("index", &index.to_string())], read(pool));
        }
    }
    let phase = phase(status.generation).to_string();
    for (name, help, read) in PUMA_OF_PHASE {
        let sum: i64 = by_index.iter().map(|(_, pool)| read(pool)).sum();
        page.gauge(name, help).value(&[("phase", &phase)], sum);
    }
}

/// The labels of a process. Its slot is its own while it lives; the index belongs to its replacement, too.
struct OfChild {
    index: String,
    slot: String,
}

impl OfChild {
    fn new(child: &Child) -> OfChild {
        let (index, slot) = (child.index.to_string(), child.slot.to_string());
        OfChild { index, slot }
    }

    fn labels(&self) -> [(&'static str, &str); 2] {
        [("worker", &self.index), ("slot", &self.slot)]
    }
}
