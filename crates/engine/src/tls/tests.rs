//! Handshakes in memory: our side with a rustls client.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    SignatureAlgorithm,
};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::Acceptor;
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, ConnectionCommon, Error, HandshakeKind, RootCertStore,
    ServerConnection, SideData,
};
use std::ops::DerefMut;
use std::time::Duration;

/// Issues certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

pub(super) fn authority() -> Authority {
    authority_of_name("Test authority")
}

fn authority_of_name(name: &str) -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
}

impl Authority {
    /// A certificate for these hosts.
    pub(super) fn server(&self, hosts: &[&str]) -> CertificateSettings {
        self.server_with(hosts, &rcgen::PKCS_ECDSA_P256_SHA256)
    }

    /// A certificate for these hosts, with such a key.
    pub(super) fn server_with(&self, hosts: &[&str], algorithm: &'static SignatureAlgorithm) -> CertificateSettings {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate_for(algorithm).unwrap();
        self.issue(CertificateParams::new(hosts).unwrap(), &key)
    }

    fn client(&self, change: impl FnOnce(&mut CertificateParams)) -> CertificateSettings {
        let mut params = CertificateParams::new([]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::OrganizationName, "Works, Inc.");
        params.serial_number = Some(SerialNumber::from(0xfe01u64));
        change(&mut params);
        self.issue(params, &KeyPair::generate().unwrap())
    }

    fn issue(&self, params: CertificateParams, key: &KeyPair) -> CertificateSettings {
        let certificate = params.signed_by(key, &self.0).unwrap();
        CertificateSettings {
            chain: Source::new("a.pem", certificate.pem()),
            key: Source::new("a.key", key.serialize_pem()),
            ocsp: None,
        }
    }

    pub(super) fn pem(&self) -> Source {
        Source::new("ca.pem", self.0.pem())
    }

    /// A list of revoked certificates, to be replaced after this many days.
    pub(super) fn revoke(&self, serials: &[u64], days: i64) -> Source {
        let now = SystemTime::now();
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: now.into(),
            reason_code: None,
            invalidity_date: None,
        };
        let day = Duration::from_secs(24 * 3600);
        let next = if days < 0 { now - day } else { now + day };
        let params = CertificateRevocationListParams {
            this_update: (now - 2 * day).into(),
            next_update: next.into(),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Source::new("ca.crl", params.signed_by(&self.0).unwrap().pem().unwrap())
    }

    fn settings(&self, client_authentication: ClientAuthentication) -> TlsSettings {
        TlsSettings {
            certificates: vec![self.server(&["localhost"])],
            client_authentication,
            client_authorities: Some(self.pem()),
            ..TlsSettings::default()
        }
    }

    /// A client that trusts this authority.
    fn client_config(&self, version: Version, own: Option<&CertificateSettings>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            Some(own) => builder
                .with_client_auth_cert(
                    CertificateDer::pem_slice_iter(&own.chain.bytes)
                        .collect::<Result<_, _>>()
                        .unwrap(),
                    PrivateKeyDer::from_pem_slice(&own.key.bytes).unwrap(),
                )
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(8);
        Arc::new(config)
    }
}

type Version = &'static SupportedProtocolVersion;
const VERSIONS: [Version; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// Both sides of a handshake: our connection and the client's, or their errors.
fn shake_hands(
    tls: &Tls,
    config: &Arc<ClientConfig>,
) -> (Result<ServerConnection, Error>, Result<ClientConnection, Error>) {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut server = match accept(tls, &mut client) {
        Ok(server) => server,
        Err(error) => return (Err(error), Ok(client)),
    };
    let (mut ours, mut theirs) = (Ok(()), Ok(()));
    for _ in 0..8 {
        theirs = theirs.and(transmit(&mut server, &mut client));
        ours = ours.and(transmit(&mut client, &mut server));
    }
    (ours.map(|()| server), theirs.map(|()| client))
}

fn accept(tls: &Tls, client: &mut ClientConnection) -> Result<ServerConnection, Error> {
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        acceptor.read_tls(&mut sent.as_slice()).unwrap();
        if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error)? {
            break accepted;
        }
    };
    let config = tls.config_for(&accepted.client_hello());
    accepted.into_connection(config).map_err(|(error, _)| error)
}

/// Passes the output of one side to the other; returns the first error of the other.
fn transmit<A, B, C, D>(from: &mut A, to: &mut B) -> Result<(), Error>
where
    A: DerefMut<Target = ConnectionCommon<C>>,
    B: DerefMut<Target = ConnectionCommon<D>>,
    C: SideData,
    D: SideData,
{
    let mut sent = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut sent).unwrap();
    }
    let mut rest = sent.as_slice();
    let mut heard = Ok(());
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        heard = heard.and(to.process_new_packets().map(|_| ()));
    }
    heard
}

/// Both sides of a connection, or the first error.
fn connect(tls: &Tls, config: &Arc<ClientConfig>) -> Result<(ServerConnection, ClientConnection), Error> {
    let (server, client) = shake_hands(tls, config);
    let (server, client) = (server?, client?);
    assert!(!server.is_handshaking() && !client.is_handshaking());
    Ok((server, client))
}

/// The alert that the client receives for a handshake that fails on our side.
fn alert(tls: &Tls, config: &Arc<ClientConfig>) -> Option<AlertDescription> {
    match shake_hands(tls, config).1 {
        Err(Error::AlertReceived(alert)) => Some(alert),
        _ => None,
    }
}

#[test]
fn both_versions_are_offered_and_http11_is_what_is_spoken() {
    let authority = authority();
    let tls = Tls::new(&authority.settings(ClientAuthentication::None)).unwrap();
    assert_eq!(tls.warnings(), Vec::<String>::new());
    for version in VERSIONS {
        let (server, _) = connect(&tls, &authority.client_config(version, None)).unwrap();
        assert_eq!(server.protocol_version(), Some(version.version));
        assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[test]
fn an_old_version_can_be_left_out() {
    let authority = authority();
    let settings = TlsSettings {
        is_tls13_only: true,
        ..authority.settings(ClientAuthentication::None)
    };
    let tls = Tls::new(&settings).unwrap();
    assert!(connect(&tls, &authority.client_config(&rustls::version::TLS13, None)).is_ok());
    assert!(connect(&tls, &authority.client_config(&rustls::version::TLS12, None)).is_err());
}

#[test]
fn a_client_with_a_valid_certificate_is_known() {
    let authority = authority();
    let own = authority.client(|_| ());
    for mode in [ClientAuthentication::Optional, ClientAuthentication::Required] {
        let tls = Tls::new(&authority.settings(mode)).unwrap();
        for version in VERSIONS {
            let (server, _) = connect(&tls, &authority.client_config(version, Some(&own))).unwrap();
            let chain = server.peer_certificates().unwrap();
            let session = Session {
                client_chain: chain.iter().map(|one| one.to_vec()).collect(),
                ..Session::default()
            };
            let identity = session.details().identity.as_ref().unwrap();
            let pem = |text: &str| text.replace("\r\n", "\n");
            assert_eq!(pem(&identity.pem), pem(std::str::from_utf8(&own.chain.bytes).unwrap()));
            assert_eq!(identity.subject, "O=Works\\, Inc.,CN=rcgen self signed cert");
            assert_eq!(identity.issuer, "CN=Test authority");
            assert_eq!(identity.serial, "FE01");
            assert!(identity.chain.is_empty());
        }
    }
}

#[test]
fn a_client_without_a_certificate_gets_in_where_none_is_required() {
    let authority = authority();
    for version in VERSIONS {
        let config = authority.client_config(version, None);
        let optional = Tls::new(&authority.settings(ClientAuthentication::Optional)).unwrap();
        assert!(connect(&optional, &config).unwrap().0.peer_certificates().is_none());
        let required = Tls::new(&authority.settings(ClientAuthentication::Required)).unwrap();
        // rustls sends it in TLS 1.2 too, which has no such alert; OpenSSL understands it there.
        assert_eq!(alert(&required, &config), Some(AlertDescription::CertificateRequired));
    }
}

#[test]
fn a_client_with_a_wrong_certificate_hears_what_is_wrong() {
    let (ours, other) = (authority(), authority_of_name("Another authority"));
    let settings = TlsSettings {
        revocation_lists: Some(ours.revoke(&[0xbad], 1)),
        ..ours.settings(ClientAuthentication::Optional)
    };
    let tls = Tls::new(&settings).unwrap();
    let cases = [
        (ours.client(|_| ()), None),
        (other.client(|_| ()), Some(AlertDescription::UnknownCA)),
        (
            ours.client(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)),
            Some(AlertDescription::CertificateExpired),
        ),
        (
            ours.client(|params| params.serial_number = Some(SerialNumber::from(0xbadu64))),
            Some(AlertDescription::CertificateRevoked),
        ),
    ];
    for (own, expected) in cases {
        for version in VERSIONS {
            assert_eq!(
                alert(&tls, &ours.client_config(version, Some(&own))),
                expected,
                "{version:?}"
            );
        }
    }
}

#[test]
fn a_revocation_list_that_is_overdue_lets_nobody_in() {
    let authority = authority();
    let settings = TlsSettings {
        revocation_lists: Some(authority.revoke(&[], -1)),
        ..authority.settings(ClientAuthentication::Optional)
    };
    let tls = Tls::new(&settings).unwrap();
    assert!(tls.warnings()[0].contains("ca.crl: a revocation list should have been replaced"));
    let own = authority.client(|_| ());
    assert!(connect(&tls, &authority.client_config(&rustls::version::TLS13, Some(&own))).is_err());
}

#[test]
fn a_session_is_resumed_wherever_the_keys_are_the_same() {
    static SHARED: TicketKeys = TicketKeys::new();
    static OTHER: TicketKeys = TicketKeys::new();
    let authority = authority();
    let settings = authority.settings(ClientAuthentication::None);
    let worker = |keys| {
        let tls = Tls::new(&settings).unwrap();
        tls.share_keys(keys);
        tls
    };
    for version in VERSIONS {
        let config = authority.client_config(version, None);
        let kind = |tls: &Tls| connect(tls, &config).unwrap().0.handshake_kind();
        assert_eq!(kind(&worker(&SHARED)), Some(HandshakeKind::Full));
        assert_eq!(kind(&worker(&SHARED)), Some(HandshakeKind::Resumed));
        assert_eq!(kind(&worker(&OTHER)), Some(HandshakeKind::Full));
    }
}

#[test]
fn a_session_is_not_resumed_where_other_rules_hold() {
    let ours = authority();
    let own = ours.client(|_| ());
    let plain = Tls::new(&ours.settings(ClientAuthentication::None)).unwrap();
    let asking = Tls::new(&ours.settings(ClientAuthentication::Optional)).unwrap();
    let with_list = TlsSettings {
        revocation_lists: Some(ours.revoke(&[0xfe01], 1)),
        ..ours.settings(ClientAuthentication::Optional)
    };
    for version in VERSIONS {
        let config = ours.client_config(version, Some(&own));
        let (first, _) = connect(&plain, &config).unwrap();
        assert_eq!(first.handshake_kind(), Some(HandshakeKind::Full));
        let (second, _) = connect(&asking, &config).unwrap();
        assert_eq!(second.handshake_kind(), Some(HandshakeKind::Full));
        assert!(second.peer_certificates().is_some());
        let (third, _) = connect(&asking, &config).unwrap();
        assert_eq!(third.handshake_kind(), Some(HandshakeKind::Resumed));
        assert!(third.peer_certificates().is_some());
        // Revoked meanwhile.
        asking.replace(&with_list).unwrap();
        assert!(connect(&asking, &config).is_err());
        asking.replace(&ours.settings(ClientAuthentication::Optional)).unwrap();
    }
}

#[test]
fn a_certificate_that_has_expired_since_does_not_resume_a_session() {
    let authority = authority();
    let own = authority.client(|_| ());
    let tls = Tls::new(&authority.settings(ClientAuthentication::Required)).unwrap();
    for version in VERSIONS {
        let config = authority.client_config(version, Some(&own));
        let (first, _) = connect(&tls, &config).unwrap();
        let (second, _) = connect(&tls, &config).unwrap();
        assert_eq!(second.handshake_kind(), Some(HandshakeKind::Resumed));
        assert!(tls.check_resumed(&second).is_ok());
        let later = UnixTime::since_unix_epoch(Duration::from_secs(1 << 40));
        assert!(tls.check_resumed_at(&second, later).is_err());
        assert!(tls.check_resumed_at(&first, later).is_ok());
    }
}

#[test]
fn what_is_wrong_with_settings_is_said_in_a_sentence() {
    let authority = authority();
    let (one, two) = (authority.server(&["localhost"]), authority.server(&["localhost"]));
    let error = |certificate: CertificateSettings| {
        let settings = TlsSettings {
            certificates: vec![certificate],
            ..TlsSettings::default()
        };
        Tls::new(&settings).unwrap_err()
    };
    let mixed = CertificateSettings {
        key: two.key,
        ..one.clone()
    };
    assert_eq!(error(mixed), "the key a.key does not belong to the certificate a.pem");
    let swapped = CertificateSettings {
        chain: one.key.clone(),
        key: one.chain.clone(),
        ocsp: None,
    };
    assert_eq!(error(swapped), "a.key: it contains no certificate in PEM");
    let without_key = CertificateSettings {
        key: one.chain.clone(),
        ..one
    };
    assert_eq!(error(without_key), "a.pem: it contains no private key in PEM");
    assert_eq!(
        Tls::new(&TlsSettings::default()).unwrap_err(),
        "there is no certificate"
    );
}

#[test]
fn a_broken_replacement_leaves_what_was_offered() {
    let authority = authority();
    let tls = Tls::new(&authority.settings(ClientAuthentication::None)).unwrap();
    assert!(tls.replace(&TlsSettings::default()).is_err());
    assert!(connect(&tls, &authority.client_config(&rustls::version::TLS13, None)).is_ok());
}

#[test]
fn a_certificate_that_has_expired_is_a_warning() {
    let authority = authority();
    let mut params = CertificateParams::new(["localhost".to_string()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let settings = TlsSettings {
        certificates: vec![authority.issue(params, &KeyPair::generate().unwrap())],
        ..TlsSettings::default()
    };
    let warnings = Tls::new(&settings).unwrap().warnings();
    assert_eq!(warnings, ["a.pem: the certificate has expired (2020-01-01T00:00:00Z)"]);
}

#[test]
fn as_long_as_the_first_certificate_is_expected_only_its_authority_gets_an_answer() {
    let authority = authority();
    let folder = tempfile::tempdir().expect("a folder");
    let settings = TlsSettings {
        acme_challenges: Some(folder.path().to_path_buf()),
        ..TlsSettings::default()
    };
    let tls = Tls::new(&settings).expect("settings");
    for version in VERSIONS {
        let client = authority.client_config(version, None);
        assert!(connect(&tls, &client).is_err());
        let mut asking = (*client).clone();
        asking.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
        assert!(connect(&tls, &asking.into()).is_err());
    }
    let certificate = authority.server(&["localhost"]);
    let answer = [certificate.key.bytes, certificate.chain.bytes].concat();
    std::fs::create_dir(folder.path().join("tls-alpn-01")).expect("a folder");
    std::fs::write(folder.path().join("tls-alpn-01/localhost.pem"), answer).expect("a file");
    for version in VERSIONS {
        let client = authority.client_config(version, None);
        let mut asking = (*client).clone();
        asking.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
        let (server, _) = connect(&tls, &asking.into()).expect("a handshake");
        assert_eq!(server.alpn_protocol(), Some(CHALLENGE_PROTOCOL));
        // A client that also offers another protocol is no authority.
        let mut both = (*client).clone();
        both.alpn_protocols.push(CHALLENGE_PROTOCOL.to_vec());
        assert!(connect(&tls, &both.into()).is_err());
    }
}
