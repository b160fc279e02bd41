//! The report of HTTP requests as a JSON document.

use super::{fairness, latency, Writer};
use crate::options::Options;
use crate::run::Measured;
use crate::tally::Failure;

/// The whole document, without a line break at its end.
pub(crate) fn document(options: &Options, measured: &Measured) -> String {
    let tally = &measured.tally;
    let mut json = Writer::default();
    json.object(|json| {
        json.string("version", env!("CARGO_PKG_VERSION"));
        settings(json, options);
        json.float("seconds", measured.seconds());
        json.number("interrupted", measured.stopped);
        json.number("gave_up", measured.gave_up);
        json.key("requests").object(|json| {
            json.number("answered", tally.answered());
            json.float("per_second", measured.per_second(tally.answered()));
            json.number("failed", tally.failed());
            json.number("unanswered", tally.unanswered);
            json.number("unsent", tally.unsent);
            let waiting = tally.unanswered + tally.unsent > 0;
            json.optional("longest_wait", waiting.then_some(tally.longest_wait as f64 / 1e9));
        });
        json.key("bytes").object(|json| {
            json.number("read", tally.bytes);
            json.float("per_second", measured.per_second(tally.bytes));
        });
        json.key("statuses").object(|json| {
            (1..)
                .zip(tally.classes)
                .for_each(|(class, count)| json.number(&format!("{class}xx"), count));
        });
        json.key("errors").object(|json| {
            Failure::ALL
                .iter()
                .for_each(|why| json.number(why.name(), tally.failures[*why as usize]));
            json.number("status", tally.refusals());
        });
        latency(json, &tally.latencies, measured.expected_interval);
        fairness(json, &tally.connections);
        json.number("connections_opened", tally.opened);
        let numbered: Vec<_> = (1..).zip(&tally.connections).collect();
        json.key("connections").array(&numbered, |json, (number, served)| {
            json.object(|json| {
                json.number("connection", number);
                json.number("answered", served.answered);
                json.number("failed", served.failed);
            });
        });
    });
    json.text
}

fn settings(json: &mut Writer, options: &Options) {
    json.key("settings").object(|json| {
        json.string("url", &options.url.text);
        json.string("method", &options.method);
        json.string("path", &options.url.path);
        json.number("connections", options.connections);
        json.number("threads", options.threads);
        json.number("pipeline", options.pipeline);
        json.number("keep_alive", options.keep_alive);
        json.optional("duration", options.duration.map(|duration| duration.as_secs_f64()));
        match options.requests {
            Some(requests) => json.number("requests", requests),
            None => json.number("requests", "null"),
        }
        json.optional("rate", options.rate);
        json.float("warmup", options.warmup.as_secs_f64());
        json.float("timeout", options.timeout.as_secs_f64());
    });
}
