//! The handshake of a connection, step by step. rustls gets whole records only: it does not export a part of one, if
//! another process is to continue the connection.

use super::protection::Protection;
use super::quiet::QuietRecords;
use super::wire::errno;
use super::{Channel, Handshake, HandshakeError, Stage, TlsSocket};
use crate::tls::{Session, TrafficSecrets, CHALLENGE_PROTOCOL};
use crate::transport::poller::Interest;
use crate::transport::ByteStream;
use fairlead_tls_record::{frame, Frame};
use rustix::io::Errno;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::ServerConnection;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Most reads of the socket for a handshake in one turn.
const READS: usize = 16;

/// Bytes read at a time.
const READ_BYTES: usize = 4096;

/// A fatal alert (RFC 8446 §6.2): a handshake does not begin with the first message.
const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];

/// First byte of a handshake (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 22;

impl TlsSocket {
    /// See [`Transport::handshake`](crate::transport::Transport::handshake).
    pub(super) fn go_on_with_handshake(&self) -> Result<Handshake, HandshakeError> {
        let mut channel = self.channel.lock();
        if !self.has_begun.load(Relaxed) {
            match self.look_at_first_byte() {
                Ok(()) => {}
                Err(HandshakeError::Socket(Errno::AGAIN)) => return Ok(Handshake::AwaitsHello),
                Err(error) => {
                    channel.stage = Stage::Failed;
                    return Err(error);
                }
            }
        }
        let result = self.take_steps(&mut channel);
        if result.is_err() {
            channel.stage = Stage::Failed;
        }
        result
    }

    /// Checks that the peer's first byte looks like TLS.
    fn look_at_first_byte(&self) -> Result<(), HandshakeError> {
        match self.socket.peek()? {
            None => Err(HandshakeError::Gone),
            Some(HANDSHAKE_RECORD) => {
                self.has_begun.store(true, Relaxed);
                Ok(())
            }
            Some(b'A'..=b'Z') => Err(HandshakeError::PlainHttp),
            Some(_) => Err(HandshakeError::NoTls),
        }
    }

    fn take_steps(&self, channel: &mut Channel) -> Result<Handshake, HandshakeError> {
        if let Stage::Hello(acceptor) = &mut channel.stage {
            let heard = self.hear_hello(acceptor, &mut channel.ahead, &mut channel.secrets)?;
            let Some(connection) = heard else {
                return Ok(Handshake::AwaitsHello);
            };
            channel.stage = Stage::Open(Protection::Rustls(connection, QuietRecords::default()));
        }
        let Channel {
            stage: Stage::Open(protection),
            ahead,
            secrets,
            ..
        } = channel
        else {
            return Err(HandshakeError::Gone);
        };
        let handshake = self.shake_hands(protection, ahead, secrets)?;
        if handshake == Handshake::Done {
            self.finish(protection)?;
            self.note_rest(protection, ahead);
        }
        Ok(handshake)
    }

    fn hear_hello(
        &self,
        acceptor: &mut Acceptor,
        ahead: &mut Vec<u8>,
        secrets: &mut TrafficSecrets,
    ) -> Result<Option<Box<ServerConnection>>, HandshakeError> {
        let mut reads = 0;
        while let Some(record) = self.next_record(ahead, &mut reads)? {
            let mut rest = &record[..];
            while !rest.is_empty() {
                acceptor.read_tls(&mut rest).map_err(|error| errno(&error))?;
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => return secrets.catch(|| self.answer_hello(accepted)).map(Some),
                Ok(None) => {}
                Err((error, alert)) => return Err(self.refuse_hello(error, alert)),
            }
        }
        Ok(None)
    }

    fn answer_hello(&self, accepted: Accepted) -> Result<Box<ServerConnection>, HandshakeError> {
        let config = self.tls.config_for(&accepted.client_hello());
        match accepted.into_connection(config) {
            Ok(mut connection) => {
                connection.set_buffer_limit(None);
                Ok(Box::new(connection))
            }
            Err((error, alert)) => {
                let error = self.refuse_hello(error, alert);
                Err(match self.tls.has_certificate() {
                    true => error,
                    false => HandshakeError::NoCertificate,
                })
            }
        }
    }

    /// Tells the peer why there is no handshake. rustls has no alert as long as it knows nothing of the peer.
    fn refuse_hello(&self, error: rustls::Error, mut alert: AcceptedAlert) -> HandshakeError {
        let mut bytes = Vec::new();
        if alert.write_all(&mut bytes).is_err() || bytes.is_empty() {
            bytes = UNEXPECTED_MESSAGE.to_vec();
        }
        let _ = self.socket.send(&bytes, false);
        error.into()
    }

    fn shake_hands(
        &self,
        protection: &mut Protection,
        ahead: &mut Vec<u8>,
        secrets: &mut TrafficSecrets,
    ) -> Result<Handshake, HandshakeError> {
        let mut reads = 0;
        loop {
            match protection.flush(&mut self.wire(false)) {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Ok(Handshake::Waits(Interest::Write)),
                Err(error) => return Err(error.into()),
            }
            let Protection::Rustls(connection, _) = protection else {
                return Err(HandshakeError::Gone);
            };
            if !connection.is_handshaking() {
                self.tls.check_resumed(connection)?;
                return Ok(Handshake::Done);
            }
            let Some(record) = self.next_record(ahead, &mut reads)? else {
                return Ok(Handshake::Waits(Interest::Read));
            };
            if let Err(error) = secrets.catch(|| process(connection, &record)) {
                let _ = protection.flush(&mut self.wire(false));
                return Err(error);
            }
        }
    }

    /// Takes the next record from `ahead`, or from the socket; `None` if it is incomplete. `reads`: reads of the socket in
    /// this turn.
    fn next_record(&self, ahead: &mut Vec<u8>, reads: &mut usize) -> Result<Option<Vec<u8>>, HandshakeError> {
        loop {
            match frame(ahead) {
                Frame::Whole(length) => return Ok(Some(ahead.drain(..length).collect())),
                // rustls finds the error again, and has the alert for it.
                Frame::Broken(_) => return Ok(Some(std::mem::take(ahead))),
                Frame::Partial if *reads == READS => return Ok(None),
                Frame::Partial => *reads += 1,
            }
            let mut space = [0; READ_BYTES];
            match self.socket.receive(&mut space) {
                Ok(0) => return Err(HandshakeError::Gone),
                Ok(count) => ahead.extend_from_slice(&space[..count]),
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn finish(&self, protection: &mut Protection) -> Result<(), HandshakeError> {
        let Protection::Rustls(connection, _) = protection else {
            return Err(HandshakeError::Gone);
        };
        // The authority has checked the certificate, and nothing follows (RFC 8737 §3).
        if connection.alpn_protocol() == Some(CHALLENGE_PROTOCOL) {
            connection.send_close_notify();
            let _ = protection.flush(&mut self.wire(false));
            return Err(HandshakeError::Gone);
        }
        self.session.get_or_init(|| Arc::new(Session::of(connection)));
        Ok(())
    }
}

fn process(connection: &mut ServerConnection, mut record: &[u8]) -> Result<(), HandshakeError> {
    while !record.is_empty() {
        if connection.read_tls(&mut record).map_err(|error| errno(&error))? == 0 {
            break;
        }
        connection.process_new_packets()?;
    }
    Ok(())
}
