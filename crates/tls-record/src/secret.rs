//! Traffic secrets of TLS 1.3: the key of a direction, and the next secret, follow from each of them (RFC 8446 §7).

use crate::Suite;
use ring::hkdf::{KeyType, Prk};
use zeroize::Zeroizing;

/// Longest secret: with SHA-384.
const LONGEST: usize = 48;

/// Longest key.
pub(crate) const LONGEST_KEY: usize = 32;

/// Length of an initialization vector.
pub(crate) const IV_LENGTH: usize = 12;

/// Secret of one direction, wiped when it is dropped.
#[derive(Clone)]
pub struct TrafficSecret {
    suite: Suite,
    bytes: Zeroizing<[u8; LONGEST]>,
}

/// A key in space for the longest one, and an initialization vector; wiped when dropped.
pub(crate) struct KeyAndIv {
    pub(crate) key: Zeroizing<[u8; LONGEST_KEY]>,
    pub(crate) iv: Zeroizing<[u8; IV_LENGTH]>,
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl TrafficSecret {
    /// `None` if the length does not fit the suite.
    pub fn new(suite: Suite, bytes: &[u8]) -> Option<TrafficSecret> {
        let mut secret = TrafficSecret {
            suite,
            bytes: Zeroizing::new([0; LONGEST]),
        };
        let length = suite.secret_length();
        (bytes.len() == length).then(|| secret.bytes[..length].copy_from_slice(bytes))?;
        Some(secret)
    }

    /// Finds the secret with this key and this initialization vector among `self` and the `most` secrets that follow it
    /// in key updates.
    pub fn find(self, key: &[u8], iv: &[u8], most: u32) -> Option<TrafficSecret> {
        let mut secret = self;
        for _ in 0..=most {
            let found = secret.key_and_iv();
            if found.key[..secret.suite.key_length()] == *key && *found.iv == *iv {
                return Some(secret);
            }
            secret = secret.next();
        }
        None
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.suite.secret_length()]
    }

    /// The secret after a key update.
    #[must_use]
    pub(crate) fn next(&self) -> TrafficSecret {
        let mut next = TrafficSecret {
            suite: self.suite,
            bytes: Zeroizing::new([0; LONGEST]),
        };
        self.expand(b"traffic upd", &mut next.bytes[..self.suite.secret_length()]);
        next
    }

    pub(crate) fn key_and_iv(&self) -> KeyAndIv {
        let mut found = KeyAndIv {
            key: Zeroizing::default(),
            iv: Zeroizing::default(),
        };
        self.expand(b"key", &mut found.key[..self.suite.key_length()]);
        self.expand(b"iv", &mut found.iv[..]);
        found
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
    fn expand(&self, label: &[u8], space: &mut [u8]) {
        const PREFIX: &[u8] = b"tls13 ";
        let length = (space.len() as u16).to_be_bytes();
        let label_length = [(PREFIX.len() + label.len()) as u8];
        let info: [&[u8]; 5] = [&length, &label_length, PREFIX, label, &[0]];
        let prk = Prk::new_less_safe(self.suite.hkdf(), self.as_bytes());
        let filled = prk.expand(&info, Length(space.len())).and_then(|okm| okm.fill(space));
        filled.expect("no key is as long as 255 hashes");
    }
}

impl std::fmt::Debug for TrafficSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TrafficSecret").finish_non_exhaustive()
    }
}
