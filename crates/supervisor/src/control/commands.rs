//! The commands of the control server: Puma's, with its responses, and a few more. The last part of the path is the
//! command.

use super::counts::Counts;
use super::dashboard::{self, Dashboard};
use super::health;
use super::host::{Asked, Host, Question};
use super::inspect::inspect;
use super::peaks::Peaks;
use super::puma_stats::PumaStats;
use super::report::Report;
use super::request::Request;
use super::response::Response;
use super::token::Token;
use std::time::{Duration, Instant};

/// The commands that change nothing.
const READING: [&[u8]; 6] = [b"stats", b"gc-stats", b"status", b"metrics", b"snapshot", b"events"];

/// The longest timeout of a pause: the largest number of seconds that the configuration takes.
const LONGEST_PAUSE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The right to send commands.
#[derive(Clone, Debug)]
pub struct Access {
    /// The secret; `None` accepts commands from every program that reaches the server.
    pub token: Option<String>,
    /// The address of the control server: "tcp://127.0.0.1:9293".
    pub url: String,
    /// Only commands that change nothing are allowed.
    pub data_only: bool,
}

/// The result of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A response.
    Answer(Response),
    /// The metrics.
    Metrics,
    /// A question to Ruby; the response comes later.
    Ask(ToRuby),
    /// The events of the dashboard.
    Watch,
}

/// A question to Ruby processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToRuby {
    /// To the spawner, or to the sole process.
    First(Question),
    /// To all workers, or to one of them, by its process: their backtraces.
    Workers(Option<i32>),
}

/// Runs the commands.
#[derive(Debug)]
pub(super) struct Commands {
    token: Token,
    data_only: bool,
    peaks: Peaks,
    dashboard: Dashboard,
}

impl Commands {
    pub(super) fn new(access: &Access) -> Commands {
        Commands {
            token: Token::new(access.token.as_deref(), &access.url),
            data_only: access.data_only,
            peaks: Peaks::default(),
            dashboard: Dashboard::new(Instant::now()),
        }
    }

    /// Takes over the history of a server that ends.
    pub(super) fn succeed(&mut self, former: Commands) {
        self.peaks = former.peaks;
        self.dashboard = former.dashboard;
    }

    /// Reads the counters; call this about once a second.
    pub(super) fn look(&mut self, now: Instant, host: &dyn Host) {
        self.peaks.look(&Counts::dealt(host.scoreboard()));
        self.dashboard.look(now, host);
    }

    pub(super) fn dashboard(&mut self) -> &mut Dashboard {
        &mut self.dashboard
    }

    /// Responds to a request.
    pub(super) fn call(&mut self, request: &Request, host: &mut dyn Host) -> Outcome {
        if let Some(response) = self.prompt(request, host) {
            return Outcome::Answer(response);
        }
        match request.command() {
            b"stats" => Outcome::Answer(self.stats(host)),
            b"status" => Outcome::Answer(Response::json(&Report::new(
                &host.status(),
                host.scoreboard(),
                host.cgroup_memory(),
            ))),
            b"metrics" => Outcome::Metrics,
            b"gc" => Outcome::Ask(ToRuby::First(Question::Gc)),
            b"gc-stats" => Outcome::Ask(ToRuby::First(Question::GcStats)),
            b"thread-backtraces" => Outcome::Ask(ToRuby::First(Question::ThreadBacktraces)),
            b"snapshot" => Outcome::Answer(Response::raw(200, &*self.dashboard.snapshot(host))),
            b"events" => Outcome::Watch,
            b"backtraces" => Outcome::Ask(ToRuby::Workers(process(request))),
            b"pause" | b"resume" => Outcome::Answer(pause_or_resume(request, host)),
            command => Outcome::Answer(steer(command, host)),
        }
    }

    /// The response to a probe, a file of the dashboard, or the response to a request that is not allowed.
    fn prompt(&self, request: &Request, host: &dyn Host) -> Option<Response> {
        let open = health::answer(request, host).or_else(|| dashboard::file(request.path()));
        if open.is_some() {
            return open;
        }
        if !self.token.allows(request) {
            return Some(Response::text(403, self.token.refusal()));
        }
        let command = request.command();
        let only_reads = READING.contains(&command) || command == b"backtraces";
        if !only_reads && self.token.suspects(request) {
            return Some(Response::text(403, self.token.refusal()));
        }
        let is_hidden = self.data_only && !READING.contains(&command);
        is_hidden.then(|| Response::text(404, format!("Command {} unavailable", inspect(command))))
    }

    fn stats(&mut self, host: &dyn Host) -> Response {
        let counts = Counts::dealt(host.scoreboard());
        let peaks = self.peaks.take(&counts);
        Response::json(&PumaStats::new(&host.status(), &counts, &peaks, host.cgroup_memory()))
    }
}

/// The process that the request is about: `?pid=4711`.
fn process(request: &Request) -> Option<i32> {
    let pid = request.parameters("pid").next()?;
    std::str::from_utf8(pid).ok()?.parse().ok()
}

/// Commands that change the server.
fn steer(command: &[u8], host: &mut dyn Host) -> Response {
    match command {
        b"stop" => ask(Asked::Stop, host),
        b"halt" => ask(Asked::Halt, host),
        b"restart" => ask(Asked::Restart, host),
        b"phased-restart" => ask(Asked::PhasedRestart, host),
        b"reopen-log" => ask(Asked::ReopenLogs, host),
        b"reload-certificates" => ask(Asked::ReloadCertificates, host),
        b"worker-count-up" => ask(Asked::AddWorker, host),
        b"worker-count-down" => ask(Asked::RemoveWorker, host),
        b"info" => ask(Asked::Backtraces, host),
        b"refork" if host.status().has_workers() => ask(Asked::Refork, host),
        b"reload-worker-directory" if host.status().has_workers() => Response::ok(), // each restart reloads it
        b"refork" => unavailable("refork"),
        b"reload-worker-directory" => unavailable("reload_worker_directory"),
        _ => Response::text(404, "Unsupported action"),
    }
}

/// Commands without a counterpart in Puma, which need POST.
fn pause_or_resume(request: &Request, host: &mut dyn Host) -> Response {
    if request.method() != b"POST" {
        return Response::text(405, "Use POST");
    }
    if request.command() == b"resume" {
        return ask(Asked::Resume, host);
    }
    match request.parameters("timeout").last().map(seconds) {
        None => ask(Asked::Pause(None), host),
        Some(Some(timeout)) => ask(Asked::Pause(Some(timeout)), host),
        Some(None) => Response::text(400, "timeout must be a number of seconds, such as 10"),
    }
}

fn seconds(text: &[u8]) -> Option<Duration> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|time| *time <= LONGEST_PAUSE)
}

fn ask(asked: Asked, host: &mut dyn Host) -> Response {
    match host.ask(asked) {
        Ok(()) => Response::ok(),
        Err(reason) => Response::text(409, reason),
    }
}

fn unavailable(name: &str) -> Response {
    Response::raw(404, format!(r#"{{ "error": "{name} not available" }}"#))
}
