//! Bytes with secrets.

use std::ops::Deref;
use zeroize::Zeroizing;

/// Bytes that are wiped when they are dropped, and never printed.
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> SecretBytes {
        SecretBytes(Zeroizing::new(bytes))
    }
}

impl From<Zeroizing<Vec<u8>>> for SecretBytes {
    fn from(bytes: Zeroizing<Vec<u8>>) -> SecretBytes {
        SecretBytes(bytes)
    }
}

impl Deref for SecretBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SecretBytes({} bytes)", self.0.len())
    }
}
