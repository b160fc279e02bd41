//! The reports of WebSockets and event streams for people.

use super::{bytes, counted, list, per_second, Leftovers, Page};
use crate::broadcast::Deliveries;
use crate::latencies::expected_interval;
use crate::options::{self, Echo, RealTime, Transport};
use crate::real_time::echo::Echoes;
use crate::real_time::idle::Held;
use crate::real_time::{Found, Sockets};

pub(crate) fn echo(options: &RealTime, echo: &Echo, found: &Found<Echoes>) -> String {
    let echoes = &found.task;
    let kind = if echo.binary { "binary" } else { "text" };
    let size = bytes(echo.size as f64);
    let mut page = Page::new(title(options) + &format!(", {kind} messages of {size} that come back"));
    page.rate("echoes", echoes.answered(), echoes.elapsed as f64 / 1e9);
    let left = Leftovers {
        unanswered: echoes.unanswered,
        unsent: echoes.unsent,
        longest_wait: echoes.longest_wait,
        longest_answer: echoes.latencies.raw().max(),
    };
    page.leftovers(&left, "echo");
    sockets(&mut page, &found.sockets);
    let interval = expected_interval(&echoes.connections, 1, echoes.elapsed);
    page.latency(&echoes.latencies, interval, false, &[]);
    page.connections(&echoes.connections, "echoes", options.quiet);
    page.0
}

pub(crate) fn broadcast(options: &RealTime, task: &options::Broadcast, found: &Found<Deliveries>) -> String {
    let deliveries = &found.task;
    let (publishers, messages) = (counted(task.publishers, "publisher"), task.messages);
    let (size, pace) = (
        bytes(task.size as f64),
        task.rate.map_or(String::new(), |rate| format!(", {rate} messages/s")),
    );
    let mut page =
        Page::new(title(options) + &format!(" subscribed, {publishers}, {messages} messages of {size}{pace}"));
    page.row("published", format_args!("{} of {messages}", deliveries.published));
    delivered(&mut page, deliveries);
    sockets(&mut page, &found.sockets);
    if !deliveries.latencies.is_empty() {
        let heading = match task.rate {
            Some(_) => "latency, from when a message was due",
            None => "latency, from when it was sent",
        };
        page.percentiles(heading, &[&deliveries.latencies]);
    }
    if !options.quiet {
        incomplete(&mut page, deliveries);
    }
    page.0
}

fn delivered(page: &mut Page, deliveries: &Deliveries) {
    let (total, seconds) = (deliveries.ledger.total(), deliveries.elapsed as f64 / 1e9);
    let (received, expected) = (total.received, deliveries.expected());
    let rate = per_second(received, seconds);
    page.row(
        "delivered",
        format_args!("{received} of {expected} in {seconds:.3} s, {rate:.0}/s"),
    );
    let (complete, audience) = (deliveries.complete(), deliveries.audience);
    page.row("complete", format_args!("{complete} of {audience} connections"));
    let troubles = [
        ("lost", deliveries.lost()),
        ("duplicated", total.duplicated),
        ("out of order", total.out_of_order),
        ("truncated", deliveries.truncated),
        ("rejected when published", deliveries.rejected),
        ("never sent", deliveries.unsent),
    ];
    page.row("messages", list(troubles, "none lost, none twice, all in order"));
    if deliveries.other > 0 {
        let text = format!("{} messages that were not published here", deliveries.other);
        page.row("other", text);
    }
    if deliveries.gave_up {
        page.line("gave up: nothing came any more");
    }
}

pub(crate) fn idle(options: &RealTime, found: &Found<Held>) -> String {
    let mut page = Page::new(title(options) + " held");
    let (opening, held) = (found.task.opening as f64 / 1e9, found.task.held as f64 / 1e9);
    page.row("opened in", format_args!("{opening:.2} s"));
    page.row("held for", format_args!("{held:.2} s"));
    page.row("messages", found.task.messages);
    sockets(&mut page, &found.sockets);
    page.0
}

/// The first words.
fn title(options: &RealTime) -> String {
    let kind = match options.transport {
        Transport::WebSocket => "WebSocket",
        Transport::EventStream => "event stream",
    };
    let connections = counted(options.connections, kind);
    let deflate = if options.deflate {
        " (permessage-deflate offered)"
    } else {
        ""
    };
    format!("{}: {connections}{deflate}", options.url.text)
}

fn sockets(page: &mut Page, sockets: &Sockets) {
    let (asked, opened, left) = (sockets.asked, sockets.opened, sockets.left);
    page.row(
        "sockets",
        format_args!("{opened} of {asked} opened, {left} there at the end"),
    );
    if sockets.subscribed < opened {
        page.row("subscribed", format_args!("{} of these", sockets.subscribed));
    }
    if sockets.stopped {
        page.line("stopped before the end");
    }
    page.row("bytes", format_args!("{} read", bytes(sockets.bytes as f64)));
    let endings = &sockets.endings;
    let kinds = endings.kinds().map(|(_, words, count)| (words, count));
    page.row("errors", list(kinds, "none"));
    let code = |code: &Option<u16>| code.map_or("the end of the stream".to_owned(), |code| code.to_string());
    let statuses = endings.statuses.iter().map(|(status, count)| (status, *count));
    let codes = endings.codes.iter().map(|(each, count)| (code(each), *count));
    let reasons = endings.reasons.iter().map(|(reason, count)| (reason, *count));
    for (heading, counts) in [
        ("refused with status", list(statuses, "")),
        ("closed with", list(codes, "")),
        ("because of", list(reasons, "")),
    ] {
        if !counts.is_empty() {
            page.line(format_args!("{heading} {counts}"));
        }
    }
}

/// Subscribers that did not get everything, once and in order.
fn incomplete(page: &mut Page, deliveries: &Deliveries) {
    let count = deliveries.ledger.numbered().count();
    for (index, row) in deliveries.ledger.numbered() {
        let troubles = [
            ("lost", deliveries.published.saturating_sub(row.received)),
            ("duplicated", row.duplicated),
            ("out of order", row.out_of_order),
        ];
        let troubles = list(troubles, "");
        if !troubles.is_empty() {
            page.connection(index, count, format_args!("{} received, {troubles}", row.received));
        }
    }
}
