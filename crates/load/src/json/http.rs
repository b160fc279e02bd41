//! The report of HTTP requests as a JSON document.

use super::{connections, distribution, fairness, latency};
use crate::fairness::{share, Within};
use crate::options::{names, Class, Options, Version};
use crate::run::Measured;
use crate::tally::{Failure, Tally};
use serde_json::{json, Map, Value};

/// The whole document.
pub(crate) fn document(options: &Options, measured: &Measured) -> Value {
    let tally = &measured.tally;
    let waiting = tally.unanswered + tally.unsent > 0;
    let mut document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "settings": settings(options),
        "seconds": measured.seconds(),
        "interrupted": measured.stopped,
        "gave_up": measured.gave_up,
        "requests": {
            "answered": tally.answered(),
            "per_second": measured.per_second(tally.answered()),
            "failed": tally.failed(),
            "unanswered": tally.unanswered,
            "unsent": tally.unsent,
            "longest_wait": waiting.then_some(tally.longest_wait as f64 / 1e9),
        },
        "bytes": { "read": tally.bytes, "per_second": measured.per_second(tally.bytes) },
        "statuses": statuses(tally),
        "errors": errors(tally),
        "latency_ms": latency(&tally.latencies, measured.expected_interval),
        "fairness": fairness(&tally.connections),
        "connections_opened": tally.opened,
        "connections": connections(&tally.connections),
    });
    if options.url.secure {
        document["tls"] = tls(measured);
    }
    if let Some(classes) = &options.http2 {
        document["http2"] = http2(classes, tally);
        for (connection, found) in document["connections"].as_array_mut().into_iter().flatten().enumerate() {
            let (all, streams) = (&tally.connections, &tally.streams[connection]);
            found["share"] = json!(share(&all[connection..=connection], all));
            found["streams"] = streams.iter().map(|served| served.answered).collect();
        }
    }
    if !options.mix.is_empty() {
        document["mix"] = mix(options, tally);
    }
    document
}

fn mix(options: &Options, tally: &Tally) -> Value {
    let kinds = names(&options.mix).into_iter().zip(&tally.kinds);
    let each = kinds.map(|(name, latencies)| {
        let raw = latencies.raw();
        json!({ "name": name, "answered": raw.len(), "latency_ms": distribution(raw) })
    });
    each.collect()
}

fn http2(classes: &[Class], tally: &Tally) -> Value {
    let within = Within::of(&tally.streams);
    let mut rest = &tally.connections[..];
    let each = classes.iter().zip(&tally.classes_of_streams).map(|(class, latencies)| {
        let (own, others) = rest.split_at(class.connections);
        rest = others;
        json!({
            "connections": class.connections,
            "streams": class.streams,
            "answered": own.iter().map(|served| served.answered).sum::<u64>(),
            "share": share(own, &tally.connections),
            "latency_ms": distribution(latencies.raw()),
        })
    });
    json!({
        "max_concurrent_streams": tally.most_streams,
        "classes": each.collect::<Vec<_>>(),
        "resets": tally.resets,
        "goaways": tally.goaways,
        "fairness": {
            "jain": within.jain,
            "least_to_most": within.least_to_most,
            "never_served": within.never_served,
        },
    })
}

fn tls(measured: &Measured) -> Value {
    let handshakes = &measured.tally.handshakes;
    let agreed = handshakes.agreements.iter().map(|(agreement, count)| {
        let (version, cipher) = agreement.names();
        json!({ "version": version, "cipher": cipher, "connections": count })
    });
    json!({
        "handshakes": handshakes.count(),
        "per_second": measured.per_second(handshakes.count()),
        "full": handshakes.full.len(),
        "resumed": handshakes.resumed.len(),
        "latency_ms": { "full": distribution(&handshakes.full), "resumed": distribution(&handshakes.resumed) },
        "agreed": agreed.collect::<Vec<_>>(),
        "reasons": handshakes.reasons,
    })
}

fn settings(options: &Options) -> Value {
    let mut settings = json!({
        "url": options.url.text,
        "method": options.method,
        "path": options.url.path,
        "connections": options.connections,
        "threads": options.threads,
        "pipeline": options.pipeline,
        "keep_alive": options.keep_alive,
        "duration": options.duration.map(|duration| duration.as_secs_f64()),
        "requests": options.requests,
        "rate": options.rate,
        "warmup": options.warmup.as_secs_f64(),
        "timeout": options.timeout.as_secs_f64(),
    });
    if let Some(classes) = &options.http2 {
        let class = |class: &Class| json!({ "connections": class.connections, "streams": class.streams });
        settings["http2"] = classes.iter().map(class).collect();
    }
    if options.url.secure {
        settings["tls"] = json!({
            "trust": options.tls.trust.name(),
            "certificate": options.tls.identity.is_some(),
            "version": options.tls.version.map(Version::name),
            "resume": options.tls.resume,
        });
    }
    settings
}

fn statuses(tally: &Tally) -> Map<String, Value> {
    let classes = (1..).zip(tally.classes);
    classes
        .map(|(class, count)| (format!("{class}xx"), json!(count)))
        .collect()
}

fn errors(tally: &Tally) -> Map<String, Value> {
    let failures = Failure::ALL.map(|why| (why.name(), tally.failures[why as usize]));
    let all = failures.into_iter().chain([("status", tally.refusals())]);
    all.map(|(name, count)| (name.to_owned(), json!(count))).collect()
}
