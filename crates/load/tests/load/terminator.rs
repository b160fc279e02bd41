//! TLS in front of the small servers: certificates that are made for a test, and one thread per connection that
//! forwards the decrypted data.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::event::{poll, PollFd, PollFlags};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) static BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
pub(crate) static ONLY_12: [&SupportedProtocolVersion; 1] = [&TLS12];
pub(crate) static ONLY_13: [&SupportedProtocolVersion; 1] = [&TLS13];

/// A certificate authority, and the folder with its certificates.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// TLS settings of a server.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) config: Arc<ServerConfig>,
    /// `true` if it sends close_notify before it closes a connection.
    pub(crate) polite: bool,
    /// Data that it sends together with the last part of its TLS 1.3 handshake.
    pub(crate) first: &'static [u8],
}

impl Authority {
    /// `name`: name of its folder, which it removes at the end.
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, format!("{name} of the tests"));
        let key = KeyPair::generate().expect("a key");
        let folder = std::env::temp_dir().join(format!("fairlead-load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("signed");
        std::fs::write(folder.join("ca.pem"), issuer.pem()).expect("writable");
        Authority { issuer, folder }
    }

    pub(crate) fn cacert(&self) -> String {
        self.path("ca.pem")
    }

    /// Writes a certificate and its key into separate files and into a common one: NAME.pem, NAME.key, NAME.both.
    pub(crate) fn certificate(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let (certificate_pem, key_pem) = (certificate.pem(), key.serialize_pem());
        for (suffix, content) in [
            ("pem", &certificate_pem),
            ("key", &key_pem),
            ("both", &format!("{key_pem}{certificate_pem}")),
        ] {
            std::fs::write(self.folder.join(format!("{name}.{suffix}")), content).expect("writable");
        }
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (certificate.der().clone(), key)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Settings of a server with a certificate for `name`. `clients`: clients need a certificate, too.
    pub(crate) fn terms(&self, name: &str, versions: &[&'static SupportedProtocolVersion], clients: bool) -> Terms {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions that there are");
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).expect("a certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("roots"))
        } else {
            builder.with_no_client_auth()
        };
        let (certificate, key) = self.certificate(name);
        let mut config = builder.with_single_cert(vec![certificate], key).expect("a pair");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ticketer = rustls::crypto::ring::Ticketer::new().expect("random numbers");
        Terms {
            config: Arc::new(config),
            polite: true,
            first: b"",
        }
    }

    /// The same for a server that speaks these protocols, in order of preference.
    pub(crate) fn terms_with(
        &self,
        name: &str,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Terms {
        let mut terms = self.terms(name, versions, false);
        let mut config = ServerConfig::clone(&terms.config);
        config.send_half_rtt_data = true;
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        terms.config = Arc::new(config);
        terms
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The plain side of an accepted connection; a thread forwards data until both sides are closed.
pub(crate) fn terminate(stream: TcpStream, terms: Terms) -> io::Result<UnixStream> {
    let (plain, inner) = UnixStream::pair()?;
    let mut tls = ServerConnection::new(Arc::clone(&terms.config)).map_err(io::Error::other)?;
    tls.writer().write_all(terms.first)?;
    stream.set_nonblocking(true)?;
    inner.set_nonblocking(true)?;
    let mut relay = Relay {
        stream,
        inner,
        tls,
        received: Vec::new(),
    };
    std::thread::spawn(move || {
        // After any failure, tells the client the reason if TLS has an alert for it.
        let _ = relay.run(terms.polite);
        let _ = relay.tls.write_tls(&mut relay.stream);
        let _ = relay.stream.shutdown(Shutdown::Write);
    });
    Ok(plain)
}

struct Relay {
    stream: TcpStream,
    inner: UnixStream,
    tls: ServerConnection,
    /// Plain bytes that have not been forwarded yet.
    received: Vec<u8>,
}

impl Relay {
    /// Forwards until the server has closed its side, or the client or TLS has ended the connection.
    fn run(&mut self, polite: bool) -> io::Result<()> {
        loop {
            self.wait()?;
            match self.tls.read_tls(&mut self.stream) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            self.tls.process_new_packets().map_err(io::Error::other)?;
            self.take_plain()?;
            while !self.received.is_empty() {
                match self.inner.write(&self.received) {
                    Ok(written) => drop(self.received.drain(..written)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if !self.tls.wants_write() && !self.tls.is_handshaking() && self.give_plain()? {
                if polite {
                    self.tls.send_close_notify();
                }
                return Ok(());
            }
            while self.tls.wants_write() {
                match self.tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let (mut outside, mut inside) = (PollFlags::IN, PollFlags::empty());
        if self.tls.wants_write() {
            outside |= PollFlags::OUT;
        } else if !self.tls.is_handshaking() {
            inside |= PollFlags::IN;
        }
        if !self.received.is_empty() {
            inside |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(&self.stream, outside), PollFd::new(&self.inner, inside)];
        poll(&mut fds, None)?;
        Ok(())
    }

    fn take_plain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.tls.reader().read(&mut buffer) {
                Ok(0) => return self.inner.shutdown(Shutdown::Write),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns `true` if the server has closed its side.
    fn give_plain(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match self.inner.read(&mut buffer) {
            Ok(0) => Ok(true),
            Ok(length) => self.tls.writer().write_all(&buffer[..length]).map(|()| false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}
