//! The slowest running requests.

use super::super::status::Child;
use super::history::rounded;
use fairlead_engine::{RunningRequest, Scoreboard};
use serde::Serialize;
use std::cmp::Reverse;

/// Number of requests that are shown.
const SHOWN: usize = 20;

/// A running request, in the order of its keys.
#[derive(Serialize)]
pub(super) struct Running {
    /// Unique, for the page.
    id: String,
    worker: usize,
    pid: i32,
    thread: u32,
    request: String,
    seconds: f64,
}

/// The requests that have run longest, the slowest first.
pub(super) fn slowest(scoreboard: &Scoreboard, children: &[Child]) -> Vec<Running> {
    let running = scoreboard.running();
    let mut times: Vec<_> = running.times().collect();
    times.sort_unstable_by_key(|(_, time)| Reverse(*time));
    let requests = times.into_iter().take(SHOWN);
    requests
        .filter_map(|(index, _)| shown(index, running.request(index)?, children))
        .collect()
}

fn shown(index: usize, request: RunningRequest, children: &[Child]) -> Option<Running> {
    let child = children.iter().find(|child| child.slot == request.slot)?;
    Some(Running {
        id: format!("{index}-{}", request.number),
        worker: child.index,
        pid: child.pid?,
        thread: request.thread,
        request: String::from_utf8_lossy(&request.text).into_owned(),
        seconds: rounded(request.time.as_secs_f64()),
    })
}
