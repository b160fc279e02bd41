//! The keys and the sequence number of one direction.

use crate::secret::{KeyAndIv, IV_LENGTH, LONGEST_KEY};
use crate::{Suite, TrafficSecret};
use ring::aead::{LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// See the head of this file. The copies of secrets here are wiped when dropped; `ring` does not wipe its own form of a key.
pub struct Keys {
    suite: Suite,
    material: Material,
    iv: Zeroizing<[u8; IV_LENGTH]>,
    cipher: LessSafeKey,
    /// Number of the next record.
    sequence: u64,
}

/// Source of the keys.
pub(crate) enum Material {
    /// TLS 1.3.
    Secret(TrafficSecret),
    /// TLS 1.2.
    Key(Zeroizing<[u8; LONGEST_KEY]>),
}

impl Keys {
    /// Keys of TLS 1.3. `sequence`: number of the next record.
    pub fn of_secret(secret: TrafficSecret, sequence: u64) -> Keys {
        let KeyAndIv { key, iv } = secret.key_and_iv();
        let suite = secret.suite();
        Keys {
            suite,
            cipher: cipher(suite, &key),
            material: Material::Secret(secret),
            iv,
            sequence,
        }
    }

    /// Keys of TLS 1.2. `iv`: the fixed part of the nonce, and the start of its other part. `None` if a length does not
    /// fit the suite.
    pub fn of_key(suite: Suite, key: &[u8], iv: &[u8], sequence: u64) -> Option<Keys> {
        let mut space = Zeroizing::new([0; LONGEST_KEY]);
        (key.len() == suite.key_length()).then(|| space[..key.len()].copy_from_slice(key))?;
        Some(Keys {
            suite,
            cipher: cipher(suite, &space),
            material: Material::Key(space),
            iv: Zeroizing::new(iv.try_into().ok()?),
            sequence,
        })
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    pub(crate) fn material(&self) -> &Material {
        &self.material
    }

    pub(crate) fn iv(&self) -> &[u8; IV_LENGTH] {
        &self.iv
    }

    pub(crate) fn cipher(&self) -> &LessSafeKey {
        &self.cipher
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Counts a record.
    pub(crate) fn advance(&mut self) {
        self.sequence += 1;
    }

    /// The nonce of the next record (RFC 8446 §5.3). TLS 1.2 sends its last eight bytes if the suite is of AES.
    pub(crate) fn nonce(&self) -> Nonce {
        let mut nonce = *self.iv;
        let number = self.sequence.to_be_bytes();
        nonce[4..].iter_mut().zip(number).for_each(|(byte, part)| *byte ^= part);
        Nonce::assume_unique_for_key(nonce)
    }

    /// The nonce of a record that has brought a part of it.
    pub(crate) fn nonce_with(&self, explicit: &[u8]) -> Nonce {
        let mut nonce = *self.iv;
        nonce[4..].copy_from_slice(explicit);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Moves on to the next secret. Returns false with TLS 1.2, which has none.
    pub(crate) fn update(&mut self) -> bool {
        let Material::Secret(secret) = &self.material else {
            return false;
        };
        *self = Keys::of_secret(secret.next(), 0);
        true
    }
}

fn cipher(suite: Suite, key: &[u8; LONGEST_KEY]) -> LessSafeKey {
    let key = UnboundKey::new(suite.aead(), &key[..suite.key_length()]);
    LessSafeKey::new(key.expect("the key has the length of the suite"))
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("Keys");
        fields.field("suite", &self.suite).field("sequence", &self.sequence);
        fields.finish_non_exhaustive()
    }
}
