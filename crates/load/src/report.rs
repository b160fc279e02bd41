//! Reports: the results of a run, printed as one JSON document or as text.
//!
//! The keys of the documents are part of the public interface: see the crate's documentation.

pub(crate) mod http;
mod page;
mod parts;
pub(crate) mod real_time;

use serde::Serialize;

/// Results of a run, for people and for programs.
pub(crate) trait Report: Serialize {
    fn text(&self) -> String;
}

/// Formats the report, as JSON if `--json` was given.
pub(crate) fn print(report: &impl Report, json: bool) -> String {
    match json {
        true => serde_json::to_string(report).expect("a report has only keys that are text") + "\n",
        false => report.text(),
    }
}
