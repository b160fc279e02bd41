//! Takes a connection out of rustls after its handshake, so that another process can continue it.

use super::protection::take_plaintext;
use super::quiet::QuietRecords;
use crate::tls::TrafficSecrets;
use fairlead_tls_record::{Keys, Records, Suite, TrafficSecret, Version};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion, ServerConnection};
use std::io::Write;

/// Most key updates of the peer. A key is good for 2^24 records, so honest peers do a few in the life of a connection.
/// Each costs a few microseconds here, and a worker that ends may have thousands of connections.
const MOST_UPDATES: u32 = 64;

/// True if [`records_of`] can find the secrets of the connection.
pub(super) fn is_ready(connection: &ServerConnection, quiet: &QuietRecords) -> bool {
    !connection.is_handshaking() && quiet.is_complete() && quiet.count() <= MOST_UPDATES
}

/// Continues a connection without rustls. Its unsent bytes and received data come along. `None` if that fails: then the
/// connection is lost.
pub(super) fn records_of(
    mut connection: Box<ServerConnection>,
    secrets: &TrafficSecrets,
    quiet: &mut QuietRecords,
) -> Option<Records> {
    // rustls keeps its answer to a key update until something is written.
    let _ = connection.writer().write(&[]);
    let mut unsent = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut unsent).ok()?;
    }
    let mut data = vec![0; connection.process_new_packets().ok()?.plaintext_bytes_to_read()];
    take_plaintext(&mut connection, &mut data);
    let is_closed_by_peer = connection.process_new_packets().ok()?.peer_has_closed();
    let version = match connection.protocol_version()? {
        ProtocolVersion::TLSv1_3 => Version::Tls13,
        _ => Version::Tls12,
    };
    let extracted = connection.dangerous_extract_secrets().ok()?;
    let (sent, received) = (extracted.tx.0, extracted.rx.0);
    let repeated = quiet.last(received);
    let (of_client, of_server) = secrets.get().unzip();
    let sending = keys(version, of_server, &extracted.tx.1, sent)?;
    let receiving = keys(version, of_client, &extracted.rx.1, received - repeated.len() as u64)?;
    let mut records = Records::new(version, sending, receiving);
    for record in repeated {
        records.repeat(record).ok()?;
    }
    records.add_unsent(&unsent);
    records.add_held(&data);
    if is_closed_by_peer {
        records.note_closed_by_peer();
    }
    Some(records)
}

/// Keys of one direction, at a sequence number. `first`: the first traffic secret (TLS 1.3); key updates lead from it to
/// the secret of `exported`.
fn keys(version: Version, first: Option<&[u8]>, exported: &ConnectionTrafficSecrets, sequence: u64) -> Option<Keys> {
    let (suite, key, iv) = match exported {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Suite::Chacha20Poly1305, key, iv),
        _ => return None,
    };
    match version {
        Version::Tls12 => Keys::of_key(suite, key.as_ref(), iv.as_ref(), sequence),
        Version::Tls13 => {
            let first = TrafficSecret::new(suite, first?)?;
            // Our own updates answer updates of the peer, or follow 2^24 records.
            let secret = first.find(key.as_ref(), iv.as_ref(), 2 * MOST_UPDATES)?;
            Some(Keys::of_secret(secret, sequence))
        }
    }
}
