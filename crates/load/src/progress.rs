//! The line on a terminal that shows the progress of the run, once a second.

use crate::clock::Nanos;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND: Nanos = 1_000_000_000;

/// Progress shared by the threads of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    on: bool,
    answered: AtomicU64,
    failed: AtomicU64,
    /// Seconds shown so far, and the responses at that time.
    shown: AtomicU64,
    answered_then: AtomicU64,
}

impl Progress {
    /// Shows the line only on a terminal.
    pub(crate) fn new(quiet: bool) -> Progress {
        let zero = AtomicU64::default;
        let on = !quiet && std::io::stderr().is_terminal();
        Progress {
            on,
            answered: zero(),
            failed: zero(),
            shown: zero(),
            answered_then: zero(),
        }
    }

    /// Adds a thread's new counts since it published `before`; returns the published counts.
    pub(crate) fn publish(&self, before: (u64, u64), now: (u64, u64)) -> (u64, u64) {
        self.answered.fetch_add(now.0 - before.0, Ordering::Relaxed);
        self.failed.fetch_add(now.1 - before.1, Ordering::Relaxed);
        now
    }

    /// Shows the line when a new second has begun; the first thread that notices does it.
    pub(crate) fn print(&self, now: Nanos) {
        let (second, shown) = (now / SECOND, self.shown.load(Ordering::Relaxed));
        if !self.on || second <= shown {
            return;
        }
        if self
            .shown
            .compare_exchange(shown, second, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            let answered = self.answered.load(Ordering::Relaxed);
            let fresh = answered - self.answered_then.swap(answered, Ordering::Relaxed);
            show(&line(
                second,
                answered,
                fresh / (second - shown),
                self.failed.load(Ordering::Relaxed),
            ));
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.on {
            show("");
        }
    }
}

fn line(second: u64, answered: u64, per_second: u64, failed: u64) -> String {
    format!("{second} s: {answered} responses ({per_second}/s now), {failed} errors")
}

/// Overwrites the line; a terminal that has gone away does not stop the run.
fn show(line: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_publish_only_what_is_new() {
        let progress = Progress::new(true);
        let published = progress.publish((0, 0), (5, 1));
        progress.publish(published, (7, 1));
        assert_eq!((progress.answered.into_inner(), progress.failed.into_inner()), (7, 1));
    }

    #[test]
    fn the_line_names_what_it_counts() {
        assert_eq!(line(3, 3000, 990, 2), "3 s: 3000 responses (990/s now), 2 errors");
    }
}
