//! HTTP/2 (RFC 9113), except for the parts of the `h2` crate: the start of a connection, requests and responses in
//! terms of HTTP/1, the priority of a request, and limits on the frames of a peer.

mod allowances;
mod frames;
mod priority;
mod request;
mod response;

pub use allowances::Flood;
pub use frames::{frame_type, FrameHead, FrameMeter};
pub use priority::Priority;
pub use request::{write_head, RequestHead};
pub use response::{ResponseLines, MAX_RESPONSE_HEAD};

/// The first bytes of a client that uses HTTP/2 with prior knowledge, or by ALPN (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns true if `bytes`, the start of a connection, begin with the preface. `None`: too few bytes to decide. No
/// request of HTTP/1 begins like the preface.
pub fn begins_with_preface(bytes: &[u8]) -> Option<bool> {
    if bytes.len() >= PREFACE.len() {
        return Some(bytes.starts_with(PREFACE));
    }
    match PREFACE.starts_with(bytes) {
        true => None,
        false => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_told_from_requests_as_soon_as_possible() {
        for length in 0..PREFACE.len() {
            assert_eq!(begins_with_preface(&PREFACE[..length]), None, "{length}");
        }
        assert_eq!(begins_with_preface(PREFACE), Some(true));
        assert_eq!(begins_with_preface(&[&PREFACE[..], b"more"].concat()), Some(true));
        for other in [
            "G",
            "PO",
            "PRI /",
            "PRI * HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r.",
            "PROPFIND / HTTP/1.1",
        ] {
            assert_eq!(begins_with_preface(other.as_bytes()), Some(false), "{other}");
        }
    }
}
