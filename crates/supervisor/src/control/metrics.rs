//! The response to `/metrics`, from the scoreboard and the state of the supervisor: in the text format of Prometheus, or in
//! OpenMetrics if the client accepts that. No Ruby process is asked, so it also works while all of them hang.

use super::counts::Counts;
use super::request::Request;
use super::response::Response;
use super::status::{Child, RestartState, ServerState, Status};
use crate::machine::RestartKind;
use fairlead_engine::{Figure, Histogram, Kind, Scoreboard, Shown, Statistic};
use std::fmt::{self, Display, Write};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Its name, its help text, and its value.
type PumaMetric = (&'static str, &'static str, fn(&Puma) -> i64);

/// Puma's names, as the gem yabeda-puma-plugin exports them: for each worker.
const PUMA_OF_WORKER: [PumaMetric; 6] = [
    ("puma_backlog", "Requests that wait for a thread.", |puma| puma.backlog),
    ("puma_running", "Threads that have started.", |puma| puma.running),
    (
        "puma_pool_capacity",
        "Threads that could take another request.",
        |puma| puma.capacity,
    ),
    ("puma_busy_threads", "Threads that run the application.", |puma| {
        puma.busy
    }),
    ("puma_max_threads", "Most threads of a worker.", |puma| puma.most),
    ("puma_requests_count", "Requests served.", |puma| puma.requests),
];

/// Further names, as the gem prometheus_exporter exports them: for all workers of the same code.
const PUMA_OF_PHASE: [PumaMetric; 3] = [
    ("puma_request_backlog", "Requests that wait for a thread.", |puma| {
        puma.backlog
    }),
    ("puma_running_threads", "Threads that have started.", |puma| {
        puma.running
    }),
    (
        "puma_thread_pool_capacity",
        "Threads that could take another request.",
        |puma| puma.capacity,
    ),
];

/// The response to a request.
pub(super) fn answer(request: &Request, status: &Status, scoreboard: Option<&Scoreboard>) -> Response {
    let accepted = request.field("accept").unwrap_or_default();
    let is_open = accepted
        .windows(OPEN_METRICS_TYPE.len())
        .any(|part| part == OPEN_METRICS_TYPE);
    let mut page = Page::new(is_open);
    server(&mut page, status);
    if let Some(scoreboard) = scoreboard {
        workers(&mut page, status, scoreboard);
        room(&mut page, scoreboard);
        times(&mut page, scoreboard);
        puma(&mut page, status, &Counts::dealt(Some(scoreboard)));
    }
    Response::typed(if is_open { OPEN_METRICS } else { PROMETHEUS }, page.end())
}

const OPEN_METRICS_TYPE: &[u8] = b"application/openmetrics-text";

/// The server as a whole, and its last restart.
fn server(page: &mut Page, status: &Status) {
    let info = [
        ("version", status.version.as_str()),
        ("ruby", status.ruby.version.as_str()),
    ];
    page.gauge("fairlead_info", "The versions of the server and of Ruby.")
        .value(&info, 1);
    let is_ready = matches!(status.state, ServerState::Ready | ServerState::Restarting);
    page.gauge("fairlead_ready", "1 if the server serves requests.")
        .value(&[], u8::from(is_ready));
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
        let kind = match restart.kind {
            RestartKind::Refork => "refork",
            RestartKind::Phased => "phased",
            RestartKind::Hot => "hot",
        };
        let state = match restart.state {
            RestartState::Running => "running",
            RestartState::Done => "done",
            RestartState::Failed => "failed",
        };
        page.gauge("fairlead_restart_info", "The running restart, or the last one.")
            .value(&[("kind", kind), ("state", state)], 1);
    }
}

/// Each statistic of each worker. A new worker in the same slot begins at 0.
fn workers(page: &mut Page, status: &Status, scoreboard: &Scoreboard) {
    let started = status
        .children
        .iter()
        .filter(|child| scoreboard.slot(child.slot).age().is_some());
    let all: Vec<_> = started
        .map(|child| {
            (
                OfChild::new(child),
                scoreboard.slot(child.slot).stats(scoreboard.slot(child.slot)),
            )
        })
        .collect();
    for (number, statistic) in Statistic::all().iter().enumerate() {
        if statistic.kind == Kind::Histogram || statistic.shown == Shown::Nowhere {
            continue;
        }
        let mut family = page.statistic(statistic, "fairlead_");
        for (child, stats) in &all {
            if let Some((_, Figure::Number(number))) = stats.iter().nth(number) {
                family.value(&child.labels(), number);
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

/// The figures of a worker under Puma's names.
#[derive(Clone, Copy, Default)]
struct Puma {
    backlog: i64,
    running: i64,
    capacity: i64,
    busy: i64,
    most: i64,
    requests: i64,
}

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
    let most = i64::try_from(status.max_threads).unwrap_or(i64::MAX);
    // The label of a worker is its index, which a worker and its replacement share for a moment.
    let serving = booted.filter(|child| !child.ending).filter_map(|child| {
        let counters = counts.of_child(child)?;
        let puma = Puma {
            backlog: counters.queued,
            running: counters.threads,
            capacity: (most - counters.busy_threads).max(0),
            busy: counters.busy_threads,
            most,
            requests: i64::try_from(counters.requests).unwrap_or(i64::MAX),
        };
        Some((child.index, puma))
    });
    let mut by_index: Vec<(usize, Puma)> = serving.collect();
    by_index.sort_by_key(|(index, _)| *index);
    by_index.dedup_by_key(|(index, _)| *index);
    for (name, help, read) in PUMA_OF_WORKER {
        let mut family = page.gauge(name, help);
        for (index, puma) in &by_index {
            family.value(&[("index", &index.to_string())], read(puma));
        }
    }
    let phase = (i64::from(status.generation) - 1).to_string();
    for (name, help, read) in PUMA_OF_PHASE {
        let sum: i64 = by_index.iter().map(|(_, puma)| read(puma)).sum();
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

/// The text so far.
struct Page {
    text: String,
    is_open: bool,
}

/// The values of one metric.
struct Family<'a> {
    page: &'a mut Page,
    /// The name of each value.
    name: String,
}

impl Page {
    fn new(is_open: bool) -> Page {
        let text = String::with_capacity(32 * 1024);
        Page { text, is_open }
    }

    fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.head(name, "gauge", help);
        self.family(name)
    }

    /// OpenMetrics names the family of a counter without the suffix of its values.
    fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        let total = format!("{name}_total");
        self.head(if self.is_open { name } else { &total }, "counter", help);
        self.family(&total)
    }

    fn statistic(&mut self, statistic: &Statistic, prefix: &str) -> Family<'_> {
        let name = format!("{prefix}{}", statistic.name);
        match statistic.kind {
            Kind::Counter => self.counter(&name, statistic.help),
            Kind::Gauge | Kind::Histogram => self.gauge(&name, statistic.help),
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let mut buckets = self.family(&format!("{name}_bucket"));
        for (bound, count) in histogram.buckets() {
            buckets.value(&[("le", &format!("{bound:?}"))], count);
        }
        buckets.value(&[("le", "+Inf")], histogram.count());
        self.family(&format!("{name}_sum")).value(&[], histogram.seconds());
        self.family(&format!("{name}_count")).value(&[], histogram.count());
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail. No help text has a backslash, a quote or a line end.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn family(&mut self, name: &str) -> Family<'_> {
        let name = name.to_string();
        Family { page: self, name }
    }

    fn end(mut self) -> String {
        if self.is_open {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_> {
    fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let _ = writeln!(self.page.text, "{}{} {value}", self.name, Labels(labels));
    }
}

/// `{name="value",…}`; empty without labels.
struct Labels<'a>(&'a [(&'a str, &'a str)]);

impl Display for Labels<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.0.iter().enumerate() {
            out.write_str(if number == 0 { "{" } else { "," })?;
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(out, "{name}=\"{escaped}\"")?;
        }
        if self.0.is_empty() {
            Ok(())
        } else {
            out.write_str("}")
        }
    }
}
