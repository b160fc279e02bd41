//! The response to `/metrics`, from the scoreboard and the state of the supervisor: in the text format of Prometheus, or in
//! OpenMetrics if the client accepts that. No Ruby process is asked, so it also works while all of them hang.

use super::counts::Counts;
use super::exposition::{Format, Page};
use super::health;
use super::host::{CgroupMemory, Host, MemoryOf, ProcessMemory};
use super::puma_metrics::puma;
use super::response::Response;
use super::status::{Child, RestartState, Status};
use fairlead_engine::{Figure, Kind, ResponseKind, ResponseSeries, Scoreboard, Shown, Statistic, Stats};

/// The value of all labels for kinds of responses beyond the limit.
const OTHER: &str = "_OTHER";

/// A page with all figures.
pub(super) fn page(format: Format, host: &mut dyn Host) -> Response {
    let memory = host.memory();
    let (status, mut page) = (host.status(), Page::new(format));
    server(&mut page, &status);
    restarts(&mut page, &status);
    memory_of_processes(&mut page, &memory);
    memory_of_cgroup(&mut page, host.cgroup_memory());
    if let Some(scoreboard) = host.scoreboard() {
        http(&mut page, scoreboard);
        workers(&mut page, &status, scoreboard);
        room(&mut page, scoreboard);
        times(&mut page, scoreboard);
        puma(&mut page, &status, &Counts::dealt(Some(scoreboard)));
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
    page.gauge("fairlead_paused", "1 while new requests wait for the end of a pause.")
        .value(&[], u8::from(status.pause.is_some()));
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
}

/// Recycled workers, the last restart, and the numbers of all restarts.
fn restarts(page: &mut Page, status: &Status) {
    let mut recycled = page.counter(
        "fairlead_recycled_workers",
        "Workers replaced one at a time, by reason.",
    );
    for (reason, count) in &status.recycled {
        recycled.value(&[("reason", reason.name())], count);
    }
    if let Some([before, after]) = status.refork.memory {
        let mut memory = page.gauge(
            "fairlead_refork_memory_bytes",
            "Memory of all processes before and after the last automatic refork.",
        );
        memory.value(&[("state", "before")], before);
        memory.value(&[("state", "after")], after);
    }
    if let Some(restart) = &status.restart {
        let state = match restart.state {
            RestartState::Running => "running",
            RestartState::Done => "done",
            RestartState::Failed => "failed",
        };
        page.gauge("fairlead_restart_info", "The running restart, or the last one.")
            .value(&[("kind", restart.kind_name()), ("state", state)], 1);
    }
    let mut restarts = page.counter("fairlead_restarts", "Restarts of the server, by kind and result.");
    for (kind, state, count) in status.restarts.restarts() {
        restarts.value(&[("kind", kind), ("state", state)], count);
    }
    let mut workers = page.counter(
        "fairlead_worker_restarts",
        "Workers that were lost and replaced, by reason.",
    );
    for (reason, count) in status.restarts.workers() {
        workers.value(&[("reason", reason)], count);
    }
}

/// The memory of each process.
fn memory_of_processes(page: &mut Page, memory: &[ProcessMemory]) {
    let mut family = page.gauge(
        "fairlead_pss_bytes",
        "Memory of each process; pages that several have are divided among them.",
    );
    for ProcessMemory { of, bytes } in memory {
        match of {
            MemoryOf::Supervisor => family.value(&[("process", "supervisor")], bytes),
            MemoryOf::Spawner { generation } => {
                let generation = generation.to_string();
                family.value(&[("process", "spawner"), ("generation", &generation)], bytes);
            }
            MemoryOf::Worker { index, slot } => {
                let (index, slot) = (index.to_string(), slot.to_string());
                family.value(&[("process", "worker"), ("worker", &index), ("slot", &slot)], bytes);
            }
        }
    }
}

/// The memory of the container or the service.
fn memory_of_cgroup(page: &mut Page, cgroup: Option<CgroupMemory>) {
    let Some(cgroup) = cgroup else { return };
    page.gauge(
        "fairlead_cgroup_memory_bytes",
        "Memory of the control group of the server, with cached files.",
    )
    .value(&[], cgroup.memory_bytes);
    if let Some(limit) = cgroup.memory_max_bytes {
        page.gauge(
            "fairlead_cgroup_memory_max_bytes",
            "The limit of that memory: the kernel kills processes when it cannot free enough.",
        )
        .value(&[], limit);
    }
}

/// Requests by their kind, in all workers since the start, with the names and labels of OpenTelemetry.
fn http(page: &mut Page, scoreboard: &Scoreboard) {
    let mut durations = page.histograms(
        "http_server_request_duration_seconds",
        "Time from the complete request to the end of the response by the application.",
    );
    for (series, times) in scoreboard.responses() {
        let (kind, status) = match series {
            // Without a response, because the app has taken the socket or its thread was killed, there is no status.
            ResponseSeries::Of(kind) if kind.status == 0 => (Some(kind), String::new()),
            ResponseSeries::Of(kind) => (Some(kind), kind.status.to_string()),
            ResponseSeries::Others(class) => (None, format!("{class}xx")),
        };
        let labels = [
            ("http_request_method", kind.map_or(OTHER, |kind| kind.request.method())),
            ("http_response_status_code", &status),
            ("network_protocol_version", kind.map_or(OTHER, ResponseKind::version)),
            ("url_scheme", kind.map_or(OTHER, |kind| kind.request.scheme())),
        ];
        durations.value(&labels, &times);
    }
    let mut active = page.gauge("http_server_active_requests", "Requests that threads run now.");
    for (kind, count) in scoreboard.active_requests() {
        let labels = [("http_request_method", kind.method()), ("url_scheme", kind.scheme())];
        active.value(&labels, count);
    }
    let mut refusals = page.counter(
        "fairlead_rejections",
        "Requests and connections that the server refused itself, by reason.",
    );
    for (reason, count) in scoreboard.refusals() {
        refusals.value(&[("reason", reason)], count);
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
                family.number(&child.labels(), value);
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
        page.histograms(&format!("fairlead_{name}_seconds"), statistic.help)
            .value(&[], &histogram);
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
