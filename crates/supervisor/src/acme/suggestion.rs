//! The time at which an authority wants a certificate to be renewed (ARI, RFC 9773): earlier than planned, for
//! instance, before it revokes many certificates. The server asks again and again; no suggestion makes it order more
//! than once a day.

use super::message::Certificate;
use super::{Wall, HOUR, MINUTE};
use serde::{Deserialize, Serialize};

const DAY: Wall = 24 * HOUR;

/// Time from the first check of a certificate to the first question: a server that restarts again and again does not
/// ask.
const FIRST: Wall = MINUTE;

/// The last millisecond of the year 9999; later times cannot be written.
const LAST: f64 = 253_402_300_799_999.0;

/// The suggestion for one certificate.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Suggestion {
    /// The time of the renewal, if the authority has suggested one.
    pub(super) at: Option<Wall>,
    ask_at: Wall,
}

impl Suggestion {
    /// No suggestion yet, for a new certificate.
    pub(super) fn for_new(certificate: &Certificate, now: Wall) -> Suggestion {
        Suggestion {
            at: None,
            ask_at: (now + FIRST).max(certificate.begins_at + HOUR),
        }
    }

    /// True if it is time to ask about this certificate.
    pub(super) fn is_due(&self, certificate: &Certificate, now: Wall) -> bool {
        certificate.identifier.is_some() && now >= self.ask_at
    }

    /// Takes a response: the first and the last second of the window, and the seconds until the next question; `None`
    /// if the authority has not responded.
    pub(super) fn take(&mut self, certificate: &Certificate, answer: Option<[f64; 3]>, now: Wall) {
        let Some([first, last, again]) = answer else {
            self.ask_at = now + DAY;
            return;
        };
        self.ask_at = now + ((again * 1000.0) as Wall).clamp(HOUR, DAY);
        let at = (first + (last - first) * certificate.fraction) * 1000.0;
        if last >= first && at.abs() <= LAST {
            let life = certificate.expires_at - certificate.begins_at;
            self.at = Some((at as Wall).max(certificate.begins_at + DAY.min(life / 3)));
        }
    }

    /// The clock was set back: no question is further away than a day.
    pub(super) fn bound(&mut self, now: Wall) {
        self.ask_at = self.ask_at.min(now + DAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = 1_800_000_000_000;
    const SECOND: Wall = 1000;

    fn certificate(begins_at: Wall, life: Wall, fraction: f64) -> Certificate {
        Certificate {
            begins_at,
            expires_at: begins_at + life,
            renew_at: begins_at + life * 2 / 3,
            fraction,
            identifier: Some("a.b".into()),
        }
    }

    fn seconds(wall: Wall) -> f64 {
        wall as f64 / 1000.0
    }

    #[test]
    fn it_is_in_the_part_of_the_window_that_the_certificate_says() {
        let certificate = certificate(NOW - 10 * DAY, 90 * DAY, 0.5);
        let mut suggestion = Suggestion::for_new(&certificate, NOW);
        assert_eq!(
            [0, 60].map(|passed| suggestion.is_due(&certificate, NOW + passed * SECOND)),
            [false, true]
        );
        let window = [NOW + 100 * SECOND, NOW + 200 * SECOND].map(seconds);
        suggestion.take(&certificate, Some([window[0], window[1], 7200.0]), NOW);
        assert_eq!(suggestion.at, Some(NOW + 150 * SECOND));
        assert_eq!(
            [7199, 7200].map(|passed| suggestion.is_due(&certificate, NOW + passed * SECOND)),
            [false, true]
        );
    }

    #[test]
    fn a_new_certificate_is_asked_about_an_hour_after_its_beginning() {
        let certificate = certificate(NOW, 90 * DAY, 0.0);
        let suggestion = Suggestion::for_new(&certificate, NOW);
        let due = [0, 3599, 3600].map(|passed| suggestion.is_due(&certificate, NOW + passed * SECOND));
        assert_eq!(due, [false, false, true]);
    }

    #[test]
    fn nothing_is_renewed_more_than_once_a_day_or_three_times_in_its_life() {
        for (life, pause) in [(90 * DAY, DAY), (6 * HOUR, 2 * HOUR)] {
            let certificate = certificate(NOW, life, 1.0);
            let mut suggestion = Suggestion::for_new(&certificate, NOW);
            suggestion.take(&certificate, Some([0.0; 3]), NOW);
            assert_eq!(suggestion.at, Some(NOW + pause));
            assert!(!suggestion.is_due(&certificate, NOW + HOUR - 1));
        }
    }

    #[test]
    fn windows_that_are_none_suggest_nothing() {
        let certificate = certificate(NOW, 90 * DAY, 0.5);
        let mut suggestion = Suggestion::for_new(&certificate, NOW);
        for window in [[200.0, 100.0], [4.6e18, 9.2e18], [f64::NAN, 1.0], [f64::INFINITY; 2]] {
            suggestion.take(&certificate, Some([window[0], window[1], 1.8e19]), NOW);
            assert_eq!(suggestion.at, None);
        }
        assert!(suggestion.is_due(&certificate, NOW + DAY));
    }

    #[test]
    fn an_authority_that_does_not_answer_is_asked_again_a_day_later() {
        let mut one = certificate(NOW, 90 * DAY, 0.0);
        let mut suggestion = Suggestion::for_new(&one, NOW);
        suggestion.take(&one, None, NOW);
        assert_eq!(
            [DAY - 1, DAY].map(|passed| suggestion.is_due(&one, NOW + passed)),
            [false, true]
        );
        suggestion.bound(NOW - 30 * DAY);
        assert!(suggestion.is_due(&one, NOW - 29 * DAY));
        one.identifier = None;
        assert!(!suggestion.is_due(&one, NOW + DAY));
    }
}
