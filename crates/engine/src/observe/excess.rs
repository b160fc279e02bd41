//! Limits log lines about peers: a limited number of each kind in a second, then one line with the number of lines that
//! were left out. A peer that causes thousands of refused requests must not fill the disk, or hide lines of another
//! kind or about other peers. The length of a line is limited, too, because some quote input of a peer.

use crate::clock::Millis;
use std::collections::HashMap;
use std::fmt::{self, Arguments, Write};
use std::net::IpAddr;
use std::time::Duration;

/// Most lines of a kind in a second.
const LINES: u32 = 100;

/// Most lines about one address.
const LINES_OF_ONE: u32 = 50;

const WINDOW: Duration = Duration::from_millis(1_000);

/// Most bytes of a line.
const LINE_BYTES: usize = 600;

/// The kinds of such lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    RefusedRequest,
    /// A request was refused because the server has no room for it (5xx).
    NoRoom,
    Handshake,
    Http2,
    Client,
    SlowReader,
    /// The app has not responded in time.
    LateResponse,
    /// The client had the largest share of an exhausted resource.
    GaveWay,
    /// Streams of an HTTP/2 connection that has used up its budget.
    RefusedStreams,
    File,
}

const KINDS: usize = About::File as usize + 1;

/// The lines of the last second, by kind.
#[derive(Debug, Default)]
pub(super) struct Excess([Burst; KINDS]);

#[derive(Debug, Default)]
struct Burst {
    /// The time when the second began; `None` before the first line.
    since: Option<Millis>,
    lines: u32,
    /// Number of lines about each address.
    by_address: HashMap<IpAddr, u32>,
    left_out: Option<LeftOut>,
}

/// Lines that were neither written nor reported yet.
#[derive(Debug)]
struct LeftOut {
    /// The time of the report.
    due: Millis,
    first: String,
    /// The address that the first line is about.
    address: Option<IpAddr>,
    others: u64,
    /// Other lines are about other addresses.
    are_about_several: bool,
}

impl Excess {
    /// Returns true if a line may be written now. Otherwise it is counted, and the first such line is kept. `address`:
    /// address of the peer, if known.
    pub(super) fn admit(&mut self, about: About, address: Option<IpAddr>, line: Arguments<'_>, now: Millis) -> bool {
        let burst = &mut self.0[about as usize];
        let since = burst.since.filter(|since| now - *since < WINDOW);
        if since.is_none() {
            burst.lines = 0;
            burst.by_address.clear();
        }
        let since = *burst.since.insert(since.unwrap_or(now));
        if burst.has_place(address) {
            return true;
        }
        match &mut burst.left_out {
            Some(left_out) => {
                left_out.others += 1;
                left_out.are_about_several |= left_out.address != address;
            }
            None => {
                burst.left_out = Some(LeftOut {
                    due: since + WINDOW,
                    first: line.to_string(),
                    address,
                    others: 0,
                    are_about_several: false,
                });
            }
        }
        false
    }

    /// The time when [`Excess::take`] has something to report, if ever.
    pub(super) fn due(&self) -> Option<Millis> {
        let left_out = self.0.iter().filter_map(|burst| burst.left_out.as_ref());
        left_out.map(|left_out| left_out.due).min()
    }

    /// The reports about lines that were left out until `now`.
    pub(super) fn take(&mut self, now: Millis) -> Vec<String> {
        let bursts = self.0.iter_mut();
        let over = bursts.filter_map(|burst| burst.left_out.take_if(|left_out| left_out.due <= now));
        over.map(|left_out| left_out.to_string()).collect()
    }
}

impl Burst {
    /// Takes one of the lines of this second, if one is left.
    fn has_place(&mut self, address: Option<IpAddr>) -> bool {
        if self.lines == LINES {
            return false;
        }
        if let Some(address) = address {
            let own = self.by_address.entry(address).or_default();
            if *own == LINES_OF_ONE {
                return false;
            }
            *own += 1;
        }
        self.lines += 1;
        true
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { first, others, .. } = self;
        match (others, self.are_about_several) {
            (0, _) => formatter.write_str(first),
            (_, false) => write!(formatter, "{first}, and {others} more like this"),
            (_, true) => write!(formatter, "{first}, and {others} more like this about several clients"),
        }
    }
}

/// A line; if it is too long, its end is left out.
pub(super) struct Bounded<'a>(pub(super) Arguments<'a>);

impl fmt::Display for Bounded<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = Start { out, left: LINE_BYTES };
        match start.write_fmt(self.0) {
            Err(_) if start.left == 0 => out.write_str(" …"),
            written => written,
        }
    }
}

/// Writes the start of a text, then fails.
struct Start<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl Write for Start<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() <= self.left {
            self.left -= text.len();
            return self.out.write_str(text);
        }
        let end = (0..=self.left).rev().find(|end| text.is_char_boundary(*end));
        self.left = 0;
        self.out.write_str(&text[..end.unwrap_or(0)])?;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Millis {
        Millis::START + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_burst_is_a_few_lines_and_one_about_the_others() {
        let mut excess = Excess::default();
        let mut admit = |about, number: u32, now| excess.admit(about, None, format_args!("line {number}"), at(now));
        let admitted = (0..300)
            .filter(|number| admit(About::RefusedRequest, *number, 500))
            .count();
        assert_eq!(admitted, LINES as usize);
        assert!(admit(About::Http2, 0, 500), "it is of another kind");
        // The next burst does not delay the report.
        assert!(admit(About::RefusedRequest, 0, 1_500));
        assert_eq!(excess.due(), Some(at(1_500)));
        assert!(excess.take(at(1_499)).is_empty());
        assert_eq!(excess.take(at(1_500)), ["line 100, and 199 more like this"]);
        assert_eq!((excess.due(), excess.take(at(9_000)).len()), (None, 0));
    }

    #[test]
    fn a_line_is_never_long() {
        let bounded = |text: &str| Bounded(format_args!("{text}{}", "")).to_string();
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded(&"x".repeat(LINE_BYTES)).len(), LINE_BYTES);
        let long = bounded(&format!("x{}", "\u{e4}".repeat(60_000)));
        assert!(long.len() <= LINE_BYTES + " …".len() && long.ends_with("\u{e4} …"));
    }

    #[test]
    fn a_single_line_that_was_left_out_comes_late() {
        let mut excess = Excess::default();
        let lines = 0..=LINES;
        let admitted = lines.filter(|number| excess.admit(About::Client, None, format_args!("line {number}"), at(0)));
        assert_eq!(admitted.count(), LINES as usize);
        assert_eq!(excess.take(at(1_000)), ["line 100"]);
    }

    #[test]
    fn one_client_hides_no_lines_about_others() {
        let mut excess = Excess::default();
        let mut admit = |host: u8, count: usize| {
            let address = Some([10, 0, 0, host].into());
            let lines = (0..count).filter(|_| excess.admit(About::Http2, address, format_args!("of {host}"), at(0)));
            lines.count()
        };
        assert_eq!(admit(1, 1_000), LINES_OF_ONE as usize);
        assert_eq!(admit(2, 10), 10, "there are lines left");
        assert_eq!((admit(3, 100), admit(4, 7)), (40, 0));
        assert_eq!(
            excess.take(at(1_000)),
            ["of 1, and 1016 more like this about several clients"]
        );
        assert!(excess.admit(
            About::Http2,
            Some([10, 0, 0, 1].into()),
            format_args!("of 1"),
            at(1_000)
        ));
    }
}
