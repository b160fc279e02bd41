//! [`Failure`]: one constant for each protocol violation of a peer, with its close code (RFC 6455 §7.4.1).

use std::fmt;

/// The reason to fail a connection (RFC 6455 §7.1.7): send a close frame with this code, then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The close code.
    pub code: u16,
    /// A description, for the close frame and for a log line.
    pub reason: &'static str,
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $reason:literal;)+) => {
        impl Failure {
            $($(#[$doc])* pub const $name: Failure = Failure { code: $code, reason: $reason };)+

            /// All failures, for tables and tests.
            pub const ALL: &'static [Failure] = &[$(Failure::$name),+];
        }
    };
}

failures! {
    /// RSV2 or RSV3, or RSV1 where no compressed message begins (RFC 6455 §5.2, RFC 7692 §6).
    RESERVED_BIT = 1002, "reserved bit set";
    /// An opcode from 3 to 7 or from 11 to 15 (RFC 6455 §5.2).
    RESERVED_OPCODE = 1002, "reserved opcode";
    /// A control frame without FIN (RFC 6455 §5.5).
    FRAGMENTED_CONTROL = 1002, "fragmented control frame";
    /// A control frame with more than 125 bytes (RFC 6455 §5.5).
    LONG_CONTROL = 1002, "control frame too long";
    /// A frame of a client without a mask (RFC 6455 §5.1).
    UNMASKED = 1002, "unmasked frame";
    /// A frame of a server with a mask (RFC 6455 §5.1).
    MASKED = 1002, "masked frame";
    /// A length that is encoded in more bytes than necessary (RFC 6455 §5.2).
    LENGTH_NOT_MINIMAL = 1002, "length not minimal";
    /// A length with its most significant bit set (RFC 6455 §5.2).
    LENGTH_OVERFLOW = 1002, "length overflow";
    /// A continuation frame without a message (RFC 6455 §5.4).
    UNEXPECTED_CONTINUATION = 1002, "unexpected continuation";
    /// A new message before a fragmented one has ended (RFC 6455 §5.4).
    INTERRUPTED_MESSAGE = 1002, "message within a message";
    /// A close frame with one byte: half of a code (RFC 6455 §5.5.1).
    SHORT_CLOSE = 1002, "half a close code";
    /// A close code that may not be sent (RFC 6455 §7.4).
    INVALID_CLOSE_CODE = 1002, "invalid close code";
    /// Text, or the reason of a close frame, that is not UTF-8 (RFC 6455 §8.1).
    INVALID_UTF8 = 1007, "invalid UTF-8";
    /// A compressed message that cannot be inflated (RFC 7692 §7.2.2).
    BROKEN_DEFLATE = 1007, "broken compressed data";
    /// More frames in one message than the limit.
    TOO_MANY_FRAGMENTS = 1008, "too many fragments";
    /// A message that exceeds the limit, as announced or when inflated.
    TOO_LARGE = 1009, "message too large";
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.reason)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::Failure;
    use crate::websocket::is_sendable_close_code;

    #[test]
    fn every_failure_fits_into_a_close_frame_and_has_its_own_reason() {
        let mut reasons: Vec<_> = Failure::ALL.iter().map(|failure| failure.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), Failure::ALL.len());
        for failure in Failure::ALL {
            assert!(is_sendable_close_code(failure.code) && failure.reason.len() <= 123);
            assert_eq!(failure.to_string(), failure.reason);
        }
    }
}
