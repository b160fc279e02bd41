//! Lines that wait for their thread.

use std::collections::VecDeque;

/// Most bytes that may wait.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// The reason in the line about lines that did not fit.
const UNREAD: &str = "nobody reads the log";

/// A bounded queue. Lines that do not fit are counted, and a line in their place tells how many there were.
#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: VecDeque<String>,
    bytes: usize,
    dropped: u64,
}

impl Queue {
    /// Adds a line, or drops it. `about_dropped` makes the line about dropped ones.
    pub(super) fn add(&mut self, line: String, about_dropped: impl FnOnce(u64, &str) -> String) {
        if !self.has_room_for(&line) {
            self.dropped += 1;
            return;
        }
        self.tell_of_dropped(about_dropped);
        self.push(line);
    }

    /// Takes the next line.
    pub(super) fn next(&mut self, about_dropped: impl FnOnce(u64, &str) -> String) -> Option<String> {
        if self.lines.is_empty() {
            self.tell_of_dropped(about_dropped);
        }
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0
    }

    /// A line that is longer than the queue fits when that is empty. Once lines are dropped, half of the others go first, so that
    /// not every other line is about dropped ones.
    fn has_room_for(&self, line: &str) -> bool {
        let most = if self.dropped > 0 { MOST_BYTES / 2 } else { MOST_BYTES };
        self.lines.is_empty() || self.bytes + line.len() <= most
    }

    fn tell_of_dropped(&mut self, about_dropped: impl FnOnce(u64, &str) -> String) {
        match std::mem::take(&mut self.dropped) {
            0 => {}
            lines => self.push(about_dropped(lines, UNREAD)),
        }
    }

    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
    }
}
