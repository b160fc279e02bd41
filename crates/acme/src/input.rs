//! The order in the format of the server.

use serde::Deserialize;

/// The order: names, authority and limits.
#[derive(Deserialize)]
pub(crate) struct Input {
    pub(crate) task: Task,
    /// The address of the authority.
    pub(crate) directory: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) contact: Vec<String>,
    /// `http-01` or `tls-alpn-01`.
    pub(crate) challenge: String,
    pub(crate) external_account: Option<ExternalAccount>,
    /// The path of a file with the only trusted certificates; without it, the system's certificates are trusted.
    pub(crate) ca: Option<String>,
    pub(crate) account: Option<KnownAccount>,
    /// The request for the certificate, in DER.
    pub(crate) csr: Vec<u8>,
    /// The certificate that the new one replaces (RFC 9773 §4.1).
    pub(crate) replaces: Option<Identifier>,
    pub(crate) proxy: Option<Proxy>,
    /// The `user-agent` of this program.
    pub(crate) agent: String,
    /// The time limit for everything.
    pub(crate) seconds: u64,
}

/// The command of the server.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    /// Order a certificate.
    Order,
    /// Ask when the authority wants a certificate to be renewed.
    Renewal,
}

/// An account that exists elsewhere (RFC 8555 §7.3.4).
#[derive(Deserialize)]
pub(crate) struct ExternalAccount {
    pub(crate) kid: String,
    pub(crate) key: Vec<u8>,
}

/// The account that the server has stored.
#[derive(Deserialize)]
pub(crate) struct KnownAccount {
    /// Its key, as PKCS #8 in DER.
    pub(crate) key: Vec<u8>,
    /// Its address; missing if only the key is left.
    pub(crate) url: Option<String>,
    pub(crate) contact: Vec<String>,
}

/// The two parts of a certificate's name for ARI, in base64url.
#[derive(Clone, Deserialize)]
pub(crate) struct Identifier {
    pub(crate) authority: String,
    pub(crate) serial: String,
}

/// An HTTP proxy that can connect to any host.
#[derive(Clone, Deserialize)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of `Proxy-Authorization`.
    pub(crate) authorization: Option<String>,
}
