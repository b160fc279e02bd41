//! The records of a connection, in both directions.

use crate::header::{ALERT, DATA, HANDSHAKE};
use crate::messages::{Message, Messages, KEY_UPDATE};
use crate::open::{open, Contents};
use crate::seal::seal;
use crate::{Alert, Keys, Suite, Version, Violation, FRAGMENT_BYTES};
use std::io::IoSlice;

/// Levels of alerts.
const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// A warning without meaning, which TLS 1.3 has kept.
const USER_CANCELED: u8 = 90;

/// The keys of this direction must not protect another record, and have no successors (TLS 1.2). The peer gets close_notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// See the head of this file.
#[derive(Debug)]
pub struct Records {
    pub(crate) version: Version,
    pub(crate) sending: Keys,
    pub(crate) receiving: Keys,
    pub(crate) messages: Messages,
    pub(crate) patience: Patience,
    /// Records for the peer.
    pub(crate) unsent: Vec<u8>,
    /// Bytes at the beginning of `unsent` that have been sent.
    pub(crate) sent: usize,
    /// Received data for which there was no space.
    pub(crate) held: Vec<u8>,
    /// Bytes at the beginning of `held` that have been taken.
    pub(crate) taken: usize,
    pub(crate) flags: Flags,
}

/// Messages without data that the peer may still send, as in rustls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Empty records, one after the other.
    pub(crate) empty: u8,
    /// Key updates without data between them.
    pub(crate) key_updates: u8,
    pub(crate) warnings: u8,
    pub(crate) renegotiations: u8,
}

impl Patience {
    const MOST: Patience = Patience {
        empty: 32,
        key_updates: 32,
        warnings: 4,
        renegotiations: 1,
    };
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// The peer was sent close_notify or a fatal alert: nothing follows.
    pub(crate) is_closed: bool,
    /// The peer has sent close_notify.
    pub(crate) is_closed_by_peer: bool,
    /// The unsent records have an answer to a key update. Another request needs no other answer (RFC 8446 §4.6.3).
    pub(crate) has_answer: bool,
}

/// Uses up one of the allowed messages.
fn spend(allowed: &mut u8, otherwise: Violation) -> Result<(), Violation> {
    *allowed = allowed.checked_sub(1).ok_or(otherwise)?;
    Ok(())
}

impl Records {
    /// Continues a connection after its handshake, at a boundary of records.
    pub fn new(version: Version, sending: Keys, receiving: Keys) -> Records {
        Records {
            version,
            sending,
            receiving,
            messages: Messages::default(),
            patience: Patience::MOST,
            unsent: Vec::new(),
            sent: 0,
            held: Vec::new(),
            taken: 0,
            flags: Flags::default(),
        }
    }

    /// Version of the protocol.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Cipher of the records.
    pub fn suite(&self) -> Suite {
        self.sending.suite()
    }
}

/// Sending.
impl Records {
    /// Encrypts data; returns its length. The records wait in [`Records::unsent`].
    ///
    /// # Errors
    /// If the connection is closed in this direction, or has to be closed now.
    pub fn write(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Exhausted> {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut offset = 0;
        while offset < length {
            self.prepare_keys()?;
            let part = (length - offset).min(FRAGMENT_BYTES);
            seal(
                self.version,
                &mut self.sending,
                DATA,
                pieces,
                offset,
                part,
                &mut self.unsent,
            );
            offset += part;
        }
        Ok(length)
    }

    /// Records for the peer.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent..]
    }

    /// Adds records that were made before. For a connection that continues here.
    pub fn add_unsent(&mut self, records: &[u8]) {
        self.unsent.extend_from_slice(records);
    }

    /// Notes that bytes of [`Records::unsent`] were sent.
    pub fn note_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.unsent.len() {
            (self.unsent, self.sent) = (Vec::new(), 0);
            self.flags.has_answer = false;
        }
    }

    /// Tells the peer that nothing follows.
    pub fn close(&mut self) {
        if !self.flags.is_closed {
            self.alert(WARNING, Alert::CloseNotify);
            self.flags.is_closed = true;
        }
    }

    /// Tells the peer of a violation. Nothing follows.
    pub fn refuse(&mut self, violation: Violation) {
        if let Some(alert) = violation.alert().filter(|_| !self.flags.is_closed) {
            self.alert(FATAL, alert);
        }
        self.flags.is_closed = true;
    }

    /// Takes new keys for sending, and asks the peer to do the same. Does nothing with TLS 1.2, or after the end.
    pub fn update_keys(&mut self) {
        if self.version == Version::Tls13 && !self.flags.is_closed {
            self.send_key_update(1);
        }
    }

    /// Takes new keys before the present ones have protected too many records. The update takes their last number.
    fn prepare_keys(&mut self) -> Result<(), Exhausted> {
        if self.flags.is_closed {
            return Err(Exhausted);
        }
        let (number, limit) = (self.sending.sequence(), self.sending.suite().confidentiality_limit());
        match self.version {
            Version::Tls13 if number > 0 && number + 1 >= limit => self.send_key_update(1),
            Version::Tls12 if number >= limit => {
                self.close();
                return Err(Exhausted);
            }
            _ => {}
        }
        Ok(())
    }

    fn send_key_update(&mut self, request: u8) {
        self.send(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, request]);
        self.sending.update();
    }

    fn alert(&mut self, level: u8, alert: Alert) {
        self.send(ALERT, &[level, alert as u8]);
    }

    fn send(&mut self, kind: u8, message: &[u8]) {
        let pieces = [IoSlice::new(message)];
        seal(
            self.version,
            &mut self.sending,
            kind,
            &pieces,
            0,
            message.len(),
            &mut self.unsent,
        );
    }
}

/// Receiving.
impl Records {
    /// Decrypts a whole record, which [`frame`](crate::frame) has found. Moves its data to `space`, and keeps the rest;
    /// returns the number of bytes moved. There may be new [`Records::unsent`].
    ///
    /// # Errors
    /// If the peer has violated the protocol, or sent a fatal alert. Its own alert is in [`Records::unsent`].
    pub fn receive(&mut self, record: &mut [u8], space: &mut [u8]) -> Result<usize, Violation> {
        let received = self.take(record, space);
        if let Err(violation) = received {
            self.refuse(violation);
        }
        received
    }

    /// Moves kept data to `space`; returns the number of bytes.
    pub fn take_held(&mut self, space: &mut [u8]) -> usize {
        let count = space.len().min(self.held.len() - self.taken);
        space[..count].copy_from_slice(&self.held[self.taken..][..count]);
        self.taken += count;
        if self.taken == self.held.len() {
            (self.held, self.taken) = (Vec::new(), 0);
        }
        count
    }

    /// Adds received data. For a connection that continues here.
    pub fn add_held(&mut self, data: &[u8]) {
        self.held.extend_from_slice(data);
    }

    /// True if the peer has sent close_notify.
    pub fn is_closed_by_peer(&self) -> bool {
        self.flags.is_closed_by_peer
    }

    /// True if there is received data to take.
    pub fn holds_data(&self) -> bool {
        self.taken < self.held.len()
    }

    /// True if the peer has sent close_notify, and all data before it was taken.
    pub fn has_ended(&self) -> bool {
        self.flags.is_closed_by_peer && !self.holds_data()
    }

    /// Repeats a record without data that another library has decrypted before this one continued the connection: it may
    /// be a part of a handshake message. The keys for receiving stand at this record.
    ///
    /// # Errors
    /// If it cannot be decrypted.
    pub fn repeat(&mut self, record: &mut [u8]) -> Result<(), Violation> {
        let Contents { kind, bytes } = open(self.version, &mut self.receiving, record)?;
        let mut bytes = if kind == HANDSHAKE { bytes } else { &[] };
        while !bytes.is_empty() {
            let (count, _) = self.messages.take(self.version, bytes)?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Notes that the peer has sent close_notify. For a connection that continues here.
    pub fn note_closed_by_peer(&mut self) {
        self.flags.is_closed_by_peer = true;
    }

    fn take(&mut self, record: &mut [u8], space: &mut [u8]) -> Result<usize, Violation> {
        if self.flags.is_closed_by_peer {
            // Anything after close_notify is ignored (RFC 8446 §6.1).
            return Ok(0);
        }
        if record[0] == crate::header::CHANGE_CIPHER_SPEC && self.messages.is_between_messages() {
            // It is never encrypted.
            return Err(match record.get(5..) {
                Some([1]) => Violation::ChangeCipherSpec,
                _ => Violation::MalformedChangeCipherSpec,
            });
        }
        let Contents { kind, bytes } = open(self.version, &mut self.receiving, record)?;
        self.take_contents(kind, bytes, space)
    }

    /// Takes the contents of a record.
    pub(crate) fn take_contents(&mut self, kind: u8, bytes: &[u8], space: &mut [u8]) -> Result<usize, Violation> {
        if kind != HANDSHAKE && !self.messages.is_between_messages() {
            return Err(Violation::Interleaved);
        }
        match bytes.is_empty() {
            true => spend(&mut self.patience.empty, Violation::TooManyEmpty)?,
            false => self.patience.empty = Patience::MOST.empty,
        }
        match kind {
            DATA => {
                self.patience.key_updates = Patience::MOST.key_updates;
                let count = if self.holds_data() {
                    0
                } else {
                    space.len().min(bytes.len())
                };
                space[..count].copy_from_slice(&bytes[..count]);
                self.held.extend_from_slice(&bytes[count..]);
                Ok(count)
            }
            HANDSHAKE => self.take_handshake(bytes).map(|()| 0),
            ALERT => match *bytes {
                [level, description] => self.take_alert(level, description).map(|()| 0),
                _ => Err(Violation::MalformedAlert),
            },
            crate::header::CHANGE_CIPHER_SPEC => Err(Violation::ChangeCipherSpec),
            _ => Err(Violation::UnknownType),
        }
    }

    fn take_handshake(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while !bytes.is_empty() {
            let (count, message) = self.messages.take(self.version, bytes)?;
            bytes = &bytes[count..];
            match message {
                None => {}
                Some(Message::KeyUpdate { .. }) if !bytes.is_empty() => return Err(Violation::KeyUpdateNotLast),
                Some(Message::KeyUpdate { wants_answer }) => self.follow_key_update(wants_answer)?,
                Some(Message::Renegotiation) => {
                    spend(&mut self.patience.renegotiations, Violation::TooManyRenegotiations)?;
                    if !self.flags.is_closed {
                        self.alert(WARNING, Alert::NoRenegotiation);
                    }
                }
            }
        }
        Ok(())
    }

    fn follow_key_update(&mut self, wants_answer: bool) -> Result<(), Violation> {
        spend(&mut self.patience.key_updates, Violation::TooManyKeyUpdates)?;
        if wants_answer && !self.flags.has_answer && !self.flags.is_closed {
            self.send_key_update(0);
            self.flags.has_answer = true;
        }
        self.receiving.update();
        Ok(())
    }

    fn take_alert(&mut self, level: u8, description: u8) -> Result<(), Violation> {
        match (level, description) {
            (WARNING | FATAL, 0) => self.flags.is_closed_by_peer = true,
            (WARNING, _) => {
                spend(&mut self.patience.warnings, Violation::TooManyWarnings)?;
                if self.version == Version::Tls13 && description != USER_CANCELED {
                    return Err(Violation::Warning);
                }
            }
            (FATAL, _) => return Err(Violation::Alerted(description)),
            _ => return Err(Violation::UnknownAlertLevel),
        }
        Ok(())
    }
}
