//! The reports of WebSockets and event streams for people.

use super::{bytes, digits, fairness, latency, line, rows};
use crate::broadcast::Deliveries;
use crate::latencies::expected_interval;
use crate::options::{self, Echo, RealTime, Transport};
use crate::real_time::echo::Echoes;
use crate::real_time::idle::Held;
use crate::real_time::{Found, Sockets};
use std::fmt::Display;

pub(crate) fn echo(options: &RealTime, echo: &Echo, found: &Found<Echoes>) -> String {
    let (mut out, echoes) = (heading(options), &found.task);
    let kind = if echo.binary { "binary" } else { "text" };
    line!(out, ", {kind} messages of {} that come back\n", bytes(echo.size as f64));
    let (answered, seconds) = (echoes.answered(), echoes.elapsed as f64 / 1e9);
    line!(
        out,
        "echoes     {answered} in {seconds:.2} s, {:.0}/s",
        per_second(answered, seconds)
    );
    // Some messages are always under way at the end; one that waits longer than any echo took is news.
    if echoes.unanswered > 0 && echoes.longest_wait > echoes.latencies.raw().max() {
        let longest = echoes.longest_wait as f64 / 1e9;
        line!(
            out,
            "unanswered {} at the end, after up to {longest:.2} s: longer than any echo took",
            echoes.unanswered
        );
    }
    if echoes.unsent > 0 {
        line!(
            out,
            "unsent     {} that should have been sent before the end",
            echoes.unsent
        );
    }
    sockets(&mut out, &found.sockets);
    let interval = expected_interval(&echoes.connections, 1, echoes.elapsed);
    latency(&mut out, &echoes.latencies, interval, false);
    line!(out);
    if !options.quiet {
        let width = digits(echoes.connections.len() as u64);
        for (number, served) in (1..).zip(&echoes.connections) {
            line!(out, "connection {number:>width$}: {} echoes", served.answered);
        }
    }
    fairness(&mut out, &echoes.connections);
    out
}

pub(crate) fn broadcast(options: &RealTime, task: &options::Broadcast, found: &Found<Deliveries>) -> String {
    let (mut out, deliveries) = (heading(options), &found.task);
    let (publishers, s) = plural(task.publishers);
    let pace = task.rate.map_or(String::new(), |rate| format!(", {rate} messages/s"));
    let (messages, size) = (task.messages, bytes(task.size as f64));
    line!(
        out,
        " subscribed, {publishers} publisher{s}, {messages} messages of {size}{pace}\n"
    );
    let (total, seconds) = (deliveries.ledger.total(), deliveries.elapsed as f64 / 1e9);
    line!(out, "published  {} of {messages}", deliveries.published);
    line!(
        out,
        "delivered  {} of {} in {seconds:.3} s, {:.0}/s",
        total.received,
        deliveries.expected(),
        per_second(total.received, seconds)
    );
    line!(
        out,
        "complete   {} of {} connections",
        deliveries.complete(),
        deliveries.audience
    );
    let troubles = [
        ("lost", deliveries.lost()),
        ("duplicated", total.duplicated),
        ("out of order", total.out_of_order),
        ("truncated", deliveries.truncated),
        ("rejected when published", deliveries.rejected),
        ("never sent", deliveries.unsent),
    ];
    let troubles = troubles.into_iter().filter(|(_, count)| *count > 0);
    line!(
        out,
        "messages   {}",
        list(troubles, "none lost, none twice, all in order")
    );
    if deliveries.other > 0 {
        line!(
            out,
            "other      {} messages that were not published here",
            deliveries.other
        );
    }
    if deliveries.gave_up {
        line!(out, "gave up: nothing came any more");
    }
    sockets(&mut out, &found.sockets);
    if !deliveries.latencies.is_empty() {
        let from = if task.rate.is_some() {
            "a message was due"
        } else {
            "it was sent"
        };
        line!(out, "\nlatency, from when {from}");
        for (name, value) in rows(&deliveries.latencies) {
            line!(out, "{name:<8}{value:>9.3} ms");
        }
    }
    if !options.quiet {
        incomplete(&mut out, deliveries);
    }
    out
}

pub(crate) fn idle(options: &RealTime, found: &Found<Held>) -> String {
    let mut out = heading(options);
    line!(out, " held\n");
    let (opening, held) = (found.task.opening as f64 / 1e9, found.task.held as f64 / 1e9);
    line!(out, "opened in  {opening:.2} s");
    line!(out, "held for   {held:.2} s");
    line!(out, "messages   {}", found.task.messages);
    sockets(&mut out, &found.sockets);
    out
}

/// The first words; the line does not end here.
fn heading(options: &RealTime) -> String {
    let (count, s) = plural(options.connections);
    let kind = match options.transport {
        Transport::WebSocket => "WebSocket",
        Transport::EventStream => "event stream",
    };
    let deflate = if options.deflate {
        " (permessage-deflate offered)"
    } else {
        ""
    };
    format!("{}: {count} {kind}{s}{deflate}", options.url.text)
}

fn sockets(out: &mut String, sockets: &Sockets) {
    let (asked, opened, left) = (sockets.asked, sockets.opened, sockets.left);
    line!(out, "sockets    {opened} of {asked} opened, {left} there at the end");
    if sockets.subscribed < opened {
        line!(out, "subscribed {} of these", sockets.subscribed);
    }
    if sockets.stopped {
        line!(out, "stopped before the end");
    }
    line!(out, "bytes      {} read", bytes(sockets.bytes as f64));
    let endings = &sockets.endings;
    let kinds = endings.kinds().map(|(_, words, count)| (words, count));
    line!(
        out,
        "errors     {}",
        list(kinds.filter(|(_, count)| *count > 0), "none")
    );
    if !endings.statuses.is_empty() {
        line!(out, "refused with status {}", list(&endings.statuses, ""));
    }
    if !endings.codes.is_empty() {
        let code = |code: &Option<u16>| code.map_or("the end of the stream".to_owned(), |code| code.to_string());
        line!(
            out,
            "closed with {}",
            list(endings.codes.iter().map(|(each, count)| (code(each), count)), "")
        );
    }
    if !endings.reasons.is_empty() {
        line!(out, "because of {}", list(&endings.reasons, ""));
    }
}

/// Subscribers that did not get everything, once and in order.
fn incomplete(out: &mut String, deliveries: &Deliveries) {
    let width = digits(deliveries.ledger.numbered().count() as u64);
    for (index, row) in deliveries.ledger.numbered() {
        let lost = deliveries.published.saturating_sub(row.received);
        let troubles = [
            ("lost", lost),
            ("duplicated", row.duplicated),
            ("out of order", row.out_of_order),
        ];
        if troubles.iter().any(|(_, count)| *count > 0) {
            let troubles = troubles.into_iter().filter(|(_, count)| *count > 0);
            line!(
                out,
                "connection {:>width$}: {} received, {}",
                index + 1,
                row.received,
                list(troubles, "")
            );
        }
    }
}

/// `name: count, name: count`
fn list<N: Display, C: Display>(items: impl IntoIterator<Item = (N, C)>, nothing: &str) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    if items.is_empty() {
        nothing.to_owned()
    } else {
        items.join(", ")
    }
}

fn plural(count: usize) -> (usize, &'static str) {
    (count, if count == 1 { "" } else { "s" })
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}
