//! TLS: the offers of a server's listeners to their peers, and the result of a handshake. `transport/tls.rs` handles
//! the bytes.
//!
//! The offers follow Mozilla's intermediate profile: TLS 1.2 and 1.3, forward secrecy, only AEAD suites. rustls offers
//! nothing older.

mod certificates;
mod chain;
mod challenge;
mod client_authentication;
mod constraints;
mod der;
mod identity;
mod names;
mod points;
mod revocation;
mod session;
mod stapling;
mod ticket_keys;
mod tickets;
mod traffic_secrets;
mod verifier;
mod x509;

use crate::acme::Challenges;
use crate::sync::RwLock;
use certificates::Certificates;
use ring::digest::{Context, SHA256};
use rustls::pki_types::UnixTime;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tickets::{KeyRing, Ticketer};
use traffic_secrets::SecretsToPlace;

pub(crate) use challenge::PROTOCOL as CHALLENGE_PROTOCOL;
pub use identity::{Details, Identity};
pub use session::{Session, Verification};
use session::{HTTP1, HTTP2};
pub use ticket_keys::TicketKeys;
pub(crate) use traffic_secrets::TrafficSecrets;
pub(crate) use verifier::reason;

/// The offer of a listener to its peers.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// The first one is for peers that ask for no host, or for a host without a certificate. There may be none only as
    /// long as one is expected (`acme_challenges`): handshakes are refused until then.
    pub certificates: Vec<CertificateSettings>,
    /// Certificates that clients are asked for.
    pub client_authentication: ClientAuthentication,
    /// Authorities that may issue them, in PEM; with the name of the file.
    pub client_authorities: Option<Source>,
    /// Revocation lists for them: in PEM, or one in DER.
    pub revocation_lists: Option<Source>,
    /// TLS 1.2 is not offered.
    pub is_tls13_only: bool,
    /// HTTP/2 is offered (ALPN).
    pub http2: bool,
    /// Keys of session tickets that several machines share, each in 48 or 80 bytes: the first one encrypts. If there
    /// are none, the processes of the server share keys of their own.
    pub ticket_keys: Vec<Source>,
    /// Folder in which the certificates for challenges of certificate authorities appear (RFC 8737).
    pub acme_challenges: Option<PathBuf>,
}

/// A certificate of the server.
#[derive(Clone, Debug, Default)]
pub struct CertificateSettings {
    /// The chain in PEM, the server's own certificate first.
    pub chain: Source,
    /// Its key in PEM, not encrypted.
    pub key: Source,
    /// The authority's statement about it (OCSP), in DER.
    pub ocsp: Option<Source>,
}

/// The contents of a file, and its name in messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its path, or another name for people.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The certificates that clients are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// None.
    #[default]
    None,
    /// A client may have none; a certificate that is sent has to be valid.
    Optional,
    /// A client needs a valid one.
    Required,
}

/// A digest of the whole offer (SHA-256).
pub type Fingerprint = [u8; 32];

impl TlsSettings {
    /// Computes the same digest for the same settings, independent of their source.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut digest = Context::new(&SHA256);
        let count = |number: usize| (number as u64).to_le_bytes();
        let mut add = |source: Option<&Source>| {
            digest.update(&[u8::from(source.is_some())]);
            let bytes = source.map_or(&[][..], |source| &source.bytes);
            digest.update(&count(bytes.len()));
            digest.update(bytes);
        };
        for one in &self.certificates {
            add(Some(&one.chain));
            add(Some(&one.key));
            add(one.ocsp.as_ref());
        }
        add(self.client_authorities.as_ref());
        add(self.revocation_lists.as_ref());
        self.ticket_keys.iter().for_each(|key| add(Some(key)));
        let challenges = self.acme_challenges.as_ref();
        let challenges = challenges.map(|path| path.as_os_str().as_encoded_bytes());
        digest.update(challenges.unwrap_or_default());
        let client_authentication = self.client_authentication as u8;
        digest.update(&[
            client_authentication,
            u8::from(self.is_tls13_only),
            u8::from(self.http2),
        ]);
        digest.update(&count(self.certificates.len()));
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(digest.finish().as_ref());
        fingerprint
    }
}

impl Source {
    /// Bytes, and their name in messages.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Source {
        Source {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

/// The TLS of a listener. Its offer can be replaced while it is used.
#[derive(Debug)]
pub struct Tls {
    offer: RwLock<Offer>,
    keys: Arc<KeyRing>,
}

#[derive(Debug)]
struct Offer {
    config: Arc<ServerConfig>,
    /// Checks the certificates of clients, if they are asked for some.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    challenges: Option<Challenges>,
    has_certificate: bool,
    fingerprint: Fingerprint,
    warnings: Vec<String>,
}

impl Tls {
    /// Checks the settings.
    ///
    /// # Errors
    /// The problem with them, as a sentence.
    pub fn new(settings: &TlsSettings) -> Result<Tls, String> {
        let keys = Arc::new(KeyRing::default());
        Ok(Tls {
            offer: RwLock::new(offer(settings, &keys)?),
            keys,
        })
    }

    /// Replaces the offer for future connections. Returns true if anything is different.
    ///
    /// # Errors
    /// The problem with the settings, as a sentence; the previous ones stay.
    pub fn replace(&self, settings: &TlsSettings) -> Result<bool, String> {
        let offer = offer(settings, &self.keys)?;
        let former = std::mem::replace(&mut *self.offer.write(), offer);
        // A large revocation list takes long to free: not under the lock that each handshake takes.
        let is_different = former.fingerprint != settings.fingerprint();
        drop(former);
        Ok(is_different)
    }

    /// Identifies the settings that are in use: two processes with the same fingerprint offer the same.
    pub fn fingerprint(&self) -> Fingerprint {
        self.offer.read().fingerprint
    }

    /// Shares the keys of session tickets with other processes, so that any of them can resume a session.
    pub fn share_keys(&self, keys: &'static TicketKeys) {
        self.keys.share(keys);
    }

    /// Warnings about the settings for people: expired certificates, and the like.
    pub fn warnings(&self) -> Vec<String> {
        self.offer.read().warnings.clone()
    }

    /// Returns true if there is a certificate: the first one of `acme_challenges` may not have arrived yet.
    pub(crate) fn has_certificate(&self) -> bool {
        self.offer.read().has_certificate
    }

    /// The offer to the peer that has sent `hello`.
    pub(crate) fn config_for(&self, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        let offer = self.offer.read();
        let answer = offer.challenges.as_ref();
        let answer = answer.and_then(|challenges| challenge::config_for(challenges, hello));
        answer.unwrap_or_else(|| Arc::clone(&offer.config))
    }

    /// Checks the client's certificate again if the session was resumed, because it may have expired since, and no
    /// certificate is sent in a resumption.
    pub(crate) fn check_resumed(&self, connection: &ServerConnection) -> Result<(), rustls::Error> {
        self.check_resumed_at(connection, UnixTime::now())
    }

    fn check_resumed_at(&self, connection: &ServerConnection, now: UnixTime) -> Result<(), rustls::Error> {
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            return Ok(());
        }
        let verifier = self.offer.read().verifier.clone();
        match (verifier, connection.peer_certificates()) {
            (Some(verifier), Some([own, rest @ ..])) => verifier.verify_client_cert(own, rest, now).map(|_| ()),
            _ => Ok(()),
        }
    }
}

static FROM_TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
static FROM_TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

fn offer(settings: &TlsSettings, keys: &Arc<KeyRing>) -> Result<Offer, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let now = SystemTime::now();
    if settings.certificates.is_empty() && settings.acme_challenges.is_none() {
        return Err("there is no certificate".into());
    }
    let (certificates, mut warnings) = Certificates::load(&settings.certificates, &provider, now)?;
    let clients = client_authentication::load(settings, &provider, now)?;
    warnings.extend(clients.warnings);
    let versions = if settings.is_tls13_only { FROM_TLS13 } else { FROM_TLS12 };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let builder = match clients.verifier.clone() {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = protocols(settings);
    config.ticketer = Arc::new(Ticketer::new(Arc::clone(keys), &settings.ticket_keys, clients.policy)?);
    // Tickets suffice for all current clients; sessions in memory would be known to only one process.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    // For another process that continues a connection.
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(SecretsToPlace);
    Ok(Offer {
        config: Arc::new(config),
        verifier: clients.verifier,
        challenges: settings.acme_challenges.clone().map(Challenges::new),
        has_certificate: !settings.certificates.is_empty(),
        fingerprint: settings.fingerprint(),
        warnings,
    })
}

/// The protocols above TLS (RFC 7301), the best first.
fn protocols(settings: &TlsSettings) -> Vec<Vec<u8>> {
    let all = [HTTP2, HTTP1];
    let offered = all.into_iter().filter(|protocol| settings.http2 || *protocol != HTTP2);
    offered.map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
