//! `/metrics`, in both formats.

use crate::support::{access, child, scoreboard, status, Answer, Builder, Server};
use fairlead_engine::{RequestKind, ResponseKind, Scoreboard, Version};
use fairlead_supervisor::control::{Access, Kind, Restart, RestartCounts, RestartState, Status};
use fairlead_supervisor::machine::RestartKind;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// The samples of a page, after checks of its form.
struct Samples(HashMap<String, f64>);

impl Samples {
    fn of(answer: &Answer, suffix_of_counters: &str) -> Samples {
        let (mut families, mut kinds, mut samples) = (HashSet::new(), HashMap::new(), HashMap::new());
        let mut family = "";
        for line in answer.body.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split_once(' ').unwrap().0;
                assert!(families.insert(family), "{family} comes twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family);
                kinds.insert(name, kind);
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                let suffix = name
                    .strip_prefix(family)
                    .unwrap_or_else(|| panic!("{line} in {family}"));
                let suffixes: &[&str] = match kinds[family] {
                    "counter" => &[suffix_of_counters],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(suffixes.contains(&suffix), "{line}");
                assert!(
                    samples.insert(sample.to_string(), value.parse().unwrap()).is_none(),
                    "{line} twice"
                );
            }
        }
        Samples(samples)
    }

    fn value(&self, sample: &str) -> Option<f64> {
        self.0.get(sample).copied()
    }
}

fn counted() -> Arc<Scoreboard> {
    let scoreboard = scoreboard();
    for slot in 0..2 {
        let slot = scoreboard.slot(slot);
        slot.beat();
        slot.requests.store(70, Relaxed);
        slot.queued.store(3, Relaxed);
        slot.threads.store(4, Relaxed);
        slot.busy_threads.store(2, Relaxed);
        slot.lost_log_bytes.store(9, Relaxed);
    }
    scoreboard.slot(1).gc_milliseconds.store(1_250, Relaxed);
    scoreboard.moved.store(5, Relaxed);
    // Of workers that count together, and of workers that do not.
    for slot in [0, 1, 8] {
        scoreboard.count_response(slot, response("GET", 200), Duration::from_millis(500));
    }
    scoreboard.count_response(1, response("BREW", 418), Duration::ZERO);
    scoreboard
}

fn response(method: &str, status: u16) -> ResponseKind {
    ResponseKind {
        request: RequestKind::new(method.as_bytes(), true),
        version: Version::Http11,
        status,
    }
}

fn serve(kind: Kind, status: Status) -> Server {
    let scoreboard = Some(counted());
    Builder {
        kind,
        status,
        scoreboard,
        ..Builder::default()
    }
    .start()
}

#[test]
fn each_worker_and_the_server_have_their_figures() {
    let mut restarts = RestartCounts::default();
    restarts.worker("hung");
    restarts.restart(RestartKind::Hot, false);
    let server = serve(Kind::Control(access()), Status { restarts, ..status(2) });
    let answer = server.command("metrics");
    assert_eq!(
        (answer.status, answer.kind.as_str()),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    let samples = Samples::of(&answer, "");
    for (sample, value) in [
        ("fairlead_info{version=\"0.1.0\",ruby=\"3.4.1\"}", 1.0),
        ("fairlead_ready", 1.0),
        ("fairlead_recycled_workers_total{reason=\"memory\"}", 3.0),
        ("fairlead_workers", 2.0),
        ("fairlead_processes{state=\"serving\"}", 2.0),
        ("fairlead_requests_total{worker=\"1\",slot=\"1\"}", 70.0),
        ("fairlead_queued{worker=\"0\",slot=\"0\"}", 3.0),
        ("fairlead_lost_log_bytes_total{worker=\"0\",slot=\"0\"}", 9.0),
        ("fairlead_waiting_room_moved_total", 5.0),
        ("fairlead_waiting_room_waiting", 0.0),
        ("fairlead_queue_time_seconds_bucket{le=\"0.0001\"}", 0.0),
        ("fairlead_queue_time_seconds_bucket{le=\"+Inf\"}", 0.0),
        ("fairlead_waiting_room_seconds_count", 0.0),
        ("fairlead_lock_wait_seconds_sum", 0.0),
        ("fairlead_gc_seconds_total{worker=\"1\",slot=\"1\"}", 1.25),
        ("fairlead_cgroup_memory_bytes", 11.0),
        ("fairlead_cgroup_memory_max_bytes", 13.0),
        ("fairlead_pss_bytes{process=\"supervisor\"}", 5.0),
        ("fairlead_pss_bytes{process=\"worker\",worker=\"0\",slot=\"0\"}", 7.0),
        ("fairlead_worker_restarts_total{reason=\"hung\"}", 1.0),
        ("fairlead_worker_restarts_total{reason=\"ended\"}", 0.0),
        ("fairlead_restarts_total{kind=\"hot\",state=\"failed\"}", 1.0),
        ("fairlead_rejections_total{reason=\"max_connections\"}", 0.0),
        ("puma_workers", 2.0),
        ("puma_booted_workers", 2.0),
        ("puma_old_workers", 0.0),
        ("puma_backlog{index=\"1\"}", 3.0),
        ("puma_pool_capacity{index=\"0\"}", 3.0),
        ("puma_requests_count{index=\"0\"}", 70.0),
        ("puma_running_threads{phase=\"0\"}", 8.0),
    ] {
        assert_eq!(samples.value(sample), Some(value), "{sample}\n{}", answer.body);
    }
    assert_eq!(samples.value("fairlead_restart_info"), None);
}

#[test]
fn responses_of_all_workers_count_by_kind() {
    let samples = Samples::of(&serve(Kind::Health, status(2)).get("/metrics"), "");
    let labels = |method, status| {
        format!(
            "http_request_method=\"{method}\",http_response_status_code=\"{status}\",\
             network_protocol_version=\"1.1\",url_scheme=\"https\""
        )
    };
    let name = "http_server_request_duration_seconds";
    for (sample, value) in [
        (format!("{name}_count{{{}}}", labels("GET", 200)), 3.0),
        (format!("{name}_sum{{{}}}", labels("GET", 200)), 1.5),
        (format!("{name}_bucket{{{},le=\"0.25\"}}", labels("GET", 200)), 0.0),
        (format!("{name}_bucket{{{},le=\"0.5\"}}", labels("GET", 200)), 3.0),
        (format!("{name}_bucket{{{},le=\"+Inf\"}}", labels("_OTHER", 418)), 1.0),
    ] {
        assert_eq!(samples.value(&sample), Some(value), "{sample}");
    }
}

#[test]
fn kinds_beyond_the_limit_count_together() {
    let board = counted();
    (500..999).for_each(|status| board.count_response(0, response("GET", status), Duration::ZERO));
    let server = Builder {
        scoreboard: Some(board),
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();
    let samples = Samples::of(&server.get("/metrics"), "");
    let counts = samples
        .0
        .iter()
        .filter(|(sample, _)| sample.starts_with("http_server_request_duration_seconds_count"));
    let (others, own): (Vec<_>, Vec<_>) =
        counts.partition(|(sample, _)| sample.contains("method=\"_OTHER\"") && sample.contains("xx\""));
    // One series of the first table is taken by GET 200, and two of the second.
    assert_eq!(own.len(), 129);
    let others = others.into_iter().map(|(_, count)| count);
    assert_eq!(others.sum::<f64>(), 499.0 - 127.0);
}

#[test]
fn all_get_the_same_page_for_a_second() {
    let board = counted();
    let server = Builder {
        scoreboard: Some(Arc::clone(&board)),
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();
    let moved = || Samples::of(&server.get("/metrics"), "").value("fairlead_waiting_room_moved_total");
    assert_eq!(moved(), Some(5.0));
    let changed_at = std::time::Instant::now();
    board.moved.store(6, Relaxed);
    while moved() == Some(5.0) {
        assert!(changed_at.elapsed() < Duration::from_secs(20), "the page stays");
    }
    let (_, page_is_new) = (moved(), changed_at.elapsed());
    assert!(page_is_new > Duration::from_millis(500), "after {page_is_new:?}");
}

#[test]
fn a_worker_and_its_replacement_have_figures_of_their_own() {
    let mut children = [child(0), child(1)];
    (children[1].index, children[1].generation, children[0].ending) = (0, 2, true);
    let server = serve(
        Kind::Control(access()),
        Status {
            generation: 2,
            children: children.to_vec(),
            restart: Some(Restart {
                kind: RestartKind::Phased,
                state: RestartState::Running,
                error: None,
                at: std::time::SystemTime::now(),
            }),
            ..status(1)
        },
    );
    let samples = Samples::of(&server.command("metrics"), "");
    for (sample, value) in [
        ("fairlead_requests_total{worker=\"0\",slot=\"0\"}", 70.0),
        ("fairlead_requests_total{worker=\"0\",slot=\"1\"}", 70.0),
        ("fairlead_worker_generation{worker=\"0\",slot=\"1\"}", 2.0),
        ("fairlead_processes{state=\"ending\"}", 1.0),
        ("fairlead_restart_info{kind=\"phased\",state=\"running\"}", 1.0),
        ("puma_old_workers", 1.0),
        ("puma_running{index=\"0\"}", 4.0),
        ("puma_running_threads{phase=\"1\"}", 4.0),
    ] {
        assert_eq!(samples.value(sample), Some(value), "{sample}");
    }
}

#[test]
fn open_metrics_are_for_a_client_that_accepts_them() {
    let server = serve(Kind::Health, status(2));
    let mut client = server.connect();
    client.write("GET /metrics HTTP/1.1\r\nhost: x\r\naccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
    let answer = client.answer();
    assert_eq!(
        (answer.status, answer.kind.as_str()),
        (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(answer.body.ends_with("\n# EOF\n"));
    let samples = Samples::of(&answer, "_total");
    assert_eq!(
        samples.value("fairlead_requests_total{worker=\"1\",slot=\"1\"}"),
        Some(70.0)
    );
}

#[test]
fn the_health_endpoints_have_them_without_a_token_and_the_control_server_with_one() {
    assert_eq!(serve(Kind::Health, status(1)).get("/metrics").status, 200);
    let data_only = Access {
        data_only: true,
        ..access()
    };
    let server = serve(Kind::Control(data_only), status(1));
    assert_eq!(server.get("/metrics").status, 403);
    assert_eq!(server.command("metrics").status, 200);
}
