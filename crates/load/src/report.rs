//! Reports for people. Here is what prints them: lines with a label, lists, and the tables of latencies and connections.

pub(crate) mod http;
pub(crate) mod real_time;

use crate::fairness::{Fairness, Served};
use crate::latencies::{Latencies, PERCENTILES};
use crate::pacing::Nanos;
use hdrhistogram::Histogram;
use std::fmt::{Display, Write};

/// A report as it grows.
#[derive(Debug)]
struct Page(String);

impl Page {
    /// Begins with what was done, and an empty line.
    fn new(title: impl Display) -> Page {
        Page(format!("{title}\n\n"))
    }

    /// Writing into a `String` cannot fail.
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.0, "{text}");
    }

    fn empty_line(&mut self) {
        self.line("");
    }

    fn row(&mut self, label: &str, text: impl Display) {
        self.line(format_args!("{label:<10} {text}"));
    }

    /// How many there were, and how many a second.
    fn rate(&mut self, label: &str, count: u64, seconds: f64) {
        let rate = per_second(count, seconds);
        self.row(label, format_args!("{count} in {seconds:.2} s, {rate:.0}/s"));
    }

    /// What was sent, or should have been, and not answered before the end.
    fn leftovers(&mut self, left: &Leftovers, answer: &str) {
        // Some are always under way at the end; one that waits longer than any answer took is news.
        if left.unanswered > 0 && left.longest_wait > left.longest_answer {
            let (count, longest) = (left.unanswered, left.longest_wait as f64 / 1e9);
            let text = format!("{count} at the end, after up to {longest:.2} s: longer than any {answer} took");
            self.row("unanswered", text);
        }
        if left.unsent > 0 {
            let text = format!("{} that should have been sent before the end", left.unsent);
            self.row("unsent", text);
        }
    }

    /// The heading, then a row for each percentile with a column for each distribution.
    fn percentiles(&mut self, heading: &str, columns: &[&Histogram<u64>]) {
        self.empty_line();
        self.line(heading);
        let row = |name: &str, value: &dyn Fn(&Histogram<u64>) -> u64| {
            let cells = columns
                .iter()
                .map(|column| format!("{:>9.3} ms", value(column) as f64 / 1e6));
            format!("{name:<8}{}", cells.collect::<Vec<_>>().join(" "))
        };
        for percent in PERCENTILES {
            let text = row(&format!("{percent} %"), &|column| {
                column.value_at_quantile(percent / 100.0)
            });
            self.line(text);
        }
        self.line(row("max", &Histogram::max));
    }

    /// Raw and corrected latencies side by side, and what else there is to show.
    fn latency(
        &mut self,
        latencies: &Latencies,
        expected_interval: Option<Nanos>,
        open_loop: bool,
        others: &[(&str, &Histogram<u64>)],
    ) {
        let (raw, corrected) = (latencies.raw(), latencies.corrected(expected_interval));
        if raw.is_empty() {
            return;
        }
        let mut heading = "latency          raw    corrected".to_owned();
        let mut columns = vec![raw, &corrected];
        for (name, column) in others.iter().filter(|(_, column)| !column.is_empty()) {
            heading += &format!("{name:>13}");
            columns.push(column);
        }
        self.percentiles(&heading, &columns);
        let interval = expected_interval.unwrap_or(0) as f64 / 1e6;
        if open_loop {
            self.line("corrected: from the moment a request was due, not from when it could be sent");
        } else {
            self.line(format_args!(
                "corrected: with the requests that a client asking every {interval:.3} ms would have sent"
            ));
        }
    }

    /// What each connection got, unless that was not wanted, and how even that is; `what` it got.
    fn connections(&mut self, connections: &[Served], what: &str, quiet: bool) {
        self.connections_with(connections, what, quiet, |_| String::new());
    }

    /// The same with what else there is to say of a connection.
    fn connections_with(&mut self, connections: &[Served], what: &str, quiet: bool, more: impl Fn(usize) -> String) {
        self.empty_line();
        if !quiet {
            let most = connections.iter().map(|served| served.answered).max();
            let width = digits(most.unwrap_or(0));
            for (index, served) in connections.iter().enumerate() {
                let failed = match served.failed {
                    0 => String::new(),
                    failed => format!(", {failed} failed"),
                };
                let text = format!("{:>width$} {what}{}{failed}", served.answered, more(index));
                self.connection(index, connections.len(), text);
            }
        }
        self.fairness(connections);
    }

    /// What is to be said about one connection of several.
    fn connection(&mut self, index: usize, count: usize, text: impl Display) {
        let width = digits(count as u64);
        self.line(format_args!("connection {:>width$}: {text}", index + 1));
    }

    /// How evenly the connections were served, and which were not.
    fn fairness(&mut self, connections: &[Served]) {
        let fairness = Fairness::of(connections);
        if let (Some(jain), Some(ratio)) = (fairness.jain, fairness.least_to_most()) {
            let (least, most) = (fairness.least, fairness.most);
            let text = format!("{jain:.3} (Jain: 1 is even); least/most served {least}/{most} = {ratio:.3}");
            self.row("fairness", text);
        }
        if !fairness.never_served.is_empty() {
            let numbers: Vec<String> = fairness.never_served.iter().map(usize::to_string).collect();
            let (never, all, numbers) = (numbers.len(), connections.len(), numbers.join(", "));
            self.line(format_args!(
                "never served while others were: {never} of {all} connections ({numbers})"
            ));
        }
    }
}

/// What had no answer when the run ended.
#[derive(Debug)]
struct Leftovers {
    unanswered: u64,
    unsent: u64,
    longest_wait: Nanos,
    longest_answer: Nanos,
}

/// `name: count, name: count`, of those that there were.
fn list<N: Display>(counts: impl IntoIterator<Item = (N, u64)>, nothing: &str) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let items: Vec<String> = counts.map(|(name, count)| format!("{name}: {count}")).collect();
    if items.is_empty() {
        nothing.to_owned()
    } else {
        items.join(", ")
    }
}

/// The number with its noun.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// With a decimal prefix and three digits.
fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes < 1e3 => return format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => (bytes / 1e3, "kB"),
        bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e9, "GB"),
    };
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        assert_eq!(
            [0.0, 999.0, 1500.0, 2.5e6, 3e10].map(bytes),
            ["0 B", "999 B", "1.50 kB", "2.50 MB", "30.00 GB"]
        );
    }

    #[test]
    fn labels_have_a_column() {
        let mut page = Page::new("title");
        page.row("unanswered", 1);
        page.rate("echoes", 5, 2.0);
        page.row("errors", list([("lost", 0), ("late", 2), ("odd", 1)], "none"));
        page.row("answers", list([("2xx", 0)], "none"));
        assert_eq!(
            page.0,
            "title\n\nunanswered 1\nechoes     5 in 2.00 s, 2/s\nerrors     late: 2, odd: 1\nanswers    none\n"
        );
    }

    #[test]
    fn distributions_stand_side_by_side() {
        let mut column = crate::latencies::histogram();
        column.saturating_record(1_500_000);
        let mut page = Page::new("title");
        page.percentiles("heading", &[&column, &column]);
        assert!(
            page.0.contains("\n\nheading\n50 %        1.500 ms     1.500 ms\n"),
            "{}",
            page.0
        );
        assert!(page.0.ends_with("\nmax         1.500 ms     1.500 ms\n"), "{}", page.0);
    }
}
