//! The numbers of restarts since the start of the supervisor.

use crate::machine::RestartKind;

/// Reasons for which a worker, or the sole process, is replaced without a restart of the server.
const OF_WORKERS: [&str; 4] = ["ended", "hung", "boot_failed", "boot_timeout"];

const KINDS: [RestartKind; 3] = [RestartKind::Phased, RestartKind::Hot, RestartKind::Refork];

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestartCounts {
    workers: [u64; OF_WORKERS.len()],
    /// Failed ones, and successful ones.
    restarts: [[u64; 2]; KINDS.len()],
}

impl RestartCounts {
    /// Counts a lost worker.
    pub fn worker(&mut self, reason: &str) {
        if let Some(place) = OF_WORKERS.iter().position(|known| *known == reason) {
            self.workers[place] += 1;
        }
    }

    /// Counts a restart of the server.
    pub fn restart(&mut self, kind: RestartKind, is_done: bool) {
        if let Some(place) = KINDS.iter().position(|known| *known == kind) {
            self.restarts[place][usize::from(is_done)] += 1;
        }
    }

    /// The lost workers by reason.
    pub fn workers(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        OF_WORKERS.into_iter().zip(self.workers)
    }

    /// The restarts by kind and result.
    pub fn restarts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        KINDS.into_iter().zip(self.restarts).flat_map(|(kind, [failed, done])| {
            let kind = kind_name(kind);
            [(kind, "done", done), (kind, "failed", failed)]
        })
    }
}

/// The name of a restart, for programs.
pub(super) fn kind_name(kind: RestartKind) -> &'static str {
    match kind {
        RestartKind::Refork => "refork",
        RestartKind::Phased => "phased",
        RestartKind::Hot => "hot",
    }
}
