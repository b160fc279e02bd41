//! The report of HTTP requests for people.

use super::{bytes, digits, fairness, latency, line};
use crate::options::Options;
use crate::run::Measured;
use crate::tally::{Failure, Tally};

/// The whole report.
pub(crate) fn text(options: &Options, measured: &Measured) -> String {
    let mut out = String::new();
    summary(&mut out, options, measured);
    latency(
        &mut out,
        &measured.tally.latencies,
        measured.expected_interval,
        options.rate.is_some(),
    );
    answers(&mut out, &measured.tally);
    connections(&mut out, options, &measured.tally);
    out
}

fn summary(out: &mut String, options: &Options, measured: &Measured) {
    let tally = &measured.tally;
    let (connections, s) = (options.connections, if options.connections == 1 { "" } else { "s" });
    let pace = options
        .rate
        .map(|rate| format!(", {rate} requests/s"))
        .unwrap_or_default();
    let pipeline = if options.pipeline > 1 {
        format!(", {} in a pipeline", options.pipeline)
    } else {
        String::new()
    };
    let close = if options.keep_alive {
        ""
    } else {
        ", a new one for every request"
    };
    line!(
        out,
        "{} {}: {connections} connection{s}{close}{pipeline}{pace}",
        options.method,
        options.url.text
    );
    line!(out);
    let seconds = measured.seconds();
    line!(
        out,
        "requests   {} in {seconds:.2} s, {:.0}/s",
        tally.answered(),
        measured.per_second(tally.answered())
    );
    let bytes_per_second = measured.per_second(tally.bytes);
    line!(
        out,
        "bytes      {} read, {}/s",
        bytes(tally.bytes as f64),
        bytes(bytes_per_second)
    );
    // Some requests are always under way at the end; one that waits longer than any answer took is news.
    if tally.unanswered > 0 && tally.longest_wait > tally.latencies.raw().max() {
        let longest = tally.longest_wait as f64 / 1e9;
        line!(
            out,
            "unanswered {} at the end, after up to {longest:.2} s: longer than any answer took",
            tally.unanswered
        );
    }
    if tally.unsent > 0 {
        line!(
            out,
            "unsent     {} that should have been sent before the end",
            tally.unsent
        );
    }
    if measured.stopped {
        line!(out, "stopped before the end");
    }
    if measured.gave_up {
        line!(out, "gave up: nothing was answered any more");
    }
}

fn answers(out: &mut String, tally: &Tally) {
    let classes = (1..).zip(tally.classes).filter(|(_, count)| *count > 0);
    let classes: Vec<String> = classes.map(|(class, count)| format!("{class}xx: {count}")).collect();
    line!(out);
    line!(
        out,
        "answers    {}",
        if classes.is_empty() {
            "none".into()
        } else {
            classes.join(", ")
        }
    );
    let failures = Failure::ALL
        .iter()
        .map(|why| (why.words(), tally.failures[*why as usize]));
    let kinds = failures
        .chain([("answers other than 2xx and 3xx", tally.refusals())])
        .filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(words, count)| format!("{words}: {count}")).collect();
    line!(
        out,
        "errors     {}",
        if kinds.is_empty() {
            "none".into()
        } else {
            kinds.join(", ")
        }
    );
}

fn connections(out: &mut String, options: &Options, tally: &Tally) {
    line!(out);
    if !options.quiet {
        let number_width = digits(tally.connections.len() as u64);
        let most = tally
            .connections
            .iter()
            .map(|served| served.answered)
            .max()
            .unwrap_or(0);
        let width = digits(most);
        for (number, served) in (1..).zip(&tally.connections) {
            let failed = if served.failed > 0 {
                format!(", {} failed", served.failed)
            } else {
                String::new()
            };
            line!(
                out,
                "connection {number:>number_width$}: {:>width$} requests completed{failed}",
                served.answered
            );
        }
    }
    fairness(out, &tally.connections);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::Served;
    use crate::latencies::expected_interval;
    use crate::options::options;
    use crate::pacing::Started;

    fn measured(answers: &[u64]) -> Measured {
        let mut tally = Tally::new(answers.len(), false);
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
            (0..count).for_each(|_| tally.answer(connection, started, 200, 1_000_000));
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
