//! TLS on one socket: turns plain bytes into records, and records into plain bytes.

use super::settings::Alpn;
use super::trouble;
use crate::received::{Received, Trouble};
use fairlead_system::sockets::NO_SIGNAL;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

/// Limit for the bytes taken from a socket at once. Their plain text, with the beginning of an earlier record, fits
/// into any read buffer.
const RECORDS_BYTES: usize = 32 * 1024;

thread_local! {
    /// Buffer for received records; an incomplete record is kept by its connection.
    static RECORDS: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECORDS_BYTES].into_boxed_slice());
}

/// Version and cipher suite that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Agreement {
    version: u16,
    cipher: u16,
}

impl Agreement {
    /// The version by its OpenSSL name, the cipher suite by its IANA name.
    pub(crate) fn names(self) -> (String, String) {
        let version = match rustls::ProtocolVersion::from(self.version) {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2".into(),
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3".into(),
            other => format!("{other:?}"),
        };
        let cipher = format!("{:?}", rustls::CipherSuite::from(self.cipher));
        (version, cipher.replace("TLS13_", "TLS_"))
    }
}

#[derive(Debug)]
pub(crate) struct Stream {
    tls: ClientConnection,
    /// The server has to agree to HTTP/2.
    http2: bool,
    ended: bool,
}

impl Stream {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Stream, String> {
        let http2 = config.alpn_protocols.iter().any(|id| id == Alpn::Http2.id());
        ClientConnection::new(config, name)
            .map(|tls| Stream {
                tls,
                http2,
                ended: false,
            })
            .map_err(|error| trouble::words(&error))
    }

    pub(crate) fn is_shaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns `true` if the handshake is complete and the server may speak first.
    pub(crate) fn may_be_spoken_to(&self) -> bool {
        self.http2 && !self.is_shaking()
    }

    /// Checks that the server speaks the required protocol; known when the handshake is complete.
    pub(crate) fn check_protocol(&self) -> Result<(), Trouble> {
        let agreed = self.tls.alpn_protocol();
        if !self.http2 || agreed == Some(Alpn::Http2.id()) {
            return Ok(());
        }
        let agreed = agreed.map_or("nothing".into(), String::from_utf8_lossy);
        Err(Trouble::Tls(format!(
            "the server does not speak HTTP/2 here: ALPN agreed on {agreed}, not on h2"
        )))
    }

    /// `None` until the handshake is complete.
    pub(crate) fn agreement(&self) -> Option<Agreement> {
        let (version, suite) = (self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?);
        Some(Agreement {
            version: version.into(),
            cipher: suite.suite().into(),
        })
    }

    /// Accepts as many of the bytes as there is room for, and sends as much as the socket takes. The rest of the
    /// accepted bytes is sent later; see [`Stream::is_flushed`].
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let taken = self.tls.writer().write(bytes).unwrap_or(0);
        if taken == 0 {
            self.flush(socket)?;
            return Err(Errno::AGAIN);
        }
        match self.flush(socket) {
            Ok(()) | Err(Errno::AGAIN) => Ok(taken),
            Err(error) => Err(error),
        }
    }

    /// Sends pending records. Returns `AGAIN` if the socket does not take all of them.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        while self.tls.wants_write() {
            if let Err(error) = self.tls.write_tls(&mut Outlet(socket)) {
                return Err(errno(&error));
            }
        }
        Ok(())
    }

    pub(crate) fn is_flushed(&self) -> bool {
        !self.tls.wants_write()
    }

    /// Receives once and decrypts the received records. `plain` is always longer than twice [`RECORDS_BYTES`].
    pub(crate) fn recv(&mut self, socket: BorrowedFd<'_>, plain: &mut [u8]) -> Result<Received, Trouble> {
        RECORDS.with_borrow_mut(
            |records| match net::recv(socket, &mut records[..], RecvFlags::empty()) {
                Ok((0, _)) if self.ended => Ok(Received::End),
                Ok((0, _)) => Ok(Received::Cut),
                Ok((length, _)) => self.digest(&records[..length], plain).inspect_err(|_| {
                    // Tells the peer what was wrong, if it still reads.
                    let _ = self.flush(socket);
                }),
                Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
                Err(error) => Err(error.into()),
            },
        )
    }

    fn digest(&mut self, mut records: &[u8], plain: &mut [u8]) -> Result<Received, Trouble> {
        let mut length = 0;
        while !records.is_empty() && !self.ended {
            let tls = |error: &rustls::Error| Trouble::Tls(trouble::words(error));
            self.tls
                .read_tls(&mut records)
                .map_err(|error| Trouble::Tls(error.to_string()))?;
            let state = self.tls.process_new_packets().map_err(|error| tls(&error))?;
            self.ended = state.peer_has_closed();
            if state.plaintext_bytes_to_read() > 0 {
                length += self
                    .tls
                    .reader()
                    .read(&mut plain[length..])
                    .map_err(|error| Trouble::Tls(error.to_string()))?;
            }
        }
        Ok(match length {
            0 if self.ended => Received::End,
            0 => Received::Nothing,
            length => Received::Bytes(length),
        })
    }

    /// Returns `true` if the peer has announced the end of its data.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Announces the end of our data (RFC 8446 §6.1), as far as the socket takes it.
    pub(crate) fn leave(&mut self, socket: BorrowedFd<'_>) {
        self.tls.send_close_notify();
        let _ = self.flush(socket);
    }
}

/// The socket, as a writer for rustls.
struct Outlet<'a>(BorrowedFd<'a>);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self.0, bytes, NO_SIGNAL)?)
    }

    /// All records in one segment: the end of a handshake goes with the first request.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(net::sendmsg(self.0, slices, &mut nothing, NO_SIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn errno(error: &io::Error) -> Errno {
    match Errno::from_io_error(error) {
        Some(Errno::INTR) => Errno::AGAIN,
        Some(errno) => errno,
        None => Errno::IO,
    }
}
