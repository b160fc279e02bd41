//! Time: monotonic milliseconds and nanoseconds, and the `Date` of a response, formatted once a second.

use rustix::time::{clock_gettime, ClockId};
use std::time::{Duration, UNIX_EPOCH};

/// A deadline that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// Nanoseconds on the monotonic clock, which all processes of the machine share.
pub(crate) fn nanoseconds() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Processor time that all threads of this process have used, in nanoseconds.
pub(crate) fn processor_nanoseconds() -> u64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Milliseconds on the monotonic clock: the unit of every deadline.
pub(crate) fn milliseconds() -> u64 {
    nanoseconds() / 1_000_000
}

/// A duration as milliseconds, for deadlines.
pub(crate) fn as_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64
}

/// The value of a `Date` field (RFC 9110 §6.6.1) for now.
pub(crate) fn http_date() -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_seconds()))
}

/// The same, kept until the second changes. One for each thread.
#[derive(Default)]
pub(crate) struct DateCache {
    second: u64,
    text: String,
}

impl DateCache {
    pub(crate) fn text(&mut self) -> &[u8] {
        let now = unix_seconds();
        if now != self.second || self.text.is_empty() {
            self.second = now;
            self.text = http_date();
        }
        self.text.as_bytes()
    }
}
