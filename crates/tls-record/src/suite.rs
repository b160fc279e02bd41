//! Versions of TLS, and the ciphers that protect records.

use ring::aead::{Algorithm, AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305};
use ring::hkdf;

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 5246.
    Tls12 = 0x0303,
    /// RFC 8446.
    Tls13 = 0x0304,
}

/// Cipher of the records. With TLS 1.3 it also decides the hash of the key schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// AES-128-GCM, with SHA-256.
    Aes128Gcm = 1,
    /// AES-256-GCM, with SHA-384.
    Aes256Gcm = 2,
    /// ChaCha20-Poly1305, with SHA-256.
    Chacha20Poly1305 = 3,
}

impl Version {
    pub(crate) fn of(number: u16) -> Option<Version> {
        let all = [Version::Tls12, Version::Tls13];
        all.into_iter().find(|version| *version as u16 == number)
    }
}

impl Suite {
    pub(crate) fn of(number: u8) -> Option<Suite> {
        let all = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305];
        all.into_iter().find(|suite| *suite as u8 == number)
    }

    /// Length of its keys.
    pub fn key_length(self) -> usize {
        self.aead().key_len()
    }

    /// Length of its traffic secrets (TLS 1.3).
    pub fn secret_length(self) -> usize {
        self.hkdf().hmac_algorithm().digest_algorithm().output_len()
    }

    pub(crate) fn aead(self) -> &'static Algorithm {
        match self {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::Chacha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    pub(crate) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Suite::Aes256Gcm => hkdf::HKDF_SHA384,
            Suite::Aes128Gcm | Suite::Chacha20Poly1305 => hkdf::HKDF_SHA256,
        }
    }

    /// Most records to be encrypted with one key, as in rustls (draft-irtf-cfrg-aead-limits).
    pub(crate) fn confidentiality_limit(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => 1 << 24,
            Suite::Chacha20Poly1305 => u64::MAX - (1 << 16),
        }
    }

    /// Length of the part of the nonce that travels with a record of TLS 1.2.
    pub(crate) fn explicit_nonce_length(self, version: Version) -> usize {
        match (version, self) {
            (Version::Tls12, Suite::Aes128Gcm | Suite::Aes256Gcm) => 8,
            _ => 0,
        }
    }
}
