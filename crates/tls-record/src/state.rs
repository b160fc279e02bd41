//! The state of a connection as bytes, for another process or another version of this program. They contain secrets.

use crate::format::{fields, Writer};
use crate::keys::Material;
use crate::messages::Messages;
use crate::records::{Flags, Patience};
use crate::secret::IV_LENGTH;
use crate::{Keys, Records, SecretBytes, Suite, TrafficSecret, Version};
use zeroize::Zeroizing;

/// Tags of the fields. A tag never gets another meaning.
mod tag {
    pub(super) const VERSION: u8 = 1;
    pub(super) const SUITE: u8 = 2;
    pub(super) const SENDING: u8 = 3;
    pub(super) const RECEIVING: u8 = 4;
    pub(super) const INPUT: u8 = 5;
    pub(super) const UNSENT: u8 = 6;
    pub(super) const HELD: u8 = 7;
    pub(super) const MESSAGE: u8 = 8;
    pub(super) const PATIENCE: u8 = 9;
    pub(super) const FLAGS: u8 = 10;
    pub(super) const EXTRA: u8 = 11;
}

/// Bits of the flags.
const CLOSED: u8 = 1;
const CLOSED_BY_PEER: u8 = 2;
const HAS_ANSWER: u8 = 4;

/// The bytes are no state of a connection, or have an unknown format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A connection from another process.
#[derive(Debug)]
pub struct Imported {
    /// Its records.
    pub records: Records,
    /// Received bytes that are not decrypted yet.
    pub input: Vec<u8>,
    /// See [`Records::export`].
    pub extra: Vec<u8>,
}

impl Records {
    /// Returns the state of the connection. `input`: received bytes that are not decrypted yet. `extra`: facts that its
    /// user needs in the other process.
    ///
    /// No record may be encrypted here afterwards, unless nobody imports the state: two records with one number would
    /// show what they contain.
    #[must_use]
    pub fn export(&self, input: &[u8], extra: &[u8]) -> SecretBytes {
        let (sending, receiving) = (keys_to_bytes(&self.sending), keys_to_bytes(&self.receiving));
        let message = [&(self.messages.missing as u32).to_le_bytes()[..], &self.messages.start].concat();
        let Patience {
            empty,
            key_updates,
            warnings,
            renegotiations,
        } = self.patience;
        let flags = [
            (self.flags.is_closed, CLOSED),
            (self.flags.is_closed_by_peer, CLOSED_BY_PEER),
            (self.flags.has_answer, HAS_ANSWER),
        ];
        let flags = flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .fold(0, |all, (_, bit)| all | bit);
        let all: [(u8, &[u8]); 11] = [
            (tag::VERSION, &(self.version as u16).to_be_bytes()),
            (tag::SUITE, &[self.suite() as u8]),
            (tag::SENDING, &sending),
            (tag::RECEIVING, &receiving),
            (tag::INPUT, input),
            (tag::UNSENT, self.unsent()),
            (tag::HELD, &self.held[self.taken..]),
            (tag::MESSAGE, &message),
            (tag::PATIENCE, &[empty, key_updates, warnings, renegotiations]),
            (tag::FLAGS, &[flags]),
            (tag::EXTRA, extra),
        ];
        let length = all.iter().map(|(_, contents)| contents.len()).sum();
        let mut writer = Writer::new(length, all.len());
        for (tag, contents) in all {
            writer.field(tag, contents);
        }
        writer.finish()
    }

    /// Continues a connection of another process.
    ///
    /// # Errors
    /// If the format is unknown, or a field is missing, unknown or malformed.
    pub fn import(bytes: &[u8]) -> Result<Imported, Malformed> {
        read(bytes).ok_or(Malformed)
    }
}

fn read(bytes: &[u8]) -> Option<Imported> {
    let fields = fields(bytes)?;
    let known = tag::VERSION..=tag::EXTRA;
    let is_known = fields.iter().all(|(tag, _)| known.contains(tag));
    let find = |wanted| {
        let mut found = fields.iter().filter(|(tag, _)| *tag == wanted);
        let (_, contents) = found.next().filter(|_| is_known)?;
        found.next().is_none().then_some(*contents)
    };
    let version = Version::of(u16::from_be_bytes(find(tag::VERSION)?.try_into().ok()?))?;
    let [suite] = *find(tag::SUITE)? else { return None };
    let suite = Suite::of(suite)?;
    let sending = keys_of_bytes(version, suite, find(tag::SENDING)?)?;
    let receiving = keys_of_bytes(version, suite, find(tag::RECEIVING)?)?;
    let (missing, start) = find(tag::MESSAGE)?.split_first_chunk()?;
    let [empty, key_updates, warnings, renegotiations] = *find(tag::PATIENCE)? else {
        return None;
    };
    let [flags] = *find(tag::FLAGS)? else { return None };
    let mut records = Records::new(version, sending, receiving);
    records.messages = Messages {
        start: start.to_vec(),
        missing: u32::from_le_bytes(*missing) as usize,
    };
    records.patience = Patience {
        empty,
        key_updates,
        warnings,
        renegotiations,
    };
    records.flags = Flags {
        is_closed: flags & CLOSED != 0,
        is_closed_by_peer: flags & CLOSED_BY_PEER != 0,
        has_answer: flags & HAS_ANSWER != 0,
    };
    records.unsent = find(tag::UNSENT)?.to_vec();
    records.held = find(tag::HELD)?.to_vec();
    Some(Imported {
        records,
        input: find(tag::INPUT)?.to_vec(),
        extra: find(tag::EXTRA)?.to_vec(),
    })
}

/// The sequence number, and the secret (TLS 1.3), or the initialization vector and the key.
fn keys_to_bytes(keys: &Keys) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 + 64));
    bytes.extend_from_slice(&keys.sequence().to_be_bytes());
    match keys.material() {
        Material::Secret(secret) => bytes.extend_from_slice(secret.as_bytes()),
        Material::Key(key) => {
            bytes.extend_from_slice(keys.iv());
            bytes.extend_from_slice(&key[..keys.suite().key_length()]);
        }
    }
    bytes
}

fn keys_of_bytes(version: Version, suite: Suite, bytes: &[u8]) -> Option<Keys> {
    let (sequence, rest) = bytes.split_first_chunk()?;
    let sequence = u64::from_be_bytes(*sequence);
    match version {
        Version::Tls13 => Some(Keys::of_secret(TrafficSecret::new(suite, rest)?, sequence)),
        Version::Tls12 => {
            let (iv, key) = rest.split_at_checked(IV_LENGTH)?;
            Keys::of_key(suite, key, iv, sequence)
        }
    }
}
