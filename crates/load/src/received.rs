//! Result of reading from a socket, with TLS or without.

use crate::limits::describe;
use rustix::io::Errno;

/// Result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Number of bytes received.
    Bytes(usize),
    /// The peer sends no more.
    End,
    /// The connection ended without close_notify: data may be missing (RFC 9112 §9.8).
    Cut,
    Nothing,
}

/// Why a connection ended or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    System(Errno),
    /// The peer closed it during the TLS handshake.
    Closed,
    /// TLS ended because of invalid bytes; why.
    Tls(String),
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Trouble {
        Trouble::System(error)
    }
}

impl Trouble {
    /// The reason in words.
    pub(crate) fn words(self) -> String {
        match self {
            Trouble::System(error) => format!("the handshake failed: {}", describe(error)),
            Trouble::Closed => "the server closed the connection during the handshake".into(),
            Trouble::Tls(why) => why,
        }
    }
}
