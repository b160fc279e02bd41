//! The dashboard: a page that watches the server, and its data. Everything comes from the scoreboard and the state of the
//! supervisor, so it also works while every Ruby thread hangs.
//!
//! Once a second the history gets a point. Snapshots are computed only on request, and once for all viewers.

mod distribution;
mod figures;
mod files;
mod history;
mod running;
mod snapshot;

pub(super) use files::file;

use super::host::Host;
use super::json;
use history::History;
use serde::Serialize;
use snapshot::Snapshot;
use std::sync::Arc;
use std::time::Instant;

/// The history, and the last snapshot.
#[derive(Debug)]
pub(super) struct Dashboard {
    history: History,
    /// The snapshot as JSON, once a viewer has asked for it.
    snapshot: Option<Arc<[u8]>>,
    /// The first events for a new viewer, once there was one.
    opening: Option<Arc<[u8]>>,
}

impl Dashboard {
    pub(super) fn new(now: Instant) -> Dashboard {
        Dashboard {
            history: History::new(now),
            snapshot: None,
            opening: None,
        }
    }

    /// Adds a point to the history; call this about once a second. The next snapshot is a new one.
    pub(super) fn look(&mut self, now: Instant, host: &dyn Host) {
        if let Some(scoreboard) = host.scoreboard() {
            self.history.look(now, scoreboard);
        }
        self.snapshot = None;
        self.opening = None;
    }

    /// The current snapshot as JSON.
    pub(super) fn snapshot(&mut self, host: &mut dyn Host) -> Arc<[u8]> {
        if let Some(snapshot) = &self.snapshot {
            return Arc::clone(snapshot);
        }
        let memory = host.memory();
        let snapshot = json_of(&Snapshot::new(
            &host.status(),
            host.scoreboard(),
            &memory,
            &self.history,
        ));
        Arc::clone(self.snapshot.insert(snapshot.into()))
    }

    /// The current snapshot as an event.
    pub(super) fn event(&mut self, host: &mut dyn Host) -> Arc<[u8]> {
        event("snapshot", &self.snapshot(host)).into()
    }

    /// The history and the current snapshot, as events.
    pub(super) fn opening(&mut self, host: &mut dyn Host) -> Arc<[u8]> {
        if let Some(opening) = &self.opening {
            return Arc::clone(opening);
        }
        let history = event("history", &json_of(&self.history));
        let opening: Arc<[u8]> = [history, event("snapshot", &self.snapshot(host))].concat().into();
        Arc::clone(self.opening.insert(opening))
    }
}

fn json_of<T: Serialize>(value: &T) -> Vec<u8> {
    json::generate(value).unwrap_or_default()
}

/// A server-sent event. JSON has no line ends.
fn event(name: &str, json: &[u8]) -> Vec<u8> {
    [b"event: ", name.as_bytes(), b"\ndata: ", json, b"\n\n"].concat()
}
