//! When a burst of memory is over. An allocator keeps what was freed, as if the next burst were about to come; once a burst is
//! over, the memory is given back to the system.

/// A burst that took less is not worth the work.
pub(crate) const WORTHWHILE_BYTES: u64 = 16 * 1024 * 1024;

/// A burst is over when this part of it is left.
const LEFT_PART: u64 = 8;

/// Whether a burst that has reached `peak` bytes is over, with `left` bytes in use.
pub(crate) fn is_over(peak: u64, left: u64) -> bool {
    peak >= WORTHWHILE_BYTES && left <= peak / LEFT_PART
}
