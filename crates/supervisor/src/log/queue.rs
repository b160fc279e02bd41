//! Lines in the queue of their thread.

use std::collections::VecDeque;

/// Most bytes in the queue.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// The reason for lines dropped from a full queue.
const UNREAD: &str = "the reader of the log is too slow";

/// A bounded queue. Lines that do not fit are counted, and a line in their place reports their number.
#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: VecDeque<String>,
    bytes: usize,
    dropped: u64,
}

impl Queue {
    /// Adds a line, or drops it. `about_dropped` makes the line about dropped lines.
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

    /// A line longer than the queue fits when the queue is empty. Once lines are dropped, half of the queue must drain
    /// first, so that not every other line reports drops.
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
