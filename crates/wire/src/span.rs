//! [`Span`]: a part of a buffer by position, so that a parsed head borrows nothing and can be kept and reused.

/// A range of bytes in the buffer that was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Position of the first byte.
    pub start: u32,
    /// Position after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of this span; empty if `bytes` is too short, so that the span cannot come from it.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Number of bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns true if it has no bytes.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The span of `part`, a slice of a buffer that begins at address `base`. The caller must make sure that positions
    /// in that buffer fit in 32 bits.
    #[inline]
    pub(crate) fn within(base: usize, part: &[u8]) -> Span {
        let start = (part.as_ptr() as usize).wrapping_sub(base) as u32;
        Span {
            start,
            end: start + part.len() as u32,
        }
    }

    /// The part from `from` to `to`, both relative to this span.
    #[inline]
    pub(crate) fn part(self, from: usize, to: usize) -> Span {
        Span {
            start: self.start + from as u32,
            end: self.start + to as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn a_span_returns_its_bytes_or_nothing_if_the_buffer_is_too_short() {
        let span = Span { start: 2, end: 5 };
        assert_eq!(span.of(b"abcdef"), b"cde");
        assert_eq!(span.of(b"abcd"), b"");
        assert_eq!(span.len(), 3);
        assert!(Span::default().is_empty());
        assert_eq!(Span { start: 5, end: 2 }.of(b"abcdef"), b"");
        assert_eq!(Span { start: 5, end: 2 }.len(), 0);
    }

    #[test]
    fn parts_are_relative() {
        let bytes = b"GET /path?query HTTP/1.1";
        let target = Span::within(bytes.as_ptr() as usize, &bytes[4..15]);
        assert_eq!(target, Span { start: 4, end: 15 });
        assert_eq!(target.part(6, 11).of(bytes), b"query");
    }
}
