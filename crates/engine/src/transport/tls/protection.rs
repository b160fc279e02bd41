//! Encrypts and decrypts the records of a connection: rustls from the handshake on, [`Records`] after the connection was
//! exported to another process.

use super::quiet::QuietRecords;
use super::wire::{errno, Wire};
use fairlead_tls_record::{frame, Frame, Records};
use rustix::io::{self, Errno};
use rustls::ServerConnection;
use std::io::{BufRead, IoSlice, Read, Write};

/// See the head of this file.
pub(super) enum Protection {
    Rustls(Box<ServerConnection>, QuietRecords),
    Records(Box<Records>),
}

impl Protection {
    /// Encrypts data; returns its length. [`Protection::flush`] sends it.
    pub(super) fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Protection::Rustls(connection, _) => {
                let written = connection.writer().write_vectored(pieces);
                written.map_err(|error| errno(&error))
            }
            Protection::Records(records) => records.write(pieces).map_err(|_| Errno::PIPE),
        }
    }

    /// True if encrypted bytes wait to be sent.
    pub(super) fn wants_flush(&self) -> bool {
        match self {
            Protection::Rustls(connection, _) => connection.wants_write(),
            Protection::Records(records) => !records.unsent().is_empty(),
        }
    }

    /// Gives the encrypted bytes to the kernel; fails with [`Errno::AGAIN`] if it does not take all of them.
    pub(super) fn flush(&mut self, wire: &mut Wire<'_>) -> io::Result<()> {
        while self.wants_flush() {
            let written = match self {
                Protection::Rustls(connection, _) => connection.write_tls(wire).map(|_| ()),
                Protection::Records(records) => {
                    let written = wire.write(records.unsent());
                    written.map(|count| records.note_sent(count))
                }
            };
            match written.map_err(|error| errno(&error)) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing follows.
    pub(super) fn close(&mut self) {
        match self {
            Protection::Rustls(connection, _) => connection.send_close_notify(),
            Protection::Records(records) => records.close(),
        }
    }

    /// Moves data that was decrypted before to `space`; returns the number of bytes.
    pub(super) fn take_data(&mut self, space: &mut [u8]) -> usize {
        match self {
            Protection::Rustls(connection, _) => take_plaintext(connection, space),
            Protection::Records(records) => records.take_held(space),
        }
    }

    /// True if there is decrypted data to take, or the end.
    pub(super) fn is_readable(&mut self) -> bool {
        match self {
            Protection::Rustls(connection, _) => connection.reader().fill_buf().is_ok(),
            Protection::Records(records) => records.holds_data() || records.has_ended(),
        }
    }

    /// True if the peer has sent close_notify, and everything before it was taken.
    pub(super) fn has_ended(&mut self) -> bool {
        match self {
            Protection::Rustls(connection, _) => connection.reader().fill_buf().is_ok_and(<[u8]>::is_empty),
            Protection::Records(records) => records.has_ended(),
        }
    }

    /// Decrypts the whole records in `bytes` into `space`, from `filled` on, as far as it has room; returns the number of
    /// bytes left.
    ///
    /// # Errors
    /// If the peer has violated the protocol: [`Errno::PROTO`]. [`Protection::flush`] sends it the alert.
    pub(super) fn decrypt(&mut self, bytes: &mut [u8], space: &mut [u8], filled: &mut usize) -> io::Result<usize> {
        let mut done = 0;
        while *filled < space.len() {
            let rest = &mut bytes[done..];
            match frame(rest) {
                Frame::Whole(length) => {
                    *filled += self.receive(&mut rest[..length], &mut space[*filled..])?;
                    done += length;
                }
                Frame::Partial => break,
                // Bytes after the peer's close_notify are ignored (RFC 8446 §6.1).
                Frame::Broken(_) if self.is_closed_by_peer() => return Ok(0),
                Frame::Broken(violation) => {
                    match self {
                        Protection::Rustls(connection, _) => _ = feed(connection, rest),
                        Protection::Records(records) => records.refuse(violation),
                    }
                    return Err(Errno::PROTO);
                }
            }
        }
        Ok(bytes.len() - done)
    }

    fn is_closed_by_peer(&mut self) -> bool {
        match self {
            Protection::Rustls(connection, _) => {
                let state = connection.process_new_packets();
                state.is_ok_and(|state| state.peer_has_closed())
            }
            Protection::Records(records) => records.is_closed_by_peer(),
        }
    }

    fn receive(&mut self, record: &mut [u8], space: &mut [u8]) -> io::Result<usize> {
        match self {
            Protection::Rustls(connection, quiet) => {
                let holds_data = feed(connection, record)?;
                quiet.note(record, holds_data);
                Ok(take_plaintext(connection, space))
            }
            Protection::Records(records) => records.receive(record, space).map_err(|_| Errno::PROTO),
        }
    }
}

/// Gives bytes to rustls. Returns true if there is decrypted data.
pub(super) fn feed(connection: &mut ServerConnection, mut bytes: &[u8]) -> io::Result<bool> {
    let mut holds_data = false;
    while !bytes.is_empty() {
        if connection.read_tls(&mut bytes).map_err(|error| errno(&error))? == 0 {
            // Bytes after the peer's close_notify are ignored (RFC 8446 §6.1).
            break;
        }
        let state = connection.process_new_packets().map_err(|_| Errno::PROTO)?;
        holds_data = state.plaintext_bytes_to_read() > 0;
    }
    Ok(holds_data)
}

/// Moves decrypted bytes to `space`; returns their number.
pub(super) fn take_plaintext(connection: &mut ServerConnection, space: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < space.len() {
        match connection.reader().read(&mut space[filled..]) {
            Ok(count @ 1..) => filled += count,
            _ => break,
        }
    }
    filled
}
