//! What a report has to say of HTTP/2: streams, classes of connections, error codes.

use super::super::{counted, list, Page};
use crate::fairness::{share, Within};
use crate::options::{Class, Options};
use crate::tally::Tally;

/// Who the clients are, for the title.
pub(super) fn clients(classes: &[Class]) -> String {
    let class = |class: &Class| {
        let each = if class.connections == 1 { "" } else { " each" };
        let (connections, streams) = (
            counted(class.connections, "connection"),
            counted(class.streams, "stream"),
        );
        format!("{connections} with {streams}{each}")
    };
    let classes: Vec<String> = classes.iter().map(class).collect();
    format!("{} (HTTP/2)", classes.join(", "))
}

/// What the server has set a limit to, where that is less than was wanted.
pub(super) fn allowed(page: &mut Page, tally: &Tally) {
    let wanted = tally.streams.iter().map(Vec::len).max().unwrap_or(0);
    if let Some(most) = tally.most_streams.filter(|&most| most < wanted) {
        page.row(
            "streams",
            format_args!("{most} of {wanted}: the server allows no more on a connection"),
        );
    }
}

/// The error codes that the server gave.
pub(super) fn codes(page: &mut Page, tally: &Tally) {
    for (what, codes) in [("reset with", &tally.resets), ("sent away with", &tally.goaways)] {
        if !codes.is_empty() {
            let codes = codes.iter().map(|(code, count)| (code, *count));
            page.line(format_args!("{what} {}", list(codes, "")));
        }
    }
}

/// What each connection got, how even that is, and how even their streams are.
pub(super) fn connections(page: &mut Page, options: &Options, classes: &[Class], tally: &Tally) {
    if classes.len() > 1 {
        table(page, classes, tally);
    }
    let all = &tally.connections;
    let more = |connection: usize| {
        let streams = counted(options.carried(connection).streams, "stream");
        let share = share(&all[connection..=connection], all).unwrap_or(0.0);
        format!(", {streams}, {share:.2} of an equal share")
    };
    page.connections_with(all, "requests completed", options.quiet, more);
    let within = Within::of(&tally.streams);
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

/// A row for each class of connections.
fn table(page: &mut Page, classes: &[Class], tally: &Tally) {
    page.empty_line();
    page.line("streams   connections    answers      share       50 %         99 %");
    let mut rest = &tally.connections[..];
    for (class, latencies) in classes.iter().zip(&tally.classes_of_streams) {
        let (own, others) = rest.split_at(class.connections);
        rest = others;
        let raw = latencies.raw();
        let at = |quantile| raw.value_at_quantile(quantile) as f64 / 1e6;
        page.line(format_args!(
            "{:>7} {:>13} {:>10} {:>10.2} {:>9.3} ms {:>9.3} ms",
            class.streams,
            class.connections,
            raw.len(),
            share(own, &tally.connections).unwrap_or(0.0),
            at(0.5),
            at(0.99)
        ));
    }
    page.line("share: what each connection got, in equal shares of all");
}
