//! Keeps the first traffic secrets of a connection with TLS 1.3, which a key update in another process needs. rustls
//! exports only the keys that are derived from them, and tells the secrets to a [`KeyLog`].
//!
//! This one writes nothing anywhere: it passes the secrets to the thread that makes the handshake.

use fairlead_tls_record::Zeroizing;
use rustls::KeyLog;
use std::cell::RefCell;

/// Labels of the two secrets in a key log.
const OF_CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const OF_SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// Length of the longest secret (SHA-384).
const LONGEST: usize = 48;

thread_local! {
    /// Place for the secrets of the connection that this thread handles; `None` at other times.
    static PLACE: RefCell<Option<TrafficSecrets>> = const { RefCell::new(None) };
}

/// First traffic secrets of both sides, wiped when dropped; empty with TLS 1.2.
#[derive(Default)]
pub(crate) struct TrafficSecrets {
    client: Option<Box<Secret>>,
    server: Option<Box<Secret>>,
}

struct Secret {
    /// Space for the longest one.
    bytes: Zeroizing<[u8; LONGEST]>,
    length: usize,
}

impl Secret {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl TrafficSecrets {
    /// Runs `work`, which handles messages of a connection, and keeps the secrets that it brings.
    pub(crate) fn catch<R>(&mut self, work: impl FnOnce() -> R) -> R {
        PLACE.set(Some(std::mem::take(self)));
        let place = OccupiedPlace;
        let result = work();
        *self = PLACE.take().unwrap_or_default();
        drop(place);
        result
    }

    /// Secrets of the client and of the server.
    pub(crate) fn get(&self) -> Option<(&[u8], &[u8])> {
        Some((self.client.as_deref()?.as_bytes(), self.server.as_deref()?.as_bytes()))
    }
}

/// Empties the place, also after a panic.
struct OccupiedPlace;

impl Drop for OccupiedPlace {
    fn drop(&mut self) {
        PLACE.take();
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct SecretsToPlace;

impl KeyLog for SecretsToPlace {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        PLACE.with_borrow_mut(|place| {
            let Some(secrets) = place else { return };
            let length = secret.len().min(LONGEST);
            let bytes = Zeroizing::new([0; LONGEST]);
            let mut kept = Box::new(Secret { bytes, length });
            kept.bytes[..length].copy_from_slice(&secret[..length]);
            match label {
                OF_CLIENT => secrets.client = Some(kept),
                OF_SERVER => secrets.server = Some(kept),
                _ => {}
            }
        });
    }

    fn will_log(&self, label: &str) -> bool {
        label == OF_CLIENT || label == OF_SERVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_for_the_connection_that_is_handled() {
        let mut secrets = TrafficSecrets::default();
        SecretsToPlace.log(OF_CLIENT, &[], &[1; 32]);
        secrets.catch(|| SecretsToPlace.log(OF_CLIENT, &[], &[2; 32]));
        assert!(secrets.get().is_none(), "one is missing");
        secrets.catch(|| SecretsToPlace.log(OF_SERVER, &[], &[3; 48]));
        SecretsToPlace.log(OF_SERVER, &[], &[4; 48]);
        assert_eq!(secrets.get(), Some((&[2; 32][..], &[3; 48][..])));
    }

    #[test]
    fn only_these_secrets_are_asked_for() {
        for label in ["CLIENT_RANDOM", "EXPORTER_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET"] {
            assert!(!SecretsToPlace.will_log(label));
        }
    }

    #[test]
    fn a_panic_leaves_no_secret_behind() {
        let mut secrets = TrafficSecrets::default();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            secrets.catch(|| {
                SecretsToPlace.log(OF_CLIENT, &[], &[2; 32]);
                panic!("a test");
            });
        }));
        assert!(caught.is_err());
        assert!(PLACE.take().is_none());
    }
}
