//! The report of HTTP requests for people.

mod http2;

use super::{bytes, counted, list, Leftovers, Page};
use crate::options::{names, Options};
use crate::run::Measured;
use crate::tally::{Failure, Tally};

/// The whole report.
pub(crate) fn text(options: &Options, measured: &Measured) -> String {
    let tally = &measured.tally;
    let mut page = Page::new(title(options));
    summary(&mut page, options, measured);
    let handshakes = &tally.handshakes;
    page.latency(
        &tally.latencies,
        measured.expected_interval,
        options.rate.is_some(),
        &[("handshake", &handshakes.full), ("resumption", &handshakes.resumed)],
    );
    answers(&mut page, tally);
    kinds(&mut page, options, tally);
    match &options.http2 {
        None => page.connections(&tally.connections, "requests completed", options.quiet),
        Some(classes) => http2::connections(&mut page, options, classes, tally),
    }
    page.0
}

fn title(options: &Options) -> String {
    let method = if options.mix.is_empty() { &options.method } else { "mix" };
    let connections = match &options.http2 {
        None => counted(options.connections, "connection"),
        Some(classes) => http2::clients(classes),
    };
    let mut title = format!("{} {}: {connections}", method, options.url.text);
    if !options.keep_alive {
        title += ", a new one for every request";
        if options.tls.resume {
            title += " that resumes a session";
        }
    }
    if options.pipeline > 1 {
        title += &format!(", {} in a pipeline", options.pipeline);
    }
    if let Some(rate) = options.rate {
        title += &format!(", {rate} requests/s");
    }
    title
}

fn summary(page: &mut Page, options: &Options, measured: &Measured) {
    let tally = &measured.tally;
    page.rate("requests", tally.answered(), measured.seconds());
    let (read, rate) = (bytes(tally.bytes as f64), bytes(measured.per_second(tally.bytes)));
    page.row("bytes", format_args!("{read} read, {rate}/s"));
    let left = Leftovers {
        unanswered: tally.unanswered,
        unsent: tally.unsent,
        longest_wait: tally.longest_wait,
        longest_answer: tally.latencies.raw().max(),
    };
    if options.url.secure {
        handshakes(page, measured);
    }
    http2::allowed(page, tally);
    page.leftovers(&left, "answer");
    if measured.stopped {
        page.line("stopped before the end");
    }
    if measured.gave_up {
        page.line("gave up: nothing was answered any more");
    }
}

fn handshakes(page: &mut Page, measured: &Measured) {
    let handshakes = &measured.tally.handshakes;
    let (full, resumed) = (handshakes.full.len(), handshakes.resumed.len());
    let rate = measured.per_second(handshakes.count());
    page.row(
        "handshakes",
        format_args!("{full} full, {resumed} resumed, {rate:.0}/s"),
    );
    let agreed = handshakes.agreements.iter().map(|(agreement, count)| {
        let (version, cipher) = agreement.names();
        (format!("{version} {cipher}"), *count)
    });
    page.row("agreed on", list(agreed, "nothing"));
}

fn answers(page: &mut Page, tally: &Tally) {
    let classes = (1..).zip(tally.classes);
    let classes = classes.map(|(class, count)| (format!("{class}xx"), count));
    page.empty_line();
    page.row("answers", list(classes, "none"));
    let failures = Failure::ALL.map(|why| (why.words(), tally.failures[why as usize]));
    let refusals = ("answers other than 2xx and 3xx", tally.refusals());
    page.row("errors", list(failures.into_iter().chain([refusals]), "none"));
    http2::codes(page, tally);
    for (reason, count) in &tally.handshakes.reasons {
        page.line(format_args!("TLS failed {count} times: {reason}"));
    }
}

/// A row for each kind of request of a mix.
fn kinds(page: &mut Page, options: &Options, tally: &Tally) {
    if options.mix.is_empty() {
        return;
    }
    page.empty_line();
    page.line("mix           answers       50 %         99 %");
    for (name, latencies) in names(&options.mix).into_iter().zip(&tally.kinds) {
        let raw = latencies.raw();
        let at = |quantile| raw.value_at_quantile(quantile) as f64 / 1e6;
        page.line(format_args!(
            "{:<12} {:>8} {:>9.3} ms {:>9.3} ms",
            name,
            raw.len(),
            at(0.5),
            at(0.99)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::Served;
    use crate::latencies::expected_interval;
    use crate::options::{options, Carried};
    use crate::pacing::Started;

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
    fn connections_are_numbered_from_one_and_aligned() {
        let report = text(&options(&["http://h/"]), &measured(&[100, 0, 7, 1, 1, 1, 1, 1, 1, 5]));
        assert!(
            report.contains("\nconnection  1: 100 requests completed\nconnection  2:   0 requests completed\n"),
            "{report}"
        );
        assert!(report.contains("\nconnection 10:   5 requests completed\n"), "{report}");
        assert!(
            report.contains("never served while others were: 1 of 10 connections (2)"),
            "{report}"
        );
    }

    #[test]
    fn quiet_leaves_the_list_out_but_not_the_verdict() {
        let report = text(&options(&["http://h/", "-q"]), &measured(&[3, 0]));
        assert!(!report.contains("requests completed"), "{report}");
        assert!(
            report.contains("never served") && report.contains("0.500 (Jain"),
            "{report}"
        );
    }

    #[test]
    fn errors_are_named_by_kind() {
        let mut measured = measured(&[1]);
        measured.tally.classes[4] = 2;
        measured.tally.failures[Failure::Timeout as usize] = 3;
        let report = text(&options(&["http://h/"]), &measured);
        assert!(report.contains("answers    2xx: 1, 5xx: 2\n"), "{report}");
        assert!(
            report.contains("errors     timed out: 3, answers other than 2xx and 3xx: 2\n"),
            "{report}"
        );
    }

    #[test]
    fn a_run_without_answers_has_no_percentiles() {
        let report = text(&options(&["http://h/"]), &measured(&[0]));
        assert!(
            report.contains("answers    none") && !report.contains("50 %"),
            "{report}"
        );
    }
}
