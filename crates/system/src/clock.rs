//! The wall clock, in whole seconds.

use rustix::time::{clock_gettime, ClockId};

/// Linux: as of the last tick of the kernel, which takes no time to read.
#[cfg(native_linux)]
const CLOCK: ClockId = ClockId::RealtimeCoarse;
#[cfg(not(native_linux))]
const CLOCK: ClockId = ClockId::Realtime;

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    clock_gettime(CLOCK).tv_sec as u64
}
