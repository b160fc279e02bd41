//! Lines about what peers do: some of each kind in a second, then one that says how many were left out. A peer that has
//! thousands of requests refused must not fill the disk, or hide lines of another kind.

use crate::clock::Millis;
use std::fmt::Arguments;
use std::time::Duration;

/// Most lines of a kind in a second.
const LINES: u32 = 100;

const WINDOW: Duration = Duration::from_millis(1_000);

/// The kinds of such lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    RefusedRequest,
    Handshake,
    Session,
    Client,
    SlowReader,
}

const KINDS: usize = About::SlowReader as usize + 1;

/// The lines of the last second, by kind.
#[derive(Debug, Default)]
pub(super) struct Excess([Burst; KINDS]);

#[derive(Debug, Default)]
struct Burst {
    /// When the second began; `None` before the first line.
    since: Option<Millis>,
    lines: u32,
    left_out: Option<LeftOut>,
}

/// Lines that were not written, and not told of yet.
#[derive(Debug)]
struct LeftOut {
    /// When it is time to say so.
    due: Millis,
    first: String,
    others: u64,
}

impl Excess {
    /// Whether a line may be written now. If not, it is counted, and the first of them is kept.
    pub(super) fn admit(&mut self, about: About, line: Arguments<'_>, now: Millis) -> bool {
        let burst = &mut self.0[about as usize];
        let since = burst.since.filter(|since| now - *since < WINDOW);
        if since.is_none() {
            burst.lines = 0;
        }
        let since = *burst.since.insert(since.unwrap_or(now));
        if burst.lines < LINES {
            burst.lines += 1;
            return true;
        }
        match &mut burst.left_out {
            Some(left_out) => left_out.others += 1,
            None => {
                burst.left_out = Some(LeftOut {
                    due: since + WINDOW,
                    first: line.to_string(),
                    others: 0,
                });
            }
        }
        false
    }

    /// When [`Excess::take`] has something to say, if ever.
    pub(super) fn due(&self) -> Option<Millis> {
        let left_out = self.0.iter().filter_map(|burst| burst.left_out.as_ref());
        left_out.map(|left_out| left_out.due).min()
    }

    /// The lines about what was left out until then.
    pub(super) fn take(&mut self, now: Millis) -> Vec<String> {
        let bursts = self.0.iter_mut();
        let over = bursts.filter_map(|burst| burst.left_out.take_if(|left_out| left_out.due <= now));
        over.map(|LeftOut { first, others, .. }| match others {
            0 => first,
            _ => format!("{first}, and {others} more like this"),
        })
        .collect()
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
        let mut admit = |about, number: u32, now| excess.admit(about, format_args!("line {number}"), at(now));
        let admitted = (0..300)
            .filter(|number| admit(About::RefusedRequest, *number, 500))
            .count();
        assert_eq!(admitted, LINES as usize);
        assert!(admit(About::Session, 0, 500), "it is of another kind");
        // The next burst does not put the summary off.
        assert!(admit(About::RefusedRequest, 0, 1_500));
        assert_eq!(excess.due(), Some(at(1_500)));
        assert!(excess.take(at(1_499)).is_empty());
        assert_eq!(excess.take(at(1_500)), ["line 100, and 199 more like this"]);
        assert_eq!((excess.due(), excess.take(at(9_000)).len()), (None, 0));
    }

    #[test]
    fn a_single_line_that_was_left_out_comes_late() {
        let mut excess = Excess::default();
        let lines = 0..=LINES;
        let admitted = lines.filter(|number| excess.admit(About::Client, format_args!("line {number}"), at(0)));
        assert_eq!(admitted.count(), LINES as usize);
        assert_eq!(excess.take(at(1_000)), ["line 100"]);
    }
}
