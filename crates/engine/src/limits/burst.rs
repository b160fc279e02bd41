//! Detects that a burst of memory use is over. The allocator keeps freed memory for the next burst; once a burst is
//! over, the memory is returned to the system.

/// Smallest burst that is worth the work.
pub(crate) const WORTHWHILE_BYTES: u64 = 16 * 1024 * 1024;

/// A burst is over when memory use has fallen to this fraction (1/n) of its peak.
const LEFT_PART: u64 = 8;

/// True if a burst with a peak of `peak` bytes is over, with `left` bytes in use.
pub(crate) fn is_over(peak: u64, left: u64) -> bool {
    peak >= WORTHWHILE_BYTES && left <= peak / LEFT_PART
}
