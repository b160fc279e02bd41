//! The report of HTTP requests.

use super::page::{bytes, counted, list, Page};
use super::parts::{connections, Bytes, Connection, Counts, Distribution, Latency, Requests, Streams};
use super::Report;
use crate::failure::Failure;
use crate::fairness::{share, Fairness, Within};
use crate::options::{names, Class, Options};
use crate::run::Measured;
use crate::sample::Sample;
use crate::tally::Tally;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
pub(crate) struct Http<'a> {
    version: &'static str,
    settings: &'a Options,
    seconds: f64,
    interrupted: bool,
    gave_up: bool,
    requests: Requests,
    bytes: Bytes,
    statuses: Counts,
    errors: Counts,
    latency_ms: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    good: Option<Good>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
    fairness: Fairness,
    connections_opened: u64,
    repeated: u64,
    connections: Vec<Connection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<Tls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http2: Option<Http2>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mix: Vec<Kind>,
}

/// Responses with 2xx and 3xx.
#[derive(Debug, Serialize)]
struct Good {
    answered: u64,
    /// Those within the wanted time.
    in_time: u64,
    in_time_per_second: f64,
    latency_ms: Distribution,
}

/// Responses with another status.
#[derive(Debug, Serialize)]
struct Refused {
    answered: u64,
    latency_ms: Distribution,
}

#[derive(Debug, Serialize)]
struct Tls {
    handshakes: u64,
    per_second: f64,
    full: u64,
    resumed: u64,
    latency_ms: Handshakes,
    agreed: Vec<Agreed>,
    reasons: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct Handshakes {
    full: Distribution,
    resumed: Distribution,
}

#[derive(Debug, Serialize)]
struct Agreed {
    version: String,
    cipher: String,
    connections: u64,
}

#[derive(Debug, Serialize)]
struct Http2 {
    max_concurrent_streams: Option<usize>,
    classes: Vec<ClassResults>,
    resets: BTreeMap<String, u64>,
    goaways: BTreeMap<String, u64>,
    fairness: Within,
}

#[derive(Debug, Serialize)]
struct ClassResults {
    #[serde(flatten)]
    class: Class,
    answered: u64,
    /// Average of each connection, in equal shares of all.
    share: Option<f64>,
    latency_ms: Distribution,
}

/// A kind of requests of a mix.
#[derive(Debug, Serialize)]
struct Kind {
    name: String,
    answered: u64,
    latency_ms: Distribution,
}

impl<'a> Http<'a> {
    pub(crate) fn new(options: &'a Options, measured: &Measured) -> Http<'a> {
        let tally = &measured.tally;
        let waiting = tally.unanswered + tally.unsent > 0;
        let classes = (1..)
            .zip(tally.classes)
            .map(|(class, count)| (format!("{class}xx"), count));
        let failures = Failure::ALL.map(|why| (why.name(), why.words(), tally.failures[why as usize]));
        let refusals = ("status", "responses other than 2xx and 3xx", tally.refusals());
        let kinds = names(&options.mix).into_iter().zip(&tally.kinds);
        Http {
            version: env!("CARGO_PKG_VERSION"),
            settings: options,
            seconds: measured.seconds(),
            interrupted: measured.stopped,
            gave_up: measured.gave_up,
            requests: Requests {
                answered: tally.answered(),
                per_second: measured.per_second(tally.answered()),
                failed: tally.failed(),
                unanswered: tally.unanswered,
                unsent: tally.unsent,
                longest_wait: waiting.then_some(tally.longest_wait as f64 / 1e9),
            },
            bytes: Bytes {
                read: tally.bytes,
                per_second: measured.per_second(tally.bytes),
            },
            statuses: classes.map(|(class, count)| (class.clone(), class, count)).collect(),
            errors: failures.into_iter().chain([refusals]).collect(),
            latency_ms: Latency::new(&tally.latencies, measured.expected_interval),
            good: tally.goodput.as_ref().map(|goodput| Good {
                answered: goodput.good.len(),
                in_time: goodput.in_time,
                in_time_per_second: measured.per_second(goodput.in_time),
                latency_ms: (&goodput.good).into(),
            }),
            refused: tally.goodput.as_ref().map(|goodput| Refused {
                answered: goodput.refused.len(),
                latency_ms: (&goodput.refused).into(),
            }),
            fairness: Fairness::of(&tally.connections),
            connections_opened: tally.opened,
            repeated: tally.repeated,
            connections: with_streams(connections(&tally.connections), options, tally),
            tls: options.url.secure.then(|| tls(measured)),
            http2: options.http2.as_deref().map(|classes| http2(classes, tally)),
            mix: kinds.map(|(name, sample)| kind(name, sample)).collect(),
        }
    }
}

fn with_streams(mut connections: Vec<Connection>, options: &Options, tally: &Tally) -> Vec<Connection> {
    if options.http2.is_some() {
        let all = &tally.connections;
        for (index, connection) in connections.iter_mut().enumerate() {
            connection.streams = Some(Streams {
                share: share(&all[index..=index], all),
                streams: tally.streams[index].iter().map(|served| served.answered).collect(),
            });
        }
    }
    connections
}

fn tls(measured: &Measured) -> Tls {
    let handshakes = &measured.tally.handshakes;
    let agreed = handshakes.agreements.iter().map(|(agreement, &connections)| {
        let (version, cipher) = agreement.names();
        Agreed {
            version,
            cipher,
            connections,
        }
    });
    Tls {
        handshakes: handshakes.count(),
        per_second: measured.per_second(handshakes.count()),
        full: handshakes.full.len(),
        resumed: handshakes.resumed.len(),
        latency_ms: Handshakes {
            full: (&handshakes.full).into(),
            resumed: (&handshakes.resumed).into(),
        },
        agreed: agreed.collect(),
        reasons: handshakes.reasons.clone(),
    }
}

fn http2(classes: &[Class], tally: &Tally) -> Http2 {
    let mut rest = &tally.connections[..];
    let results = classes.iter().zip(&tally.classes_of_streams).map(|(class, latencies)| {
        let (own, others) = rest.split_at(class.connections);
        rest = others;
        ClassResults {
            class: *class,
            answered: own.iter().map(|served| served.answered).sum(),
            share: share(own, &tally.connections),
            latency_ms: latencies.raw().into(),
        }
    });
    Http2 {
        max_concurrent_streams: tally.most_streams,
        classes: results.collect(),
        resets: tally.resets.clone(),
        goaways: tally.goaways.clone(),
        fairness: Within::of(&tally.streams),
    }
}

fn kind(name: &str, sample: &Sample) -> Kind {
    Kind {
        name: name.to_owned(),
        answered: sample.len(),
        latency_ms: sample.into(),
    }
}

impl Report for Http<'_> {
    fn text(&self) -> String {
        let mut page = Page::new(self.title());
        self.summary(&mut page);
        page.latency(&self.latency_ms, self.settings.rate.is_some(), &self.columns());
        self.answers(&mut page);
        self.kinds(&mut page);
        self.classes(&mut page);
        page.connections(&self.connections, "requests completed", self.settings.quiet);
        page.fairness(&self.fairness, self.connections.len());
        self.streams(&mut page);
        page.0
    }
}

impl Http<'_> {
    fn title(&self) -> String {
        let settings = &self.settings;
        let method = if self.mix.is_empty() { &settings.method } else { "mix" };
        let connections = match &settings.http2 {
            None => counted(settings.connections, "connection"),
            Some(classes) => clients(classes),
        };
        let mut title = format!("{method} {}: {connections}", settings.url.text);
        if !settings.keep_alive {
            title += ", a new one for every request";
            if settings.tls.as_ref().is_some_and(|tls| tls.resume) {
                title += " that resumes a session";
            }
        }
        if settings.pipeline > 1 {
            title += &format!(", {} in a pipeline", settings.pipeline);
        }
        if let Some(rate) = settings.rate {
            title += &format!(", {rate} requests/s");
        }
        title
    }

    /// Further columns of the table of latencies.
    fn columns(&self) -> Vec<(&'static str, &Distribution)> {
        let mut columns = Vec::new();
        columns.extend(self.good.as_ref().map(|good| ("good", &good.latency_ms)));
        columns.extend(self.refused.as_ref().map(|refused| ("refused", &refused.latency_ms)));
        if let Some(Tls { latency_ms, .. }) = &self.tls {
            columns.extend([("handshake", &latency_ms.full), ("resumption", &latency_ms.resumed)]);
        }
        columns
    }

    fn summary(&self, page: &mut Page) {
        page.rate("requests", self.requests.answered, self.seconds);
        if let (Some(good), Some(within)) = (&self.good, self.settings.within) {
            let (limit, rate) = (within.as_secs_f64(), good.in_time_per_second);
            page.row(
                "in time",
                format_args!("{} good within {limit} s, {rate:.0}/s", good.in_time),
            );
        }
        let (read, rate) = (bytes(self.bytes.read as f64), bytes(self.bytes.per_second));
        page.row("bytes", format_args!("{read} read, {rate}/s"));
        if let Some(tls) = &self.tls {
            let (full, resumed, rate) = (tls.full, tls.resumed, tls.per_second);
            page.row(
                "handshakes",
                format_args!("{full} full, {resumed} resumed, {rate:.0}/s"),
            );
            let agreed = |each: &Agreed| (format!("{} {}", each.version, each.cipher), each.connections);
            page.row("agreed on", list(tls.agreed.iter().map(agreed), "nothing"));
        }
        if let Some(http2) = &self.http2 {
            let wanted = http2.classes.iter().map(|each| each.class.streams).max().unwrap_or(0);
            if let Some(most) = http2.max_concurrent_streams.filter(|&most| most < wanted) {
                let text = format!("{most} of {wanted}: the server allows no more on a connection");
                page.row("streams", text);
            }
        }
        page.leftovers(&self.requests, self.latency_ms.raw.max, "response");
        if self.interrupted {
            page.line("stopped before the end");
        }
        if self.gave_up {
            page.line("gave up: no more responses came");
        }
    }

    fn answers(&self, page: &mut Page) {
        page.empty_line();
        page.row("responses", list(self.statuses.words(), "none"));
        page.row("errors", list(self.errors.words(), "none"));
        if self.repeated > 0 {
            let repeated = counted(self.repeated as usize, "request");
            page.line(format_args!(
                "{repeated} sent again: the server had closed a kept connection"
            ));
        }
        if let Some(http2) = &self.http2 {
            for (what, codes) in [("reset with", &http2.resets), ("GOAWAY with", &http2.goaways)] {
                if !codes.is_empty() {
                    let codes = codes.iter().map(|(code, count)| (code, *count));
                    page.line(format_args!("{what} {}", list(codes, "")));
                }
            }
        }
        for (reason, count) in self.tls.iter().flat_map(|tls| &tls.reasons) {
            page.line(format_args!("TLS failed {count} times: {reason}"));
        }
    }

    /// A row for each kind of request of a mix.
    fn kinds(&self, page: &mut Page) {
        if self.mix.is_empty() {
            return;
        }
        page.empty_line();
        page.line("mix           answers       50 %         99 %");
        for kind in &self.mix {
            let (answers, latencies) = (kind.answered, ends(&kind.latency_ms));
            page.line(format_args!("{:<12} {answers:>8} {latencies}", kind.name));
        }
    }

    /// A row for each class of HTTP/2 connections, if there are several.
    fn classes(&self, page: &mut Page) {
        let Some(http2) = self.http2.as_ref().filter(|http2| http2.classes.len() > 1) else {
            return;
        };
        page.empty_line();
        page.line("streams   connections    answers      share       50 %         99 %");
        for each in &http2.classes {
            let Class { connections, streams } = each.class;
            let (answered, share, latencies) = (each.answered, each.share.unwrap_or(0.0), ends(&each.latency_ms));
            page.line(format_args!(
                "{streams:>7} {connections:>13} {answered:>10} {share:>10.2} {latencies}"
            ));
        }
        page.line("share: responses of each connection, in equal shares of all");
    }

    /// Fairness between the streams of a connection.
    fn streams(&self, page: &mut Page) {
        let Some(http2) = &self.http2 else { return };
        let within = &http2.fairness;
        if let (Some(jain), Some(ratio)) = (within.jain, within.least_to_most) {
            let text = format!("{jain:.3} (Jain, least even connection); least/most served = {ratio:.3}");
            page.row("streams", text);
        }
        if within.never_served > 0 {
            let never = counted(within.never_served, "stream");
            page.line(format_args!(
                "never served while others of their connection were: {never}"
            ));
        }
    }
}

/// The median and the 99th percentile.
fn ends(latencies: &Distribution) -> String {
    let (median, last) = (latencies.p50.unwrap_or(0.0), latencies.p99.unwrap_or(0.0));
    format!("{median:>9.3} ms {last:>9.3} ms")
}

/// HTTP/2 connections, for the title.
fn clients(classes: &[Class]) -> String {
    let class = |class: &Class| {
        let each = if class.connections == 1 { "" } else { " each" };
        let connections = counted(class.connections, "connection");
        format!("{connections} with {}{each}", counted(class.streams, "stream"))
    };
    let classes: Vec<String> = classes.iter().map(class).collect();
    format!("{} (HTTP/2)", classes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Started;
    use crate::fairness::Served;
    use crate::goodput::Goodput;
    use crate::latencies::expected_interval;
    use crate::options::{options, Carried};

    fn measured(answers: &[u64]) -> Measured {
        let mut tally = Tally::new(vec![Carried::default(); answers.len()], 0, false, 0);
        for (connection, &count) in answers.iter().enumerate() {
            tally.connections[connection] = Served {
                asked: count + 1,
                ..Served::default()
            };
            let started = Started {
                due: 0,
                sent: 0,
                counted: true,
            };
            (0..count).for_each(|_| tally.answer((connection, 0), 0, started, 200, 1_000_000));
        }
        let expected_interval = expected_interval(&tally.connections, 1, 1_000_000_000);
        Measured {
            tally,
            elapsed: 1_000_000_000,
            expected_interval,
            stopped: false,
            gave_up: false,
        }
    }

    #[test]
    fn errors_are_named_by_kind() {
        let mut measured = measured(&[1]);
        measured.tally.classes[4] = 2;
        measured.tally.failures[Failure::Timeout as usize] = 3;
        let options = options(&["http://h/"]);
        let report = Http::new(&options, &measured).text();
        assert!(report.contains("responses  2xx: 1, 5xx: 2\n"), "{report}");
        assert!(
            report.contains("errors     timed out: 3, responses other than 2xx and 3xx: 2\n"),
            "{report}"
        );
    }

    #[test]
    fn good_responses_and_refusals_have_columns() {
        let mut measured = measured(&[1]);
        let mut goodput = Goodput::new(2_000_000);
        let started = Started {
            due: 0,
            sent: 0,
            counted: true,
        };
        for (status, now) in [(200, 1_000_000), (200, 3_000_000), (503, 2_000_000)] {
            goodput.answered(started, status, now);
        }
        measured.tally.goodput = Some(goodput);
        let options = options(&["http://h/", "--within", "2ms"]);
        let report = Http::new(&options, &measured).text();
        assert!(report.contains("in time    1 good within 0.002 s, 1/s\n"), "{report}");
        assert!(report.contains("         good      refused\n"), "{report}");
        assert!(report.contains("    3.000 ms     2.001 ms\n"), "{report}");
    }

    #[test]
    fn a_run_without_answers_has_no_percentiles() {
        let options = options(&["http://h/"]);
        let report = Http::new(&options, &measured(&[0])).text();
        assert!(
            report.contains("responses  none") && !report.contains("50 %"),
            "{report}"
        );
    }
}
