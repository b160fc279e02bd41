//! The format of a line.

use super::{rfc3339, Level};
use crate::settings::LogSettings;
use serde::Serialize;
use std::time::SystemTime;

/// The settings of the configuration for lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    is_json: bool,
    is_quiet: bool,
    has_details: bool,
    has_prefix: bool,
    /// True if Ruby formats or writes lines.
    pub(super) is_ruby: bool,
}

/// A line of JSON, with the key order of all processes of the server.
#[derive(Serialize)]
struct Entry<'a> {
    time: &'a str,
    level: &'a str,
    pid: u32,
    event: &'a str,
    message: &'a str,
}

impl Form {
    pub(super) fn new(settings: &LogSettings) -> Form {
        Form {
            is_json: settings.json,
            is_quiet: settings.quiet,
            has_details: settings.debug,
            has_prefix: settings.prefix,
            is_ruby: settings.by_ruby,
        }
    }

    pub(super) fn wants(self, level: Level) -> bool {
        match level {
            Level::Debug => self.has_details,
            Level::Info => !self.is_quiet,
            Level::Warn | Level::Error => true,
        }
    }

    /// The whole line, with its line end.
    pub(super) fn line(self, level: Level, event: &str, text: &str) -> String {
        let pid = std::process::id();
        if self.is_json {
            return json(level, pid, event, text);
        }
        match self.has_prefix {
            true => format!("[{pid}] {text}\n"),
            false => format!("{text}\n"),
        }
    }

    /// The line that reports the number of dropped lines.
    pub(super) fn about_dropped(self, lines: u64, reason: &str) -> String {
        let subject = if lines == 1 {
            "1 line was"
        } else {
            &format!("{lines} lines were")
        };
        self.line(
            Level::Warn,
            "log_lines_dropped",
            &format!("{subject} dropped: {reason}"),
        )
    }
}

fn json(level: Level, pid: u32, event: &str, message: &str) -> String {
    let entry = Entry {
        time: &rfc3339(SystemTime::now()),
        level: level.name(),
        pid,
        event,
        message,
    };
    // Texts and numbers can always be written as JSON.
    let mut line = serde_json::to_string(&entry).unwrap_or_default();
    line.push('\n');
    line
}
