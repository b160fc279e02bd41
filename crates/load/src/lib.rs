//! The load tool behind `fairlead bench`: sends HTTP/1.1 requests over a number of connections and shows what each of
//! them got. It knows nothing of the server it measures.
//!
//! # Layout
//!
//! `options`, `url`, `request`: what was asked for · `run`, `worker`: the event loop · `connection`, `response`: one
//! client · `pacing`: when to send · `poller`: epoll · `tally`: what was measured, and how latencies are corrected for
//! coordinated omission · `report`, `json`, `progress`: how it is shown.
//!
//! # JSON
//!
//! `--json` prints one document. Keys stay; new ones may be added. Times are seconds unless the key says otherwise;
//! `null` stands for what was not asked for or cannot be known (a percentile without answers).
//!
//! | key | value |
//! |---|---|
//! | `version` | of the tool |
//! | `settings` | `url`, `method`, `path`, `connections`, `threads`, `pipeline`, `keep_alive`, `duration`, `requests`, `rate`, `warmup`, `timeout` |
//! | `seconds` | time measured, without the warm-up |
//! | `interrupted`, `gave_up` | whether the run was stopped; whether it ended because nothing was answered any more |
//! | `requests` | `answered`, `per_second` (answered), `failed`, `unanswered` (waiting at the end), `unsent` (due and not sent, or left of `--requests`), `longest_wait` of these at the end |
//! | `bytes` | `read`, `per_second` |
//! | `statuses` | answers by class: `1xx` to `5xx` |
//! | `errors` | failed requests by kind: `connect`, `read`, `write`, `timeout`, `closed` (before the answer was complete), `malformed`; `status`: answers other than 2xx and 3xx |
//! | `latency_ms` | `expected_interval` of the correction; `raw` and `corrected`, each with `min`, `mean`, `p50`, `p75`, `p90`, `p99`, `p99_9`, `max` |
//! | `fairness` | `jain` index, `least` and `most` answers on one connection, `least_to_most` their ratio, `never_served`: numbers of connections that got nothing while others did |
//! | `connections_opened` | sockets, including those that replaced others, and the warm-up |
//! | `connections` | for each, in order: `connection` (from 1), `answered`, `failed` |

#![forbid(unsafe_code)]

mod connection;
mod json;
mod options;
mod pacing;
mod poller;
mod progress;
mod report;
mod request;
mod response;
mod run;
mod tally;
mod url;
mod worker;

use options::{Command, Options};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Ends the run under way in this process soon; it still reports what it has measured. Any thread may call this.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Runs the tool with the arguments that follow its name, prints the report, and returns the exit status: 0 when
/// everything was answered with 2xx or 3xx, 1 for wrong usage or an unreachable server, 2 otherwise.
///
/// One run at a time: [`stop`] does not distinguish between runs.
pub fn main(args: &[String]) -> i32 {
    STOP.store(false, Ordering::Relaxed);
    match options::parse(args) {
        Ok(Command::Help) => print(options::HELP, 0),
        Ok(Command::Run(options)) => measure(&options),
        Err(why) => complain(&format!("{why} (see fairlead bench --help)")),
    }
}

fn measure(options: &Options) -> i32 {
    match run::run(options, &STOP) {
        Err(why) => complain(&why),
        Ok(measured) => {
            let status = if measured.is_good() { 0 } else { 2 };
            if options.json {
                print(&(json::document(options, &measured) + "\n"), status)
            } else {
                print(&report::text(options, &measured), status)
            }
        }
    }
}

/// A reader that has gone away changes nothing about the measurement.
fn print(text: &str, status: i32) -> i32 {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    status
}

fn complain(why: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "fairlead bench: {why}");
    1
}
