//! A connection leaves this process, or comes from another one, with its keys and sequence numbers.

use super::leaving::{is_ready, records_of};
use super::protection::Protection;
use super::{Channel, Stage, TlsSocket};
use crate::sync::Mutex;
use crate::tls::{Session, Tls, TrafficSecrets};
use crate::transport::Socket;
use fairlead_system::memory_file;
use fairlead_tls_record::{Imported, Records, SecretBytes};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Number of the format of the session in an exported state.
const SESSION_FORMAT: u8 = 1;

impl TlsSocket {
    /// True if another process can continue the connection, now or soon.
    pub(super) fn can_leave(&self) -> bool {
        memory_file::KEEPS_SECRETS && self.session.get().is_some_and(|session| !session.is_http2)
    }

    /// See [`Transport::export`](crate::transport::Transport::export).
    pub(super) fn export_state(&self) -> Option<SecretBytes> {
        let session = self.session.get().filter(|_| self.can_leave())?;
        let mut channel = self.channel.lock();
        if channel.is_closed || self.check_ownership().is_err() {
            return None;
        }
        channel.leave_rustls()?;
        let Stage::Open(Protection::Records(records)) = &channel.stage else {
            return None;
        };
        let session = [&[SESSION_FORMAT][..], &session.to_bytes()].concat();
        let state = records.export(&channel.ahead, &session);
        self.is_exported.store(true, Relaxed);
        Some(state)
    }

    /// Continues the connection of another process on its socket. `None` if the state is malformed, or of an unknown
    /// format.
    pub(crate) fn continued(socket: Socket, tls: Arc<Tls>, state: &[u8]) -> Option<TlsSocket> {
        let Imported {
            records,
            input,
            extra: session,
        } = Records::import(state).ok()?;
        let (format, session) = session.split_first()?;
        let session = (*format == SESSION_FORMAT).then(|| Session::from_bytes(session))??;
        let mut protection = Protection::Records(Box::new(records));
        let transport = TlsSocket {
            socket,
            tls,
            session: OnceLock::from(Arc::new(session)),
            channel: Mutex::new(Channel {
                stage: Stage::Failed,
                ahead: input,
                secrets: TrafficSecrets::default(),
                is_closed: false,
            }),
            has_begun: AtomicBool::new(true),
            is_exported: AtomicBool::new(false),
            holds_received: AtomicBool::new(false),
            carried: AtomicU64::new(0),
        };
        let mut channel = transport.channel.lock();
        // Unsent bytes do not wait for the next ones.
        let _ = protection.flush(&mut transport.wire(false));
        transport.note_rest(&mut protection, &channel.ahead);
        channel.stage = Stage::Open(protection);
        drop(channel);
        Some(transport)
    }
}

impl Channel {
    /// Continues without rustls from now on. `None` if that is not possible.
    fn leave_rustls(&mut self) -> Option<()> {
        match &self.stage {
            Stage::Open(Protection::Records(_)) => return Some(()),
            Stage::Open(Protection::Rustls(connection, quiet)) if is_ready(connection, quiet) => {}
            _ => return None,
        }
        let Stage::Open(Protection::Rustls(connection, mut quiet)) = std::mem::replace(&mut self.stage, Stage::Failed)
        else {
            return None;
        };
        let records = records_of(connection, &self.secrets, &mut quiet)?;
        self.secrets = TrafficSecrets::default();
        self.stage = Stage::Open(Protection::Records(Box::new(records)));
        Some(())
    }
}
