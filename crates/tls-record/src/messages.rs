//! Handshake messages after the handshake, which may be split over several records. A server receives key updates
//! (RFC 8446 §4.6.3), and with TLS 1.2 perhaps a request for another handshake, which is refused.

use crate::{Version, Violation};

/// Types of messages.
const CLIENT_HELLO: u8 = 1;
pub(crate) const KEY_UPDATE: u8 = 24;

/// Length of a header: type and length.
const HEADER: usize = 4;

/// Longest message, as in rustls.
const LONGEST: usize = 0xffff;

/// A complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The peer has new keys. `wants_answer`: it asks for new keys of ours.
    KeyUpdate { wants_answer: bool },
    /// The peer wants another handshake (TLS 1.2).
    Renegotiation,
}

/// The incomplete message at the end of the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    /// Its header, and the body of a key update.
    pub(crate) start: Vec<u8>,
    /// Bytes of its body that have not arrived, if the header has.
    pub(crate) missing: usize,
}

impl Messages {
    pub(crate) fn is_between_messages(&self) -> bool {
        self.start.is_empty()
    }

    /// Takes bytes of a record, up to the end of a message. Returns their number, and the message if it is complete.
    pub(crate) fn take(&mut self, version: Version, bytes: &[u8]) -> Result<(usize, Option<Message>), Violation> {
        let mut taken = 0;
        while taken < bytes.len() && self.start.len() < HEADER {
            self.start.push(bytes[taken]);
            taken += 1;
            self.check(version)?;
        }
        if self.start.len() < HEADER {
            return Ok((taken, None));
        }
        let part = &bytes[taken..][..self.missing.min(bytes.len() - taken)];
        if self.start[0] == KEY_UPDATE {
            self.start.extend_from_slice(part);
        }
        self.missing -= part.len();
        taken += part.len();
        match self.missing {
            0 => Ok((taken, Some(self.complete()?))),
            _ => Ok((taken, None)),
        }
    }

    /// Checks the header as far as it has arrived.
    fn check(&mut self, version: Version) -> Result<(), Violation> {
        match (version, self.start[0]) {
            (Version::Tls13, KEY_UPDATE) | (Version::Tls12, CLIENT_HELLO) => {}
            _ => return Err(Violation::UnexpectedHandshake),
        }
        let [kind, high, middle, low] = self.start[..] else {
            return Ok(());
        };
        self.missing = u32::from_be_bytes([0, high, middle, low]) as usize;
        match kind {
            KEY_UPDATE if self.missing != 1 => Err(Violation::MalformedKeyUpdate),
            _ if self.missing > LONGEST => Err(Violation::HandshakeTooLong),
            _ => Ok(()),
        }
    }

    fn complete(&mut self) -> Result<Message, Violation> {
        let start = std::mem::take(&mut self.start);
        match (start[0], start.get(HEADER)) {
            (KEY_UPDATE, Some(request @ 0..=1)) => Ok(Message::KeyUpdate {
                wants_answer: *request == 1,
            }),
            (KEY_UPDATE, _) => Err(Violation::UnknownKeyUpdate),
            _ => Ok(Message::Renegotiation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_arrive_byte_by_byte() {
        for (version, message, expected) in [
            (
                Version::Tls13,
                &[24, 0, 0, 1, 1][..],
                Message::KeyUpdate { wants_answer: true },
            ),
            (Version::Tls12, &[1, 0, 0, 3, 7, 7, 7], Message::Renegotiation),
        ] {
            let mut messages = Messages::default();
            let (last, start) = message.split_last().expect("bytes");
            for byte in start {
                assert_eq!(messages.take(version, &[*byte]), Ok((1, None)));
                assert!(!messages.is_between_messages());
            }
            assert_eq!(messages.take(version, &[*last, 9]), Ok((1, Some(expected))));
            assert!(messages.is_between_messages());
        }
    }

    #[test]
    fn unexpected_and_malformed_messages_are_refused_at_once() {
        for (version, bytes, violation) in [
            (Version::Tls13, &[1][..], Violation::UnexpectedHandshake),
            (Version::Tls13, &[4], Violation::UnexpectedHandshake),
            (Version::Tls12, &[0], Violation::UnexpectedHandshake),
            (Version::Tls12, &[24], Violation::UnexpectedHandshake),
            (Version::Tls12, &[1, 1, 0, 0], Violation::HandshakeTooLong),
            (Version::Tls13, &[24, 0, 0, 2], Violation::MalformedKeyUpdate),
            (Version::Tls13, &[24, 0, 0, 0], Violation::MalformedKeyUpdate),
            (Version::Tls13, &[24, 0, 0, 1, 2], Violation::UnknownKeyUpdate),
        ] {
            assert_eq!(Messages::default().take(version, bytes), Err(violation), "{bytes:?}");
        }
    }
}
