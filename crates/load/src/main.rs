//! The load tool behind `fairlead bench`. It sends HTTP requests over a number of connections and shows the responses
//! of each connection, or opens WebSockets and event streams and counts their messages. It knows nothing about the
//! server that it measures, and trusts nothing that the server says.
//!
//! # Layout
//!
//! `options` (read by clap), `url`, `request`: the task · `clock`, `pacing`, `draw`: when to send, and what · `dial`, `socket`,
//! `received`, `tls`, `poller`, `limits`: sockets, TLS, epoll, open files · `latencies`: latencies and their correction for
//! coordinated omission · `sample`: latencies of one kind of request · `goodput`: good responses apart from refusals · `fairness` ·
//! `report`, `progress`: the output.
//!
//! Requests: `run`, `worker`: the event loop · `connection`: one client · `exchange`: its requests in progress, by `http1`
//! (with `response`) or `http2` (frames by the crate `h2`) · `tally`, `handshakes`, `failure`: results.
//!
//! Real time: `websocket` (frames by tungstenite), `event_stream`: protocols · `real_time`: many sockets, their event loop,
//! echoes, idling · `broadcast`, `marker`: publishers, subscribers, and the markers of messages.
//!
//! # JSON
//!
//! `--json` prints one document. Keys stay; new ones may be added. Times are seconds unless the key says otherwise;
//! `null` stands for a value that was not requested or is unknown (a percentile without responses).
//!
//! ## Requests
//!
//! | key | value |
//! |---|---|
//! | `version` | of the tool |
//! | `settings` | `url`, `method`, `path`, `connections`, `threads`, `pipeline`, `keep_alive`, `duration`, `requests`, `rate`, `warmup`, `timeout`; `within` and `source` if given; with https also `tls`: `trust` (`system`, `cacert` or `anybody`), `certificate` (`true` if the client has one), `version`, `resume`; with `--http2` also `http2`: for each item of `--streams`, `connections` and `streams` |
//! | `seconds` | time measured, without the warm-up |
//! | `interrupted`, `gave_up` | `true` if the run was stopped; `true` if it ended because no more responses came |
//! | `requests` | `answered`, `per_second` (responses), `failed`, `unanswered` (waiting at the end), `unsent` (due and not sent, or left of `--requests`), `longest_wait` of these at the end |
//! | `bytes` | `read`, `per_second` |
//! | `statuses` | responses by class: `1xx` to `5xx` |
//! | `errors` | failed requests by kind: `connect`, `tls`, `read`, `write`, `timeout`, `closed` (before the response was complete), `malformed`, and of HTTP/2 `reset`, `refused` (RST_STREAM with REFUSED_STREAM), `goaway` (with an error code); `status`: responses other than 2xx and 3xx |
//! | `latency_ms` | `expected_interval` of the correction; `raw` and `corrected`, each with `min`, `mean`, `p50`, `p75`, `p90`, `p95`, `p99`, `p99_9`, `max` |
//! | `good`, `refused` | with `--within` only: responses with 2xx and 3xx, and all others: `answered`, `latency_ms` from the due time, as `raw` above; of the good ones also `in_time` and `in_time_per_second`: those within that time |
//! | `fairness` | `jain` index, `least` and `most` responses on one connection, `least_to_most` their ratio, `never_served`: numbers of connections that got nothing while others did |
//! | `connections_opened` | sockets, including replacements and the warm-up; with `--http2` only sockets over which the server spoke HTTP/2 |
//! | `repeated` | HTTP/1.1 requests that were sent again: the server had closed a kept connection before it responded, and the method is idempotent |
//! | `connections` | for each, in order: `connection` (from 1), `answered`, `failed`; with `--http2` also `share`: its responses, in equal shares of all (1 is fair), and `streams`: the responses of each of its streams (a stream here is a sequence of requests, each of which has its own stream number in HTTP/2) |
//! | `tls` | with https only: `handshakes` (without the warm-up), `per_second`; of these `full` and `resumed`, both also in `latency_ms`: from the open connection to the end of the handshake; `agreed`: `version`, `cipher` and number of `connections`, with the warm-up; `reasons`: why TLS failed, in words, with counts |
//! | `http2` | with `--http2` only: `max_concurrent_streams`: the server's limit for a connection, `null` without a limit; `classes`: for each item of `--streams` its `connections`, `streams` (on each), `answered`, `share` (average of each connection) and `latency_ms` as `raw` above; `resets` and `goaways`: how many by error code, for GOAWAY including the warm-up and NO_ERROR, after which requests were sent again; `fairness` between the streams of a connection: `jain` and `least_to_most` of the least even connection, `never_served`: number of streams that got nothing while others of their connection did |
//! | `mix` | with `--mix` only; for each name in the file: `name`, `answered`, and its `latency_ms` as `raw` above |
//!
//! ## WebSockets and event streams
//!
//! | key | value |
//! |---|---|
//! | `version`, `interrupted` | as above |
//! | `settings` | `mode` (`echo`, `broadcast` or `idle`), `transport` (`websocket` or `sse`), `url`, `connections`, `deflate`, `protocol`, `timeout`, and the settings of the mode |
//! | `seconds` | echo: time measured, without the warm-up; broadcast: from the first message sent to the last one delivered; idle: how long the connections were held |
//! | `sockets` | `asked`; `opened`: handshakes that succeeded; `subscribed`: the sockets among them that received the message that `--ready` names; `left`: the sockets among these that were still open at the end |
//! | `errors` | sockets that ended before the run, by kind: `connect`, `tls`, `refused` (another status), `handshake` (wrong response), `read`, `write`, `timeout`, `malformed`, `wrong_echo`, `closed` |
//! | `refused_with`, `closed_with`, `reasons` | numbers of such sockets: by status; by close code, 1005 for none, 1006 for no close frame, `end` for the end of an event stream; by reason, in words |
//! | `bytes` | `read`, `per_second` |
//!
//! Echo: `settings` has `size`, `type` (`text` or `binary`), `duration`, `requests`, `warmup`; `requests`, `latency_ms`,
//! `fairness` and `connections` are as above, where a message counts as a request and its echo as the response.
//!
//! Broadcast:
//!
//! | key | value |
//! |---|---|
//! | `settings` | also `publish`, `publishers`, `messages`, `size`, `type`, `rate` |
//! | `messages` | `published`; `rejected`: response with a status other than 2xx; `unsent`: not sent when their publisher was lost |
//! | `deliveries` | `expected`: messages published times subscribers; `received`, each counted once; `per_second`; `lost`; `duplicated`; `out_of_order`: after a later one of the same publisher; `truncated`; `other`: messages that were not published in this run |
//! | `complete` | subscribers that received everything |
//! | `gave_up` | `true` if it ended because no more messages came |
//! | `latency_ms` | from sending (with `--rate`: from the due time) to arrival: `min`, `mean`, `p50`, … `max` |
//! | `connections` | for each subscriber: `connection` (from 1), `received`, `lost`, `duplicated`, `out_of_order` |
//!
//! Idle: `settings` has `duration`; `opening` is the time that it took to open all connections, `messages` the number
//! of messages that arrived in the meantime.

#![forbid(unsafe_code)]

mod broadcast;
mod clock;
mod connection;
mod dial;
mod draw;
mod event_stream;
mod exchange;
mod failure;
mod fairness;
mod goodput;
mod handshakes;
mod http1;
mod http2;
mod latencies;
mod limits;
mod marker;
mod options;
mod pacing;
mod poller;
mod progress;
mod real_time;
mod received;
mod report;
mod request;
mod response;
mod run;
mod sample;
mod socket;
mod tally;
mod tls;
mod url;
mod websocket;
mod worker;

use options::{Command, Options, RealTime, Task};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Runs the tool and prints its report. The exit status is 0 if every response was 2xx or 3xx, or every message
/// arrived; 1 for wrong usage or an unreachable server; 2 otherwise.
fn main() {
    let stop = Arc::new(AtomicBool::new(false));
    if let Err(error) = stop_on_interrupt(&stop) {
        complain(&format!("SIGINT will not print a report: {error}"));
    }
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    std::process::exit(match options::parse(&args) {
        Ok(Command::Help(text)) => print(&text, true),
        Ok(Command::Http(options)) => finish(measure(&options, &stop)),
        Ok(Command::RealTime(options)) => finish(measure_real_time(&options, &stop)),
        Err(why) => complain(&format!("{why} (see {} --help)", options::command_name())),
    });
}

/// The first SIGINT ends the run, which still reports its measurements; the second one ends the process.
fn stop_on_interrupt(stop: &Arc<AtomicBool>) -> std::io::Result<()> {
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(stop))?;
    flag::register(SIGINT, Arc::clone(stop))?;
    Ok(())
}

/// A report, and `true` if nothing went wrong. The error is one line for the user.
type Outcome = Result<(String, bool), String>;

fn measure(options: &Options, stop: &AtomicBool) -> Outcome {
    let measured = run::run(options, stop)?;
    let report = report::http::Http::new(options, &measured);
    Ok((report::print(&report, options.json), measured.is_good()))
}

fn measure_real_time(options: &RealTime, stop: &AtomicBool) -> Outcome {
    match &options.task {
        Task::Echo(echo) => {
            let found = real_time::echo::run(options, echo, stop)?;
            let good = found.kept_all() && found.task.answered() > 0;
            let report = report::real_time::echo(options, &found);
            Ok((report::print(&report, options.json), good))
        }
        Task::Broadcast(task) => {
            let found = broadcast::run(options, task, stop)?;
            let good = found.kept_all() && found.task.is_complete();
            let report = report::real_time::broadcast(options, &found);
            Ok((report::print(&report, options.json), good))
        }
        Task::Idle { duration } => {
            let found = real_time::idle::run(options, *duration, stop)?;
            let report = report::real_time::idle(options, &found);
            Ok((report::print(&report, options.json), found.kept_all()))
        }
    }
}

fn finish(outcome: Outcome) -> i32 {
    match outcome {
        Ok((report, good)) => print(&report, good),
        Err(why) => complain(&why),
    }
}

/// Prints to standard output. A reader that has gone away does not affect the measurement.
fn print(text: &str, good: bool) -> i32 {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if good {
        0
    } else {
        2
    }
}

fn complain(why: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "{}: {why}", options::command_name());
    1
}
