//! A server with rustls and nothing else: what `bin/support/tlsfuzzer` compares Fairlead with. It answers every request
//! head with a short text and ends the connection.
//!
//!     cargo run --example bare_tls CERTIFICATE KEY [AUTHORITY]   prints its port; clients are asked for certificates of AUTHORITY

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key, authority @ ..] = &arguments[..] else {
        return Err("usage: bare_tls CERTIFICATE KEY [AUTHORITY]".into());
    };
    let config = Arc::new(config(certificate, key, authority.first())?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for socket in listener.incoming() {
        let (socket, config) = (socket?, Arc::clone(&config));
        std::thread::spawn(move || answer(socket, config));
    }
    Ok(())
}

/// The same choices as in `tls/mod.rs`: both versions, tickets, no sessions in memory.
fn config(certificate: &str, key: &str, authority: Option<&String>) -> Result<ServerConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for one in CertificateDer::pem_file_iter(path)? {
                roots.add(one?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
    };
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = rustls::crypto::ring::Ticketer::new()?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn answer(mut socket: TcpStream, config: Arc<ServerConfig>) -> Result<(), Box<dyn Error + Send + Sync>> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    let mut connection = ServerConnection::new(config)?;
    // An error has been told to the peer in an alert when it is known here.
    let _ = converse(&mut Stream::new(&mut connection, &mut socket));
    // Who closes a socket with something to be read in it resets the connection, and the peer may miss the last words.
    socket.shutdown(Shutdown::Write)?;
    std::io::copy(&mut socket, &mut std::io::sink())?;
    Ok(())
}

fn converse(stream: &mut Stream<'_, ServerConnection, TcpStream>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    // Some scripts end their lines without a carriage return.
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        head.extend_from_slice(&bytes[..length]);
    }
    stream.write_all(ANSWER)?;
    stream.conn.send_close_notify();
    stream.flush()
}
