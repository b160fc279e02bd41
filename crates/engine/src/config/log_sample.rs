//! The share of requests that the access log has, by status.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// See the head of this file. The text: `all`, or rules such as `404=0.5,2xx=0.01`. A rule for a status goes before
/// the rule for its class; a status without a rule is logged always.
#[derive(Clone, Debug, Default)]
pub struct LogSample {
    rules: Vec<Rule>,
    /// Number of decisions so far.
    decisions: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    first: u16,
    last: u16,
    share: f64,
}

impl LogSample {
    /// Decides if the next request with this status is logged.
    pub(crate) fn takes(&self, status: u16) -> bool {
        let mut rules = self.rules.iter();
        let Some(rule) = rules.find(|rule| (rule.first..=rule.last).contains(&status)) else {
            return true;
        };
        rule.share >= 1.0 || chance(self.decisions.fetch_add(1, Relaxed)) < rule.share
    }
}

/// A number from 0 to 1 without any visible order: the splitmix64 hash of a counter.
fn chance(count: u64) -> f64 {
    let mut hash = count.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (hash ^ hash >> 31) as f64 / u64::MAX as f64
}

impl FromStr for LogSample {
    type Err = ();

    fn from_str(text: &str) -> Result<LogSample, ()> {
        let mut rules: Vec<Rule> = match text {
            "all" => Vec::new(),
            _ => text.split(',').map(rule).collect::<Result<_, ()>>()?,
        };
        rules.sort_by_key(|rule| rule.last - rule.first);
        Ok(LogSample {
            rules,
            decisions: Arc::default(),
        })
    }
}

fn rule(text: &str) -> Result<Rule, ()> {
    let (status, share) = text.split_once('=').ok_or(())?;
    let share = share.parse().map_err(|_| ())?;
    let (first, last) = match status.strip_suffix("xx") {
        Some(class) => class.parse().map(|class: u16| (class * 100, class * 100 + 99)),
        None => status.parse().map(|status: u16| (status, status)),
    }
    .map_err(|_| ())?;
    Ok(Rule { first, last, share })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sample: &LogSample, status: u16) -> usize {
        (0..10_000).filter(|_| sample.takes(status)).count()
    }

    #[test]
    fn a_share_of_each_class_is_taken_and_all_of_the_others() {
        let sample: LogSample = "2xx=0.25,404=0,4xx=1".parse().expect("a sample");
        assert!((2_400..2_600).contains(&taken(&sample, 200)), "{}", taken(&sample, 200));
        assert_eq!(
            [404, 403, 500, 302].map(|status| taken(&sample, status)),
            [0, 10_000, 10_000, 10_000]
        );
    }

    #[test]
    fn a_pattern_of_requests_does_not_decide_which_are_taken() {
        let sample: LogSample = "2xx=0.5".parse().expect("a sample");
        let odd = (0..10_000)
            .filter(|number| sample.takes(200) && number % 2 == 1)
            .count();
        assert!((2_350..2_650).contains(&odd), "{odd}");
    }

    #[test]
    fn without_rules_everything_is_taken() {
        assert_eq!(taken(&"all".parse().expect("a sample"), 200), 10_000);
        assert!(["", "2xx", "2xx=x", "axx=1"]
            .iter()
            .all(|text| text.parse::<LogSample>().is_err()));
    }
}
