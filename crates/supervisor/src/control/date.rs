//! Times in RFC 3339 format, and in a readable format, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
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

/// "2026-11-22T04:03:30.576Z", for milliseconds since 1970.
pub(crate) fn wall(milliseconds_since_1970: i64) -> String {
    milliseconds(time_of(milliseconds_since_1970))
}

/// "2026-11-22 04:03:30 UTC", for milliseconds since 1970.
pub(crate) fn words(milliseconds_since_1970: i64) -> String {
    let text = date_and_time(OffsetDateTime::from(time_of(milliseconds_since_1970)));
    format!("{} UTC", text.replace('T', " "))
}

/// Times are limited to the year 9999.
fn time_of(milliseconds_since_1970: i64) -> SystemTime {
    const LAST: u64 = 253_402_300_799_999;
    UNIX_EPOCH + Duration::from_millis(u64::try_from(milliseconds_since_1970).unwrap_or(0).min(LAST))
}

fn date_and_time(at: OffsetDateTime) -> String {
    let ((year, month, day), (hour, minute, second)) = (at.date().to_calendar_date(), at.time().as_hms());
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn milliseconds_since_1970_are_a_time_within_the_calendar() {
        assert_eq!("1970-01-01T00:00:00.000Z", wall(-1));
        assert_eq!("2026-11-22 04:03:30 UTC", words(1_795_320_210_576));
        assert_eq!("9999-12-31 23:59:59 UTC", words(i64::MAX));
    }
}
