//! Reasons why sockets ended before the run did.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Connect,
    /// The TLS handshake failed, or TLS failed later.
    Tls,
    /// The response to the handshake had another status.
    Refused(u16),
    /// The response to the handshake was wrong; why.
    Handshake(&'static str),
    Read,
    Write,
    /// The handshake or an echo took too long.
    Timeout,
    /// A violation of the protocol; which one.
    Malformed(&'static str),
    /// A message that differs from the one sent.
    WrongEcho,
    /// The WebSocket was closed, with this code (RFC 6455 §7.4).
    Closed(u16),
    /// The event stream reached the end of its content.
    Ended,
}

/// The kinds, as keys in JSON and in words.
const KINDS: [(&str, &str); 10] = [
    ("connect", "could not connect"),
    ("tls", "TLS failed"),
    ("refused", "handshake refused"),
    ("handshake", "wrong response to the handshake"),
    ("read", "read failed"),
    ("write", "write failed"),
    ("timeout", "timed out"),
    ("malformed", "malformed"),
    ("wrong_echo", "wrong echo"),
    ("closed", "closed by the server"),
];

impl Ending {
    fn kind(self) -> usize {
        match self {
            Ending::Connect => 0,
            Ending::Tls => 1,
            Ending::Refused(_) => 2,
            Ending::Handshake(_) => 3,
            Ending::Read => 4,
            Ending::Write => 5,
            Ending::Timeout => 6,
            Ending::Malformed(_) => 7,
            Ending::WrongEcho => 8,
            Ending::Closed(_) | Ending::Ended => 9,
        }
    }
}

/// Number of ended sockets, by kind.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    kinds: [u64; KINDS.len()],
    /// Statuses of refused handshakes.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Codes of closed WebSockets; `None` for event streams.
    pub(crate) codes: BTreeMap<Option<u16>, u64>,
    /// Descriptions of errors.
    pub(crate) reasons: BTreeMap<String, u64>,
}

impl Endings {
    pub(crate) fn add(&mut self, ending: Ending) {
        self.kinds[ending.kind()] += 1;
        match ending {
            Ending::Refused(status) => *self.statuses.entry(status).or_default() += 1,
            Ending::Closed(code) => *self.codes.entry(Some(code)).or_default() += 1,
            Ending::Ended => *self.codes.entry(None).or_default() += 1,
            Ending::Handshake(reason) | Ending::Malformed(reason) => self.because(reason.to_owned()),
            Ending::Connect | Ending::Tls | Ending::Read | Ending::Write | Ending::Timeout | Ending::WrongEcho => {}
        }
    }

    /// Counts the reason for one of them.
    pub(crate) fn because(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// Key, words and number of every kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        KINDS
            .iter()
            .zip(self.kinds)
            .map(|(&(key, words), count)| (key, words, count))
    }
}
