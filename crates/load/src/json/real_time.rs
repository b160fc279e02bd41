//! The reports of WebSockets and event streams as JSON documents.

use super::{distribution_members, fairness, latency, Writer};
use crate::broadcast::Deliveries;
use crate::latencies::expected_interval;
use crate::options::{self, Echo, RealTime};
use crate::pacing::Nanos;
use crate::real_time::echo::Echoes;
use crate::real_time::idle::Held;
use crate::real_time::{Found, Sockets};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) fn echo(options: &RealTime, echo: &Echo, found: &Found<Echoes>) -> String {
    let echoes = &found.task;
    let seconds = seconds(echoes.elapsed);
    let settings = |json: &mut Writer| {
        json.number("size", echo.size);
        json.string("type", payload_type(echo.binary));
        json.optional("duration", echo.duration.map(|duration| duration.as_secs_f64()));
        match echo.requests {
            Some(requests) => json.number("requests", requests),
            None => json.number("requests", "null"),
        }
        json.float("warmup", echo.warmup.as_secs_f64());
    };
    document(options, "echo", settings, &found.sockets, seconds, |json| {
        json.key("requests").object(|json| {
            json.number("answered", echoes.answered());
            json.float("per_second", per_second(echoes.answered(), seconds));
            json.number(
                "failed",
                echoes.connections.iter().map(|served| served.failed).sum::<u64>(),
            );
            json.number("unanswered", echoes.unanswered);
            json.number("unsent", echoes.unsent);
            let waiting = echoes.unanswered > 0;
            json.optional("longest_wait", waiting.then_some(echoes.longest_wait as f64 / 1e9));
        });
        let interval = expected_interval(&echoes.connections, 1, echoes.elapsed);
        latency(json, &echoes.latencies, interval);
        fairness(json, &echoes.connections);
        let numbered: Vec<_> = (1..).zip(&echoes.connections).collect();
        json.key("connections").array(&numbered, |json, (number, served)| {
            json.object(|json| {
                json.number("connection", number);
                json.number("answered", served.answered);
                json.number("failed", served.failed);
            });
        });
    })
}

pub(crate) fn broadcast(options: &RealTime, task: &options::Broadcast, found: &Found<Deliveries>) -> String {
    let deliveries = &found.task;
    let seconds = seconds(deliveries.elapsed);
    let settings = |json: &mut Writer| {
        match &task.publish {
            Some(url) => json.string("publish", &url.text),
            None => json.number("publish", "null"),
        }
        json.number("publishers", task.publishers);
        json.number("messages", task.messages);
        json.number("size", task.size);
        json.string("type", payload_type(task.binary));
        json.optional("rate", task.rate);
    };
    document(options, "broadcast", settings, &found.sockets, seconds, |json| {
        json.number("gave_up", deliveries.gave_up);
        json.key("messages").object(|json| {
            json.number("published", deliveries.published);
            json.number("rejected", deliveries.rejected);
            json.number("unsent", deliveries.unsent);
        });
        let total = deliveries.ledger.total();
        json.key("deliveries").object(|json| {
            json.number("expected", deliveries.expected());
            json.number("received", total.received);
            json.float("per_second", per_second(total.received, seconds));
            json.number("lost", deliveries.lost());
            json.number("duplicated", total.duplicated);
            json.number("out_of_order", total.out_of_order);
            json.number("truncated", deliveries.truncated);
            json.number("other", deliveries.other);
        });
        json.number("complete", deliveries.complete());
        json.key("latency_ms")
            .object(|json| distribution_members(json, &deliveries.latencies));
        let rows: Vec<_> = deliveries.ledger.numbered().collect();
        json.key("connections").array(&rows, |json, (index, row)| {
            json.object(|json| {
                json.number("connection", index + 1);
                json.number("received", row.received);
                json.number("lost", deliveries.published.saturating_sub(row.received));
                json.number("duplicated", row.duplicated);
                json.number("out_of_order", row.out_of_order);
            });
        });
    })
}

pub(crate) fn idle(options: &RealTime, duration: Duration, found: &Found<Held>) -> String {
    let settings = |json: &mut Writer| json.float("duration", duration.as_secs_f64());
    document(
        options,
        "idle",
        settings,
        &found.sockets,
        seconds(found.task.held),
        |json| {
            json.float("opening", seconds(found.task.opening));
            json.number("messages", found.task.messages);
        },
    )
}

/// What all documents have, around what is the mode's own.
fn document(
    options: &RealTime,
    mode: &str,
    own_settings: impl FnOnce(&mut Writer),
    sockets: &Sockets,
    seconds: f64,
    own: impl FnOnce(&mut Writer),
) -> String {
    let mut json = Writer::default();
    json.object(|json| {
        json.string("version", env!("CARGO_PKG_VERSION"));
        json.key("settings").object(|json| {
            json.string("mode", mode);
            json.string("transport", options.transport.name());
            json.string("url", &options.url.text);
            json.number("connections", options.connections);
            json.number("deflate", options.deflate);
            match &options.protocol {
                Some(protocol) => json.string("protocol", protocol),
                None => json.number("protocol", "null"),
            }
            json.float("timeout", options.timeout.as_secs_f64());
            own_settings(json);
        });
        json.float("seconds", seconds);
        json.number("interrupted", sockets.stopped);
        json.key("sockets").object(|json| {
            json.number("asked", sockets.asked);
            json.number("opened", sockets.opened);
            json.number("subscribed", sockets.subscribed);
            json.number("left", sockets.left);
        });
        endings(json, sockets);
        json.key("bytes").object(|json| {
            json.number("read", sockets.bytes);
            json.float("per_second", per_second(sockets.bytes, seconds));
        });
        own(json);
    });
    json.text + "\n"
}

fn endings(json: &mut Writer, sockets: &Sockets) {
    let endings = &sockets.endings;
    json.key("errors").object(|json| {
        endings.kinds().for_each(|(key, _, count)| json.number(key, count));
    });
    counts(json, "refused_with", &endings.statuses, |status| status.to_string());
    let code = |code: &Option<u16>| code.map_or("end".to_owned(), |code| code.to_string());
    counts(json, "closed_with", &endings.codes, code);
    counts(json, "reasons", &endings.reasons, |reason| (*reason).to_owned());
}

fn counts<T>(json: &mut Writer, key: &str, counts: &BTreeMap<T, u64>, name: impl Fn(&T) -> String) {
    json.key(key).object(|json| {
        counts.iter().for_each(|(each, count)| json.number(&name(each), count));
    });
}

fn payload_type(binary: bool) -> &'static str {
    if binary {
        "binary"
    } else {
        "text"
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}
