//! The reports of WebSockets and event streams.

use super::page::{bytes, counted, list, Page};
use super::parts::{connections, per_second, seconds, Bytes, Connection, Counts, Distribution, Latency, Requests};
use super::Report;
use crate::broadcast::Deliveries;
use crate::fairness::Fairness;
use crate::latencies::expected_interval;
use crate::options::{Broadcast, Echo, RealTime, Task, Transport};
use crate::real_time::echo::Echoes;
use crate::real_time::idle::Held;
use crate::real_time::{Found, Sockets};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    version: &'static str,
    settings: &'a RealTime,
    seconds: f64,
    interrupted: bool,
    sockets: &'a Sockets,
    errors: Counts,
    refused_with: &'a BTreeMap<u16, u64>,
    closed_with: Counts,
    reasons: &'a BTreeMap<String, u64>,
    bytes: Bytes,
    #[serde(flatten)]
    results: Results,
}

/// The results of each mode.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Results {
    Echo(Box<EchoResults>),
    Broadcast(Box<BroadcastResults>),
    Idle { opening: f64, messages: u64 },
}

#[derive(Debug, Serialize)]
struct EchoResults {
    requests: Requests,
    latency_ms: Latency,
    fairness: Fairness,
    connections: Vec<Connection>,
}

#[derive(Debug, Serialize)]
struct BroadcastResults {
    gave_up: bool,
    messages: Messages,
    deliveries: DeliveryCounts,
    complete: usize,
    latency_ms: Distribution,
    connections: Vec<Subscriber>,
    /// Subscribers that were there when publishing began.
    #[serde(skip)]
    audience: u64,
}

#[derive(Debug, Serialize)]
struct Messages {
    published: u64,
    rejected: u64,
    unsent: u64,
}

#[derive(Debug, Serialize)]
struct DeliveryCounts {
    expected: u64,
    received: u64,
    per_second: f64,
    lost: u64,
    duplicated: u64,
    out_of_order: u64,
    truncated: u64,
    other: u64,
}

#[derive(Debug, Serialize)]
struct Subscriber {
    connection: usize,
    received: u64,
    lost: u64,
    duplicated: u64,
    out_of_order: u64,
}

pub(crate) fn echo<'a>(options: &'a RealTime, found: &'a Found<Echoes>) -> Document<'a> {
    let (echoes, seconds) = (&found.task, seconds(found.task.elapsed));
    let interval = expected_interval(&echoes.connections, 1, echoes.elapsed);
    let results = EchoResults {
        requests: Requests {
            answered: echoes.answered(),
            per_second: per_second(echoes.answered(), seconds),
            failed: echoes.connections.iter().map(|served| served.failed).sum(),
            unanswered: echoes.unanswered,
            unsent: echoes.unsent,
            longest_wait: (echoes.unanswered > 0).then_some(echoes.longest_wait as f64 / 1e9),
        },
        latency_ms: Latency::new(&echoes.latencies, interval),
        fairness: Fairness::of(&echoes.connections),
        connections: connections(&echoes.connections),
    };
    Document::new(options, &found.sockets, seconds, Results::Echo(Box::new(results)))
}

pub(crate) fn broadcast<'a>(options: &'a RealTime, found: &'a Found<Deliveries>) -> Document<'a> {
    let (deliveries, seconds) = (&found.task, seconds(found.task.elapsed));
    let total = deliveries.ledger.total();
    let subscribers = deliveries.ledger.numbered().map(|(index, row)| Subscriber {
        connection: index + 1,
        received: row.received,
        lost: deliveries.published.saturating_sub(row.received),
        duplicated: row.duplicated,
        out_of_order: row.out_of_order,
    });
    let results = BroadcastResults {
        gave_up: deliveries.gave_up,
        messages: Messages {
            published: deliveries.published,
            rejected: deliveries.rejected,
            unsent: deliveries.unsent,
        },
        deliveries: DeliveryCounts {
            expected: deliveries.expected(),
            received: total.received,
            per_second: per_second(total.received, seconds),
            lost: deliveries.lost(),
            duplicated: total.duplicated,
            out_of_order: total.out_of_order,
            truncated: deliveries.truncated,
            other: deliveries.other,
        },
        complete: deliveries.complete(),
        latency_ms: (&deliveries.latencies).into(),
        connections: subscribers.collect(),
        audience: deliveries.audience,
    };
    Document::new(options, &found.sockets, seconds, Results::Broadcast(Box::new(results)))
}

pub(crate) fn idle<'a>(options: &'a RealTime, found: &'a Found<Held>) -> Document<'a> {
    let (opening, messages) = (seconds(found.task.opening), found.task.messages);
    let results = Results::Idle { opening, messages };
    Document::new(options, &found.sockets, seconds(found.task.held), results)
}

impl<'a> Document<'a> {
    fn new(settings: &'a RealTime, sockets: &'a Sockets, seconds: f64, results: Results) -> Document<'a> {
        let endings = &sockets.endings;
        let closed = endings.codes.iter().map(|(code, &count)| match code {
            Some(code) => (code.to_string(), code.to_string(), count),
            None => ("end".to_owned(), "the end of the stream".to_owned(), count),
        });
        Document {
            version: env!("CARGO_PKG_VERSION"),
            settings,
            seconds,
            interrupted: sockets.stopped,
            sockets,
            errors: endings.kinds().collect(),
            refused_with: &endings.statuses,
            closed_with: closed.collect(),
            reasons: &endings.reasons,
            bytes: Bytes {
                read: sockets.bytes,
                per_second: per_second(sockets.bytes, seconds),
            },
            results,
        }
    }

    fn title(&self) -> String {
        let settings = &self.settings;
        let kind = match settings.transport {
            Transport::WebSocket => "WebSocket",
            Transport::EventStream => "event stream",
        };
        let connections = counted(settings.connections, kind);
        let deflate = if settings.deflate {
            " (permessage-deflate offered)"
        } else {
            ""
        };
        format!("{}: {connections}{deflate}", settings.url.text)
    }

    fn sockets(&self, page: &mut Page) {
        let (asked, opened, left) = (self.sockets.asked, self.sockets.opened, self.sockets.left);
        let subscribed = self.sockets.subscribed;
        page.row(
            "sockets",
            format_args!("{opened} of {asked} opened, {left} open at the end"),
        );
        if subscribed < opened {
            page.row("subscribed", format_args!("{subscribed} of these"));
        }
        if self.interrupted {
            page.line("stopped before the end");
        }
        page.row("bytes", format_args!("{} read", bytes(self.bytes.read as f64)));
        page.row("errors", list(self.errors.words(), "none"));
        let statuses = self.refused_with.iter().map(|(status, count)| (status, *count));
        let reasons = self.reasons.iter().map(|(reason, count)| (reason, *count));
        for (heading, counts) in [
            ("refused with status", list(statuses, "")),
            ("closed with", list(self.closed_with.words(), "")),
            ("because of", list(reasons, "")),
        ] {
            if !counts.is_empty() {
                page.line(format_args!("{heading} {counts}"));
            }
        }
    }

    fn echoes(&self, echo: &Echo, results: &EchoResults) -> String {
        let (kind, size) = (if echo.binary { "binary" } else { "text" }, bytes(echo.size as f64));
        let mut page = Page::new(self.title() + &format!(", {kind} messages of {size} with their echoes"));
        page.rate("echoes", results.requests.answered, self.seconds);
        page.leftovers(&results.requests, results.latency_ms.raw.max, "echo");
        self.sockets(&mut page);
        page.latency(&results.latency_ms, false, &[]);
        page.connections(&results.connections, "echoes", self.settings.quiet);
        page.fairness(&results.fairness, results.connections.len());
        page.0
    }

    fn broadcast(&self, task: &Broadcast, results: &BroadcastResults) -> String {
        let (publishers, messages) = (counted(task.publishers, "publisher"), task.messages);
        let size = bytes(task.size as f64);
        let rate = task.rate.map_or(String::new(), |rate| format!(", {rate} messages/s"));
        let mut page =
            Page::new(self.title() + &format!(" subscribed, {publishers}, {messages} messages of {size}{rate}"));
        page.row(
            "published",
            format_args!("{} of {messages}", results.messages.published),
        );
        results.delivered(&mut page, self.seconds);
        self.sockets(&mut page);
        if !results.latency_ms.is_empty() {
            let heading = match task.rate {
                Some(_) => "latency, from when a message was due",
                None => "latency, from when it was sent",
            };
            page.percentiles(heading, &[&results.latency_ms]);
        }
        if !self.settings.quiet {
            results.incomplete(&mut page);
        }
        page.0
    }

    fn held(&self, opening: f64, messages: u64) -> String {
        let mut page = Page::new(self.title() + " held");
        page.row("opened in", format_args!("{opening:.2} s"));
        page.row("held for", format_args!("{:.2} s", self.seconds));
        page.row("messages", messages);
        self.sockets(&mut page);
        page.0
    }
}

impl Report for Document<'_> {
    fn text(&self) -> String {
        match (&self.settings.task, &self.results) {
            (Task::Echo(echo), Results::Echo(results)) => self.echoes(echo, results),
            (Task::Broadcast(task), Results::Broadcast(results)) => self.broadcast(task, results),
            (_, Results::Idle { opening, messages }) => self.held(*opening, *messages),
            (_, Results::Echo(_) | Results::Broadcast(_)) => unreachable!("results are of their own task"),
        }
    }
}

impl BroadcastResults {
    fn delivered(&self, page: &mut Page, seconds: f64) {
        let counts = &self.deliveries;
        let (received, expected, rate) = (counts.received, counts.expected, counts.per_second);
        let text = format!("{received} of {expected} in {seconds:.3} s, {rate:.0}/s");
        page.row("delivered", text);
        let (complete, audience) = (self.complete, self.audience);
        page.row("complete", format_args!("{complete} of {audience} connections"));
        let troubles = [
            ("lost", counts.lost),
            ("duplicated", counts.duplicated),
            ("out of order", counts.out_of_order),
            ("truncated", counts.truncated),
            ("rejected when published", self.messages.rejected),
            ("never sent", self.messages.unsent),
        ];
        page.row("messages", list(troubles, "none lost, none twice, all in order"));
        if counts.other > 0 {
            let text = format!("{} messages that were not published in this run", counts.other);
            page.row("other", text);
        }
        if self.gave_up {
            page.line("gave up: no more messages came");
        }
    }

    /// Subscribers that did not receive everything once and in order.
    fn incomplete(&self, page: &mut Page) {
        for row in &self.connections {
            let troubles = [
                ("lost", row.lost),
                ("duplicated", row.duplicated),
                ("out of order", row.out_of_order),
            ];
            let troubles = list(troubles, "");
            if !troubles.is_empty() {
                let text = format!("{} received, {troubles}", row.received);
                page.connection(row.connection, self.connections.len(), text);
            }
        }
    }
}
