//! Dates in fields (RFC 9110 §5.6.7), to and from seconds since 1970.

use httpdate::HttpDate;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 9999-12-31 23:59:59, the last second that can be formatted.
const LAST: u64 = 253_402_300_799;

/// The seconds since 1970 of a date in any of the three forms. `None` for anything else, a day that does not exist or
/// has a different day of the week, a leap second, and years before 1970.
///
/// In the form of RFC 850, which has two digits for the year, 70 is 1970 and 69 is 2069: no clock is read here.
pub fn parse_http_date(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    // `httpdate` would ignore white space around a date, and any byte before the time in the form of RFC 850.
    let apart = |zoned: &str| zoned.bytes().rev().nth("08:49:37".len()) == Some(b' ');
    if text.trim() != text || !text.strip_suffix(" GMT").is_none_or(apart) {
        return None;
    }
    let date: HttpDate = text.parse().ok()?;
    let since = SystemTime::from(date).duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// Appends the date of `seconds` since 1970 in the preferred form. Later dates become the last second of the year 9999.
pub fn format_http_date(seconds: u64, out: &mut Vec<u8>) {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)));
    // Writing to a vector cannot fail.
    let _ = write!(out, "{date}");
}
