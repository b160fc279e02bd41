//! The header of HAProxy's PROXY protocol: a proxy sends it first on a connection, to name its client. It is a line of
//! text (`v1.rs`) or a binary block (`v2.rs`).

mod checksum;
mod tlv;
mod v1;
mod v2;

use crate::Error;
use std::net::SocketAddr;

pub use tlv::ProxyTls;

/// Most bytes of a header of version 1 with its line end.
pub const PROXY_LINE_BYTES: usize = 107;

/// Most bytes of a header of version 2: room for a client certificate with many names. HAProxy can send no more than
/// its buffer holds, which has this size.
pub const PROXY_HEADER_BYTES: usize = 16 * 1024;

/// The versions with which a connection may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersions {
    /// Version 1 only.
    V1,
    /// Version 2 only.
    V2,
    /// Either version: they differ in their first byte.
    Any,
}

/// The PROXY header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader<'a> {
    /// Its length in bytes; another protocol follows.
    pub len: usize,
    /// The address of the client; `None` if the proxy does not report it (`UNKNOWN`, `UNSPEC`), if the client has none
    /// (a Unix socket), or if the proxy connects for itself (`LOCAL`).
    pub client: Option<SocketAddr>,
    /// The host that the client has requested, usually by SNI.
    pub authority: Option<&'a str>,
    /// TLS parameters between client and proxy, if the client has connected with TLS.
    pub tls: Option<ProxyTls<'a>>,
}

impl<'a> ProxyHeader<'a> {
    /// Parses the header at the start of `input`; `None` if it is not complete.
    ///
    /// # Errors
    /// As soon as the input cannot become a header of one of the versions. More input never changes the error.
    pub fn parse(input: &'a [u8], versions: ProxyVersions) -> Result<Option<ProxyHeader<'a>>, Error> {
        match (versions, input.first()) {
            (ProxyVersions::V1, _) | (ProxyVersions::Any, Some(b'P')) => v1::parse(input),
            (ProxyVersions::V2, _) | (ProxyVersions::Any, None | Some(b'\r')) => v2::parse(input),
            (ProxyVersions::Any, Some(_)) => Err(Error::InvalidProxyHeader),
        }
    }

    /// A header without information about the client.
    fn silent(len: usize) -> ProxyHeader<'a> {
        ProxyHeader {
            len,
            client: None,
            authority: None,
            tls: None,
        }
    }
}
