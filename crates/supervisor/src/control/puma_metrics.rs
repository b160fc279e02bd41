//! The figures under the names of exporters for Puma.

use super::counts::Counts;
use super::exposition::Page;
use super::peaks::Peak;
use super::puma_stats::{phase, Pool};
use super::status::{Child, Status};

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

/// Adds them to a page. `counts`: including the requests of the waiting room.
pub(super) fn puma(page: &mut Page, status: &Status, counts: &Counts) {
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
        let mut family = match name.ends_with("_count") {
            true => page.untyped(name, help),
            false => page.gauge(name, help),
        };
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
