//! Counts restarts by their reason, from the log lines of the machine.

use crate::control::RestartCounts;
use crate::machine::{Notice, RestartKind};

/// Counts the restart, or the lost process, that a log line is about.
pub(super) fn count(counts: &mut RestartCounts, notice: &Notice) {
    let reason = match notice {
        Notice::WorkerEnded { .. } | Notice::SoleLost { .. } => "ended",
        Notice::WorkerHung { .. } => "hung",
        Notice::WorkerFailedToBoot { .. } => "boot_failed",
        Notice::WorkerBootTimedOut { .. } => "boot_timeout",
        Notice::RestartDone { kind, .. } => return counts.restart(*kind, true),
        Notice::RestartFailed { kind, .. } => return counts.restart(*kind, false),
        Notice::RestartRefused { .. } => return counts.restart(RestartKind::Hot, false),
        _ => return,
    };
    counts.worker(reason);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lost_worker_and_each_restart_counts_once() {
        let mut counts = RestartCounts::default();
        let reason = String::new;
        let kind = RestartKind::Phased;
        for notice in [
            Notice::WorkerFailedToBoot {
                index: 0,
                reason: reason(),
            },
            Notice::SoleLost {
                process: 1,
                reason: reason(),
            },
            Notice::SoleLost {
                process: 2,
                reason: reason(),
            },
            Notice::RestartBegun { kind, generation: 2 },
            Notice::RestartDone {
                kind,
                generation: 2,
                sole: false,
            },
            Notice::RestartRefused { reason: reason() },
        ] {
            count(&mut counts, &notice);
        }
        let workers: Vec<_> = counts.workers().filter(|(_, count)| *count > 0).collect();
        assert_eq!(workers, [("ended", 2), ("boot_failed", 1)]);
        let restarts: Vec<_> = counts.restarts().filter(|(.., count)| *count > 0).collect();
        assert_eq!(restarts, [("phased", "done", 1), ("hot", "failed", 1)]);
    }
}
