//! TLS from the client's side: `settings` turns the command line into a shared configuration, `stream` is one
//! connection, `trouble` explains why a connection failed.

mod settings;
mod stream;
mod trouble;

pub(crate) use settings::Alpn;
pub(crate) use stream::{Agreement, Stream};

use crate::options::TlsOptions;
use crate::url::Url;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::ClientConfig;
use std::sync::Arc;

/// Limit for the sessions that a client remembers: as many as one server sends at a time.
const SESSIONS: usize = 8;

/// Configuration that the clients of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    resume: bool,
}

impl Tls {
    /// `None` if the URL does not ask for TLS.
    pub(crate) fn new(options: Option<&TlsOptions>, url: &Url, alpn: Alpn) -> Result<Option<Tls>, String> {
        let (Some(options), Some(host)) = (options, url.secure_host()) else {
            return Ok(None);
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host} is not a valid name for a certificate"))?;
        Ok(Some(Tls {
            config: Arc::new(settings::config(options, alpn)?),
            name,
            resume: options.resume,
        }))
    }

    /// Creates another client.
    pub(crate) fn client(&self) -> Client {
        let config = if self.resume {
            // Sessions belong to one client: a client that opens its first connection has none to resume.
            let mut own = ClientConfig::clone(&self.config);
            own.resumption = Resumption::in_memory_sessions(SESSIONS);
            Arc::new(own)
        } else {
            Arc::clone(&self.config)
        };
        Client {
            config,
            name: self.name.clone(),
        }
    }
}

/// A client, which opens one connection after the other.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Client {
    /// A new connection, before its handshake.
    pub(crate) fn stream(&self) -> Result<Stream, String> {
        Stream::new(Arc::clone(&self.config), self.name.clone())
    }
}
