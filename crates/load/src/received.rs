//! What reading from a socket gives, with TLS or without.

use crate::limits::describe;
use rustix::io::Errno;

/// What receiving gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes.
    Bytes(usize),
    /// The peer sends no more.
    End,
    /// The connection ended, and TLS has not said that it would: something may be missing (RFC 9112 §9.8).
    Cut,
    Nothing,
}

/// Why there is no more to be had of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    System(Errno),
    /// The peer closed it before TLS was agreed on.
    Closed,
    /// Bytes that mean the end of TLS; why.
    Tls(String),
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Trouble {
        Trouble::System(error)
    }
}

impl Trouble {
    /// For a person.
    pub(crate) fn words(self) -> String {
        match self {
            Trouble::System(error) => format!("the handshake failed: {}", describe(error)),
            Trouble::Closed => "the server closed the connection during the handshake".into(),
            Trouble::Tls(why) => why,
        }
    }
}
