//! A server's certificate, and clients that trust it.

use super::{Client, Server, PATIENCE};
use fairlead_engine::{CertificateSettings, Source, Tls, TlsSettings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};

/// For `localhost` and 127.0.0.1, signed by itself.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The TLS settings of a server.
pub fn server() -> Arc<Tls> {
    let settings = TlsSettings {
        certificates: vec![CertificateSettings {
            chain: Source::new("the certificate", CERTIFICATE),
            key: Source::new("the key", KEY),
            ocsp: None,
        }],
        ..TlsSettings::default()
    };
    Arc::new(Tls::new(&settings).expect("a certificate"))
}

static CLIENT: LazyLock<Arc<ClientConfig>> =
    LazyLock::new(|| client(&[&rustls::version::TLS13, &rustls::version::TLS12]));

/// The settings of a client that supports `versions`.
pub fn client(versions: &[&'static rustls::SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots())
        .with_no_client_auth();
    Arc::new(config)
}

/// The authority of the certificate.
pub fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
    roots.add(certificate).expect("a certificate");
    roots
}

/// A connection to `address` that has not sent anything yet.
pub fn stream(address: SocketAddr, config: &Arc<ClientConfig>) -> TlsStream {
    let socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::clone(config), name).expect("a configuration");
    StreamOwned::new(connection, socket)
}

/// A client of `server`.
pub fn connect(server: &Server) -> Client<TlsStream> {
    Client::over(stream(server.address, &CLIENT))
}
