//! The reports of WebSockets and event streams as JSON documents.

use super::{connections, distribution, fairness, latency};
use crate::broadcast::Deliveries;
use crate::latencies::expected_interval;
use crate::options::{self, Echo, RealTime};
use crate::pacing::Nanos;
use crate::real_time::echo::Echoes;
use crate::real_time::idle::Held;
use crate::real_time::{Found, Sockets};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) fn echo(options: &RealTime, echo: &Echo, found: &Found<Echoes>) -> Value {
    let echoes = &found.task;
    let seconds = seconds(echoes.elapsed);
    let settings = json!({
        "mode": "echo",
        "size": echo.size,
        "type": payload_type(echo.binary),
        "duration": echo.duration.map(|duration| duration.as_secs_f64()),
        "requests": echo.requests,
        "warmup": echo.warmup.as_secs_f64(),
    });
    let failed: u64 = echoes.connections.iter().map(|served| served.failed).sum();
    let interval = expected_interval(&echoes.connections, 1, echoes.elapsed);
    let own = json!({
        "requests": {
            "answered": echoes.answered(),
            "per_second": per_second(echoes.answered(), seconds),
            "failed": failed,
            "unanswered": echoes.unanswered,
            "unsent": echoes.unsent,
            "longest_wait": (echoes.unanswered > 0).then_some(echoes.longest_wait as f64 / 1e9),
        },
        "latency_ms": latency(&echoes.latencies, interval),
        "fairness": fairness(&echoes.connections),
        "connections": connections(&echoes.connections),
    });
    document(options, settings, &found.sockets, seconds, own)
}

pub(crate) fn broadcast(options: &RealTime, task: &options::Broadcast, found: &Found<Deliveries>) -> Value {
    let deliveries = &found.task;
    let seconds = seconds(deliveries.elapsed);
    let settings = json!({
        "mode": "broadcast",
        "publish": task.publish.as_ref().map(|url| &url.text),
        "publishers": task.publishers,
        "messages": task.messages,
        "size": task.size,
        "type": payload_type(task.binary),
        "rate": task.rate,
    });
    let total = deliveries.ledger.total();
    let own = json!({
        "gave_up": deliveries.gave_up,
        "messages": {
            "published": deliveries.published,
            "rejected": deliveries.rejected,
            "unsent": deliveries.unsent,
        },
        "deliveries": {
            "expected": deliveries.expected(),
            "received": total.received,
            "per_second": per_second(total.received, seconds),
            "lost": deliveries.lost(),
            "duplicated": total.duplicated,
            "out_of_order": total.out_of_order,
            "truncated": deliveries.truncated,
            "other": deliveries.other,
        },
        "complete": deliveries.complete(),
        "latency_ms": distribution(&deliveries.latencies),
        "connections": subscribers(deliveries),
    });
    document(options, settings, &found.sockets, seconds, own)
}

fn subscribers(deliveries: &Deliveries) -> Value {
    let rows = deliveries.ledger.numbered().map(|(index, row)| {
        json!({
            "connection": index + 1,
            "received": row.received,
            "lost": deliveries.published.saturating_sub(row.received),
            "duplicated": row.duplicated,
            "out_of_order": row.out_of_order,
        })
    });
    rows.collect()
}

pub(crate) fn idle(options: &RealTime, duration: Duration, found: &Found<Held>) -> Value {
    let held = &found.task;
    let settings = json!({ "mode": "idle", "duration": duration.as_secs_f64() });
    let own = json!({ "opening": seconds(held.opening), "messages": held.messages });
    document(options, settings, &found.sockets, seconds(held.held), own)
}

/// What all documents have, and what is the mode's own.
fn document(options: &RealTime, own_settings: Value, sockets: &Sockets, seconds: f64, own: Value) -> Value {
    let settings = json!({
        "transport": options.transport.name(),
        "url": options.url.text,
        "connections": options.connections,
        "deflate": options.deflate,
        "protocol": options.protocol,
        "timeout": options.timeout.as_secs_f64(),
    });
    let endings = &sockets.endings;
    let code = |code: &Option<u16>| code.map_or("end".to_owned(), |code| code.to_string());
    let common = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "settings": joined(settings, own_settings),
        "seconds": seconds,
        "interrupted": sockets.stopped,
        "sockets": {
            "asked": sockets.asked,
            "opened": sockets.opened,
            "subscribed": sockets.subscribed,
            "left": sockets.left,
        },
        "errors": endings.kinds().map(|(key, _, count)| (key.to_owned(), json!(count))).collect::<Map<_, _>>(),
        "refused_with": counts(&endings.statuses, u16::to_string),
        "closed_with": counts(&endings.codes, code),
        "reasons": counts(&endings.reasons, String::clone),
        "bytes": { "read": sockets.bytes, "per_second": per_second(sockets.bytes, seconds) },
    });
    joined(common, own)
}

/// One object with the members of both.
fn joined(mut one: Value, mut other: Value) -> Value {
    if let (Some(members), Some(more)) = (one.as_object_mut(), other.as_object_mut()) {
        members.append(more);
    }
    one
}

fn counts<T>(counts: &BTreeMap<T, u64>, name: impl Fn(&T) -> String) -> Map<String, Value> {
    counts.iter().map(|(each, count)| (name(each), json!(count))).collect()
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
