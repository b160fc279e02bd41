//! A report for people: lines with a label, lists, and the tables of latencies and connections.

use super::parts::{per_second, Connection, Distribution, Latency, Requests};
use crate::fairness::Fairness;
use std::fmt::{Display, Write};

/// A report as it grows.
#[derive(Debug)]
pub(super) struct Page(pub(super) String);

impl Page {
    /// Begins with the title and an empty line.
    pub(super) fn new(title: impl Display) -> Page {
        Page(format!("{title}\n\n"))
    }

    /// Writing into a `String` cannot fail.
    pub(super) fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.0, "{text}");
    }

    pub(super) fn empty_line(&mut self) {
        self.line("");
    }

    pub(super) fn row(&mut self, label: &str, text: impl Display) {
        self.line(format_args!("{label:<10} {text}"));
    }

    /// A count, and its rate per second.
    pub(super) fn rate(&mut self, label: &str, count: u64, seconds: f64) {
        let rate = per_second(count, seconds);
        self.row(label, format_args!("{count} in {seconds:.2} s, {rate:.0}/s"));
    }

    /// Requests without a response at the end; `longest` is the longest latency in milliseconds.
    pub(super) fn leftovers(&mut self, requests: &Requests, longest: Option<f64>, answer: &str) {
        let (count, waited) = (requests.unanswered, requests.longest_wait.unwrap_or(0.0));
        // Some requests are always in progress at the end. Only a longer wait than any latency is worth a line.
        if count > 0 && waited * 1e3 > longest.unwrap_or(0.0) {
            let text = format!("{count} at the end, after up to {waited:.2} s: longer than any {answer} took");
            self.row("unanswered", text);
        }
        if requests.unsent > 0 {
            let text = format!("{} that should have been sent before the end", requests.unsent);
            self.row("unsent", text);
        }
    }

    /// The heading, then a row for each percentile with a column for each distribution.
    pub(super) fn percentiles(&mut self, heading: &str, columns: &[&Distribution]) {
        self.empty_line();
        self.line(heading);
        let columns: Vec<_> = columns.iter().map(|column| column.rows()).collect();
        for (row, (name, _)) in Distribution::default().rows().iter().enumerate() {
            let cells = columns.iter().map(|column| format!("{:>9.3} ms", column[row].1));
            self.line(format_args!("{name:<8}{}", cells.collect::<Vec<_>>().join(" ")));
        }
    }

    /// Raw and corrected latencies side by side, and further columns with their names.
    pub(super) fn latency(&mut self, latency: &Latency, open_loop: bool, others: &[(&str, &Distribution)]) {
        if latency.raw.is_empty() {
            return;
        }
        let mut heading = "latency          raw    corrected".to_owned();
        let mut columns = vec![&latency.raw, &latency.corrected];
        for (name, column) in others.iter().filter(|(_, column)| !column.is_empty()) {
            heading += &format!("{name:>13}");
            columns.push(column);
        }
        self.percentiles(&heading, &columns);
        let interval = latency.expected_interval.unwrap_or(0.0);
        if open_loop {
            self.line("corrected: from the moment a request was due, not from when it could be sent");
        } else {
            self.line(format_args!(
                "corrected: with the requests that a client asking every {interval:.3} ms would have sent"
            ));
        }
    }

    /// The responses of each connection, unless `quiet`; `what` is their name.
    pub(super) fn connections(&mut self, connections: &[Connection], what: &str, quiet: bool) {
        self.empty_line();
        if quiet {
            return;
        }
        let most = connections.iter().map(|connection| connection.answered).max();
        let width = digits(most.unwrap_or(0));
        for connection in connections {
            let mut text = format!("{:>width$} {what}", connection.answered);
            if let Some(own) = &connection.streams {
                let (streams, share) = (counted(own.streams.len(), "stream"), own.share.unwrap_or(0.0));
                text += &format!(", {streams}, {share:.2} of an equal share");
            }
            if connection.failed > 0 {
                text += &format!(", {} failed", connection.failed);
            }
            self.connection(connection.connection, connections.len(), text);
        }
    }

    /// A line about one connection of several.
    pub(super) fn connection(&mut self, number: usize, count: usize, text: impl Display) {
        let width = digits(count as u64);
        self.line(format_args!("connection {number:>width$}: {text}"));
    }

    /// Fairness between the connections, and the connections that were never served.
    pub(super) fn fairness(&mut self, fairness: &Fairness, all: usize) {
        if let (Some(jain), Some(ratio)) = (fairness.jain, fairness.least_to_most) {
            let (least, most) = (fairness.least, fairness.most);
            let text = format!("{jain:.3} (Jain: 1 is even); least/most served {least}/{most} = {ratio:.3}");
            self.row("fairness", text);
        }
        if !fairness.never_served.is_empty() {
            let (never, numbers) = (fairness.never_served.len(), ranges(&fairness.never_served));
            self.line(format_args!(
                "never served while others were: {never} of {all} connections ({numbers})"
            ));
        }
    }
}

/// `name: count, name: count`, without zero counts.
pub(super) fn list<N: Display>(counts: impl IntoIterator<Item = (N, u64)>, nothing: &str) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let items: Vec<String> = counts.map(|(name, count)| format!("{name}: {count}")).collect();
    if items.is_empty() {
        nothing.to_owned()
    } else {
        items.join(", ")
    }
}

/// Numbers in ascending order, with a range for each three or more in a row: `1, 2, 5–9`.
fn ranges(numbers: &[usize]) -> String {
    let rows = numbers.chunk_by(|one, next| one + 1 == *next);
    let texts = rows.map(|row| match row {
        [first, _, .., last] => format!("{first}–{last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The number with its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The number with a decimal prefix and three digits.
pub(super) fn bytes(bytes: f64) -> String {
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
    fn numbers_in_a_row_are_a_range() {
        let text = |numbers: &[usize]| ranges(numbers);
        assert_eq!(text(&[7]), "7");
        assert_eq!(text(&[1, 2, 5, 6, 7, 8, 20]), "1, 2, 5–8, 20");
        assert_eq!(text(&(4_641..=5_000).collect::<Vec<_>>()), "4641–5000");
    }

    #[test]
    fn labels_have_a_column() {
        let mut page = Page::new("title");
        page.row("unanswered", 1);
        page.rate("echoes", 5, 2.0);
        page.row("errors", list([("lost", 0), ("late", 2), ("odd", 1)], "none"));
        page.row("responses", list([("2xx", 0)], "none"));
        assert_eq!(
            page.0,
            "title\n\nunanswered 1\nechoes     5 in 2.00 s, 2/s\nerrors     late: 2, odd: 1\nresponses  none\n"
        );
    }

    #[test]
    fn distributions_stand_side_by_side() {
        let mut column = crate::latencies::histogram();
        column.saturating_record(1_500_000);
        let mut page = Page::new("title");
        let column = Distribution::from(&column);
        page.percentiles("heading", &[&column, &column]);
        assert!(
            page.0.contains("\n\nheading\n50 %        1.500 ms     1.500 ms\n"),
            "{}",
            page.0
        );
        assert!(page.0.ends_with("\nmax         1.500 ms     1.500 ms\n"), "{}", page.0);
    }
}
