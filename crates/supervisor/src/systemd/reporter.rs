//! Reports changes of the server to systemd.

use super::Systemd;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time between two checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time until the next check while messages are queued.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// The state of the server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyState {
    /// No start has succeeded yet.
    Starting,
    /// It serves.
    Ready,
    /// It serves, and a restart is under way.
    Restarting,
    /// It ends.
    Draining,
}

/// The last report to systemd, for another supervisor program. Its format is frozen, like
/// [`HotRestartState`](crate::hot_restart_state::HotRestartState), which contains it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Told {
    state: NotifyState,
    restart: Option<u64>,
}

/// The state of the server at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Its state.
    pub state: NotifyState,
    /// The running restart, or the last one.
    pub restart: Option<Restart<'a>>,
    /// Configured number of workers; 0 for a sole process.
    pub workers: usize,
    /// Workers that serve.
    pub booted: usize,
    /// Threads that run the application.
    pub busy_threads: i64,
    /// Threads that have started.
    pub threads: i64,
    /// Requests in the queue.
    pub queued: i64,
}

/// A restart.
#[derive(Clone, Copy, Debug)]
pub struct Restart<'a> {
    /// A number that differs for each restart.
    pub number: u64,
    /// The reason of its failure, if it has failed.
    pub error: Option<&'a str>,
}

/// Reports changes of the server to systemd. The loop of the supervisor calls it, so the watchdog gets no heartbeat
/// from a loop that hangs.
///
/// ```text
///   starting ──READY──▶ ready ──RELOADING──▶ restarting ──READY──▶ ready ──STOPPING──▶ draining
/// ```
#[derive(Debug)]
pub struct Reporter {
    systemd: Systemd,
    told: NotifyState,
    restart: Option<u64>,
    text: String,
}

impl Reporter {
    /// For a starting server.
    pub fn new(systemd: Systemd) -> Reporter {
        Reporter {
            systemd,
            told: NotifyState::Starting,
            restart: None,
            text: String::new(),
        }
    }

    /// Continues after another program.
    pub fn resume(systemd: Systemd, told: Told) -> Reporter {
        Reporter {
            told: told.state,
            restart: told.restart,
            ..Reporter::new(systemd)
        }
    }

    /// The state that another program needs to continue; nothing while messages are queued.
    pub fn told(&self) -> Option<Told> {
        let told = Told {
            state: self.told,
            restart: self.restart,
        };
        (!self.systemd.is_behind()).then_some(told)
    }

    /// The systemd of this reporter, to give it listeners.
    pub fn systemd(&mut self) -> &mut Systemd {
        &mut self.systemd
    }

    /// Time until the next check.
    pub fn interval(&self) -> Duration {
        let watchdog = self.systemd.watchdog().map_or(INTERVAL, |watchdog| watchdog / 2);
        let waiting = if self.systemd.is_behind() { PATIENCE } else { INTERVAL };
        INTERVAL.min(watchdog).min(waiting)
    }

    /// Reports changes.
    pub fn look(&mut self, report: &Report<'_>) {
        self.systemd.flush();
        if self.told != NotifyState::Starting || report.state != NotifyState::Starting {
            self.tell_restart(report.restart.map(|restart| restart.number));
        }
        self.tell_state(report.state);
        self.tell_text(describe(report));
        if self.systemd.watchdog().is_some() {
            self.systemd.alive();
        }
    }

    /// The server has ended.
    pub fn ended(&mut self) {
        self.tell_state(NotifyState::Draining);
    }

    /// A restart may begin and end between two checks.
    fn tell_restart(&mut self, number: Option<u64>) {
        if number.is_some() && number != self.restart {
            self.tell_state(NotifyState::Restarting);
        }
        self.restart = number;
    }

    fn tell_state(&mut self, state: NotifyState) {
        if state == self.told || self.told == NotifyState::Draining {
            return;
        }
        self.told = state;
        match state {
            NotifyState::Starting => {}
            NotifyState::Ready => self.systemd.ready(),
            NotifyState::Restarting => self.systemd.reloading(),
            NotifyState::Draining => self.systemd.stopping(),
        }
    }

    fn tell_text(&mut self, text: String) {
        if text != self.text {
            self.systemd.status(&text);
            self.text = text;
        }
    }
}

/// "ready: 2/2 workers, 1/10 threads busy, 0 requests waiting; last restart failed: config.ru:1: …"
fn describe(report: &Report<'_>) -> String {
    let state = match report.state {
        NotifyState::Starting => "starting",
        NotifyState::Ready => "ready",
        NotifyState::Restarting => "restarting",
        NotifyState::Draining => "draining",
    };
    let workers = match report.workers {
        0 => String::new(),
        workers => format!("{}/{workers} workers, ", report.booted),
    };
    let error = report.restart.and_then(|restart| restart.error);
    let failure = error.map(|error| {
        format!(
            "; last restart failed: {}",
            error.lines().next().unwrap_or_default().trim()
        )
    });
    let Report {
        busy_threads,
        threads,
        queued,
        ..
    } = report;
    let failure = failure.unwrap_or_default();
    format!("{state}: {workers}{busy_threads}/{threads} threads busy, {queued} requests waiting{failure}")
}
