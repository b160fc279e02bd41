//! Detects that a burst of memory use is over. The allocator keeps freed memory for the next burst; once a burst is
//! over, the memory is returned to the system.

/// Smallest burst that is worth the work in a process of any size.
pub(crate) const WORTHWHILE_BYTES: u64 = 16 * 1024 * 1024;

/// In a small process, a burst of this part (1/n) of its memory is worth the work, if it has `LEAST_BYTES`.
const WORTHWHILE_PART: u64 = 8;
const LEAST_BYTES: u64 = 1024 * 1024;

/// A burst is over when memory use has fallen to this fraction (1/n) of its peak.
const LEFT_PART: u64 = 8;

/// Smallest burst that is worth the work in a process that needs `memory` bytes without it.
pub(crate) fn worthwhile_bytes(memory: u64) -> u64 {
    (memory / WORTHWHILE_PART).clamp(LEAST_BYTES, WORTHWHILE_BYTES)
}

/// True if a burst with a peak of `peak` bytes is over, with `left` bytes in use. `worthwhile`: the smallest burst that is worth the work.
pub(crate) fn is_over(peak: u64, left: u64, worthwhile: u64) -> bool {
    peak >= worthwhile && left <= peak / LEFT_PART
}
