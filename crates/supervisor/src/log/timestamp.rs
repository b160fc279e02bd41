//! Times in a format for programs.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

/// A time in UTC, to the millisecond (RFC 3339): "2024-02-29T12:34:56.789Z".
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / SECONDS_OF_A_DAY, since.as_secs() % SECONDS_OF_A_DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Year, month and day of a number of days since 1970 (<https://howardhinnant.github.io/date_algorithms.html#civil_from_days>).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) = match month_from_march {
        0..10 => (month_from_march + 3, 0),
        _ => (month_from_march - 9, 1),
    };
    (400 * era + year_of_era + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(milliseconds: u64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_millis(milliseconds))
    }

    #[test]
    fn a_time_has_milliseconds_and_is_in_utc() {
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
        assert_eq!(at(1_735_689_599_999), "2024-12-31T23:59:59.999Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn dates_are_those_of_another_library() {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        for days in 0..80_000 {
            let (year, month, day) = date(days);
            let expected = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(days * SECONDS_OF_A_DAY));
            let month = months[month as usize - 1];
            assert_eq!(format!("{day:02} {month} {year}"), expected[5..16]);
        }
    }
}
