//! Times as RFC 3339 writes them, in UTC.

use std::time::SystemTime;
use time::OffsetDateTime;

/// "2026-11-22T04:03:30Z"
pub(super) fn seconds(at: SystemTime) -> String {
    format!("{}Z", date_and_time(OffsetDateTime::from(at)))
}

/// "2026-11-22T04:03:30.576Z"
pub(super) fn milliseconds(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    format!("{}.{:03}Z", date_and_time(at), at.millisecond())
}

fn date_and_time(at: OffsetDateTime) -> String {
    let ((year, month, day), (hour, minute, second)) = (at.date().to_calendar_date(), at.time().as_hms());
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_time_is_written_in_utc_and_cut_to_its_precision() {
        let at = UNIX_EPOCH + Duration::new(1_795_320_210, 576_999_999);

        assert_eq!("2026-11-22T04:03:30Z", seconds(at));
        assert_eq!("2026-11-22T04:03:30.576Z", milliseconds(at));
    }

    #[test]
    fn a_leap_day_and_small_numbers_have_all_digits() {
        let at = UNIX_EPOCH + Duration::from_millis(1_709_164_801_007);

        assert_eq!("2024-02-29T00:00:01.007Z", milliseconds(at));
    }
}
