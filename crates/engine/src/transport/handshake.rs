//! Results of a handshake.

use super::poller::Interest;
use crate::tls::reason;
use rustix::io::Errno;

/// State of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Done,
    /// The peer's first message is incomplete.
    AwaitsHello,
    /// It continues when the socket is readable, or writable.
    Waits(Interest),
}

/// Reason for a failed handshake.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The peer has gone.
    Gone,
    /// The peer speaks HTTP without TLS.
    PlainHttp,
    /// The peer does not speak TLS.
    NoTls,
    /// There is no certificate to show yet; the peer was told.
    NoCertificate,
    /// It has taken too much processor time.
    Costly,
    /// There are too many at a time, and this one gives way.
    Displaced,
    /// The peers do not agree, for this reason.
    Tls(String),
    Socket(Errno),
}

impl From<rustls::Error> for HandshakeError {
    fn from(error: rustls::Error) -> HandshakeError {
        HandshakeError::Tls(reason(&error))
    }
}

impl From<Errno> for HandshakeError {
    fn from(error: Errno) -> HandshakeError {
        HandshakeError::Socket(error)
    }
}
