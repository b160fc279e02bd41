//! A client of rustls, and the end of its server after the handshake.

use crate::{Keys, Records, Suite, TrafficSecret, Version};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, KeyLog, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

/// Every version with every cipher.
pub(super) const ALL: [(Version, Suite); 6] = [
    (Version::Tls12, Suite::Aes128Gcm),
    (Version::Tls12, Suite::Aes256Gcm),
    (Version::Tls12, Suite::Chacha20Poly1305),
    (Version::Tls13, Suite::Aes128Gcm),
    (Version::Tls13, Suite::Aes256Gcm),
    (Version::Tls13, Suite::Chacha20Poly1305),
];

#[derive(Debug, Default)]
struct Secrets(Mutex<HashMap<String, Vec<u8>>>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        self.0.lock().unwrap().insert(label.into(), secret.to_vec());
    }
}

/// Both ends after the handshake.
pub(super) struct Pair {
    pub(super) client: ClientConnection,
    pub(super) server: ServerConnection,
    secrets: Arc<Secrets>,
    version: Version,
}

impl Pair {
    pub(super) fn new(version: Version, suite: Suite) -> Pair {
        let secrets = Arc::<Secrets>::default();
        let (client, server) = configs(suite_of(version, suite), &secrets);
        let name = "localhost".try_into().unwrap();
        let mut pair = Pair {
            client: ClientConnection::new(client, name).unwrap(),
            server: ServerConnection::new(server).unwrap(),
            secrets,
            version,
        };
        while pair.client.is_handshaking() || pair.server.is_handshaking() || pair.server.wants_write() {
            pass(|out| pair.client.write_tls(out), |bytes| pair.server.read_tls(bytes));
            pair.server.process_new_packets().unwrap();
            pass(|out| pair.server.write_tls(out), |bytes| pair.client.read_tls(bytes));
            pair.client.process_new_packets().unwrap();
        }
        pair
    }

    /// The client, and the server without rustls.
    pub(super) fn without_rustls(self) -> (ClientConnection, Records) {
        let extracted = self.server.dangerous_extract_secrets().unwrap();
        let secrets = self.secrets.0.lock().unwrap();
        let keys = |label: &str, (number, exported)| keys(self.version, secrets.get(label), &exported, number);
        let sending = keys("SERVER_TRAFFIC_SECRET_0", extracted.tx);
        let receiving = keys("CLIENT_TRAFFIC_SECRET_0", extracted.rx);
        (self.client, Records::new(self.version, sending, receiving))
    }

    /// The server, and the keys of its client: for records that no client sends.
    pub(super) fn without_client(self) -> (ServerConnection, Keys, Keys) {
        let extracted = self.client.dangerous_extract_secrets().unwrap();
        let secrets = self.secrets.0.lock().unwrap();
        let keys = |label: &str, (number, exported)| keys(self.version, secrets.get(label), &exported, number);
        (
            self.server,
            keys("CLIENT_TRAFFIC_SECRET_0", extracted.tx),
            keys("SERVER_TRAFFIC_SECRET_0", extracted.rx),
        )
    }
}

fn configs(suite: SupportedCipherSuite, secrets: &Arc<Secrets>) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut provider = default_provider();
    provider.cipher_suites = vec![suite];
    let provider = Arc::new(provider);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.enable_secret_extraction = true;
    let server = ServerConfig::builder_with_provider(provider);
    let server = server.with_safe_default_protocol_versions().unwrap();
    let server = server.with_no_client_auth();
    let mut server = server.with_single_cert(vec![certificate], key).unwrap();
    server.enable_secret_extraction = true;
    server.key_log = Arc::clone(secrets) as Arc<dyn KeyLog>;
    (Arc::new(client), Arc::new(server))
}

fn suite_of(version: Version, suite: Suite) -> SupportedCipherSuite {
    match (version, suite) {
        (Version::Tls12, Suite::Aes128Gcm) => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        (Version::Tls12, Suite::Aes256Gcm) => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        (Version::Tls12, Suite::Chacha20Poly1305) => cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        (Version::Tls13, Suite::Aes128Gcm) => cipher_suite::TLS13_AES_128_GCM_SHA256,
        (Version::Tls13, Suite::Aes256Gcm) => cipher_suite::TLS13_AES_256_GCM_SHA384,
        (Version::Tls13, Suite::Chacha20Poly1305) => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

fn keys(version: Version, first: Option<&Vec<u8>>, exported: &ConnectionTrafficSecrets, number: u64) -> Keys {
    let (suite, key, iv) = match exported {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Suite::Chacha20Poly1305, key, iv),
        _ => panic!("an unknown cipher"),
    };
    match version {
        Version::Tls12 => Keys::of_key(suite, key.as_ref(), iv.as_ref(), number).unwrap(),
        Version::Tls13 => {
            let first = TrafficSecret::new(suite, first.unwrap()).unwrap();
            Keys::of_secret(first.find(key.as_ref(), iv.as_ref(), 0).unwrap(), number)
        }
    }
}

fn pass(
    mut from: impl FnMut(&mut dyn Write) -> std::io::Result<usize>,
    mut to: impl FnMut(&mut dyn Read) -> std::io::Result<usize>,
) {
    let mut bytes = Vec::new();
    while from(&mut bytes).unwrap() > 0 {}
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to(&mut rest).unwrap();
    }
}

/// All records that the client has made.
pub(super) fn records_of(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Data that the client reads in these records.
pub(super) fn read_by(client: &mut ClientConnection, mut records: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    while !records.is_empty() {
        client.read_tls(&mut records).unwrap();
        let state = client.process_new_packets().unwrap();
        let start = data.len();
        data.resize(start + state.plaintext_bytes_to_read(), 0);
        client.reader().read_exact(&mut data[start..]).unwrap();
    }
    data
}
