//! Reports for people; here are the parts that all of them have.

pub(crate) mod http;
pub(crate) mod real_time;

use crate::fairness::{Fairness, Served};
use crate::latencies::{Latencies, PERCENTILES};
use crate::pacing::Nanos;
use hdrhistogram::Histogram;

/// Writing into a `String` cannot fail.
macro_rules! line {
    ($out:expr) => { $out.push('\n') };
    ($out:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($out, $($arg)*);
    }};
}
use line;

/// Raw and corrected latencies side by side.
fn latency(out: &mut String, latencies: &Latencies, expected_interval: Option<Nanos>, open_loop: bool) {
    let (raw, corrected) = (latencies.raw(), latencies.corrected(expected_interval));
    if raw.is_empty() {
        return;
    }
    line!(out, "\nlatency          raw    corrected");
    let rows = rows(raw).zip(rows(&corrected));
    for ((name, raw), (_, corrected)) in rows {
        line!(out, "{name:<8}{raw:>9.3} ms {corrected:>9.3} ms");
    }
    let interval = expected_interval.unwrap_or(0) as f64 / 1e6;
    if open_loop {
        line!(
            out,
            "corrected: from the moment a request was due, not from when it could be sent"
        );
    } else {
        line!(
            out,
            "corrected: with the requests that a client asking every {interval:.3} ms would have sent"
        );
    }
}

/// What a table shows of a distribution: names, and milliseconds.
fn rows(latencies: &Histogram<u64>) -> impl Iterator<Item = (String, f64)> + '_ {
    let percentiles = PERCENTILES.iter().map(|percent| {
        let value = latencies.value_at_quantile(percent / 100.0);
        (format!("{percent} %"), value as f64 / 1e6)
    });
    percentiles.chain([("max".to_owned(), latencies.max() as f64 / 1e6)])
}

/// How evenly the connections were served, and which were not.
fn fairness(out: &mut String, connections: &[Served]) {
    let fairness = Fairness::of(connections);
    if let (Some(jain), Some(ratio)) = (fairness.jain, fairness.least_to_most()) {
        let (least, most) = (fairness.least, fairness.most);
        line!(
            out,
            "fairness   {jain:.3} (Jain: 1 is even); least/most served {least}/{most} = {ratio:.3}"
        );
    }
    if !fairness.never_served.is_empty() {
        let numbers: Vec<String> = fairness.never_served.iter().map(usize::to_string).collect();
        let (never, all) = (numbers.len(), connections.len());
        line!(
            out,
            "never served while others were: {never} of {all} connections ({})",
            numbers.join(", ")
        );
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
}
