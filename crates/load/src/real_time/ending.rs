//! Why sockets ended before the run did.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Connect,
    /// There was no TLS to be had, or no more of it.
    Tls,
    /// The handshake was answered with another status.
    Refused(u16),
    /// The handshake was answered wrongly; how.
    Handshake(&'static str),
    Read,
    Write,
    /// The handshake, or an echo, did not come in time.
    Timeout,
    /// Bytes that are against the rules; which.
    Malformed(&'static str),
    /// Another message than the one that was sent.
    WrongEcho,
    /// A WebSocket, with its code (RFC 6455 §7.4).
    Closed(u16),
    /// An event stream, at the end of its content.
    Ended,
}

/// The kinds, as keys in JSON and in words.
const KINDS: [(&str, &str); 10] = [
    ("connect", "could not connect"),
    ("tls", "TLS failed"),
    ("refused", "handshake refused"),
    ("handshake", "handshake answered wrongly"),
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

/// How many sockets ended, by kind.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    kinds: [u64; KINDS.len()],
    /// Statuses of refusals.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Codes of closed WebSockets; `None` for event streams.
    pub(crate) codes: BTreeMap<Option<u16>, u64>,
    /// What was wrong with what.
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

    /// Why one of them did.
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
