//! Session tickets (RFC 8446 §4.6.1, RFC 5077): data that a client sends to resume a session, encrypted by us.
//!
//! ```text
//!   name of the key (16) | nonce (12) | session, AES-256-GCM | tag (16)
//! ```
//!
//! The policy of the listener is authenticated with it: a session of a listener that asks for no certificate cannot be
//! decrypted by a listener that does.

use super::client_authentication::Policy;
use super::ticket_keys::{Key, TicketKeys, ROTATION};
use super::Source;
use crate::sync::RwLock;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::hkdf::{KeyType, Salt, HKDF_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;
use std::sync::Arc;

const NAME: usize = 16;

/// The keys of a process that shares none.
static OWN: TicketKeys = TicketKeys::new();

/// The location of the keys of a listener: other processes may share them.
#[derive(Debug)]
pub(super) struct KeyRing(RwLock<&'static TicketKeys>);

impl Default for KeyRing {
    fn default() -> KeyRing {
        KeyRing(RwLock::new(&OWN))
    }
}

impl KeyRing {
    pub(super) fn share(&self, keys: &'static TicketKeys) {
        *self.0.write() = keys;
    }

    fn keys(&self) -> &'static TicketKeys {
        *self.0.read()
    }
}

/// Makes and reads the tickets of a listener.
#[derive(Debug)]
pub(super) struct Ticketer {
    ring: Arc<KeyRing>,
    /// Keys that several machines share; if there are any, the ring is not used.
    given: Vec<Key>,
    policy: Policy,
    random: SystemRandom,
}

impl Ticketer {
    pub(super) fn new(ring: Arc<KeyRing>, given: &[Source], policy: Policy) -> Result<Ticketer, String> {
        Ok(Ticketer {
            ring,
            given: given.iter().map(read).collect::<Result<_, _>>()?,
            policy,
            random: SystemRandom::new(),
        })
    }

    fn current(&self) -> Option<Key> {
        self.given.first().cloned().or_else(|| self.ring.keys().current())
    }

    fn find(&self, name: &[u8]) -> Option<Key> {
        if self.given.is_empty() {
            return self.ring.keys().find(name);
        }
        self.given.iter().find(|key| key.name == name).cloned()
    }

    fn associated(&self, name: &[u8]) -> Aad<Vec<u8>> {
        Aad::from([name, &self.policy].concat())
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    /// The lifetime of a ticket; its key exists for at least as long. The operators replace keys from files.
    fn lifetime(&self) -> u32 {
        ROTATION as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.current()?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(plain);
        let (_, session) = ticket.split_at_mut(NAME + NONCE_LEN);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = cipher(&key)?
            .seal_in_place_separate_tag(nonce, self.associated(&key.name), session)
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.find(name)?;
        let mut session = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = cipher(&key)?
            .open_in_place(nonce, self.associated(name), &mut session)
            .ok()?
            .len();
        session.truncate(length);
        Some(session)
    }
}

fn cipher(key: &Key) -> Option<LessSafeKey> {
    Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key.secret).ok()?))
}

/// The number of bytes that are derived for a key.
struct SecretLength;

impl KeyType for SecretLength {
    fn len(&self) -> usize {
        AES_256_GCM.key_len()
    }
}

/// Reads a key as nginx has them in files: a name of 16 bytes, and 32 or 64 secret bytes.
fn read(source: &Source) -> Result<Key, String> {
    let Some((name, secret)) = source
        .bytes
        .split_first_chunk::<NAME>()
        .filter(|(_, rest)| matches!(rest.len(), 32 | 64))
    else {
        return Err(format!(
            "{}: a key of session tickets has 48 or 80 bytes, not {}",
            source.name,
            source.bytes.len()
        ));
    };
    let mut key = Key {
        name: *name,
        secret: [0; 32],
    };
    let derived = Salt::new(HKDF_SHA256, b"fairlead session tickets").extract(secret);
    derived
        .expand(&[name], SecretLength)
        .and_then(|okm| okm.fill(&mut key.secret))
        .map_err(|_| format!("{}: no key can be derived from it", source.name))?;
    Ok(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn ticketer(given: &[Source], policy: Policy) -> Ticketer {
        Ticketer::new(Arc::default(), given, policy).unwrap()
    }

    #[test]
    fn a_ticket_comes_back_as_what_it_was() {
        let one = ticketer(&[], [1; 32]);
        let ticket = one.encrypt(b"a session").unwrap();
        assert_eq!(one.decrypt(&ticket).unwrap(), b"a session");
        assert_ne!(one.encrypt(b"a session").unwrap(), ticket);
        assert_eq!(ticketer(&[], [1; 32]).decrypt(&ticket).unwrap(), b"a session");
    }

    #[test]
    fn a_ticket_is_nothing_to_a_listener_with_other_rules() {
        let ticket = ticketer(&[], [1; 32]).encrypt(b"a session").unwrap();
        assert_eq!(ticketer(&[], [2; 32]).decrypt(&ticket), None);
    }

    #[test]
    fn a_ticket_with_any_byte_changed_or_missing_is_nothing() {
        let one = ticketer(&[], [1; 32]);
        let ticket = one.encrypt(b"a session").unwrap();
        for index in 0..ticket.len() {
            let mut other = ticket.clone();
            other[index] ^= 1;
            assert_eq!(one.decrypt(&other), None, "byte {index}");
            assert_eq!(one.decrypt(&ticket[..index]), None, "{index} bytes");
        }
    }

    #[test]
    fn given_keys_are_shared_by_machines_and_the_first_one_encrypts() {
        let old = Source::new("old", vec![1; 48]);
        let new = Source::new("new", vec![2; 80]);
        let ticket = ticketer(std::slice::from_ref(&old), [0; 32])
            .encrypt(b"a session")
            .unwrap();
        let both = ticketer(&[new.clone(), old], [0; 32]);
        assert_eq!(both.decrypt(&ticket).unwrap(), b"a session");
        assert_eq!(both.encrypt(b"x").unwrap()[..16], [2; 16]);
        assert_eq!(ticketer(&[new], [0; 32]).decrypt(&ticket), None);
        let wrong = Ticketer::new(Arc::default(), &[Source::new("k", vec![0; 47])], [0; 32]).unwrap_err();
        assert_eq!(wrong, "k: a key of session tickets has 48 or 80 bytes, not 47");
    }
}
