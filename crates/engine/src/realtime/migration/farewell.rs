//! The last bytes for a client that has come from another worker, and with which this worker cannot continue.
//!
//! They need little of its state: the protocol, and the rest of a frame that was begun. All versions write these fields
//! alike, so that a version which cannot read the others can still say farewell.

use super::format::Fields;
use super::leaving::SERVICE_RESTART;
use super::saved::Parting;
use crate::realtime::client::Protocol;
use fairlead_system::sockets::SEND;
use fairlead_wire::websocket::close_frame;
use rustix::fd::AsFd;
use rustix::net::{recv, send, shutdown, RecvFlags, Shutdown};

/// Most bytes of the peer that are read before the socket is closed. The kernel resets a connection with unread bytes, and the
/// peer might lose the farewell.
const MOST_READ: usize = 256 * 1024;

/// Ends the connection of a client with this state, in its protocol. With TLS, the socket is only closed.
pub(crate) fn say_farewell(state: &[u8], socket: impl AsFd) {
    let fields = Fields::of_any_version(state);
    let Some(bytes) = fields.and_then(Parting::read).and_then(|parting| last_bytes(&parting)) else {
        return;
    };
    let _ = send(&socket, &bytes, SEND);
    let _ = shutdown(&socket, Shutdown::Write);
    let mut unread = [0; 16 * 1024];
    let mut read = 0;
    while let Ok((count @ 1.., _)) = recv(&socket, &mut unread[..], RecvFlags::DONTWAIT) {
        read += count;
        if read >= MOST_READ {
            break;
        }
    }
}

/// `None` if they would have to be encrypted.
fn last_bytes(parting: &Parting<'_>) -> Option<Vec<u8>> {
    if parting.has_tls {
        return None;
    }
    let mut bytes = parting.begun.to_vec();
    match parting.protocol {
        Protocol::WebSocket => close_frame(&mut bytes, Some(SERVICE_RESTART), "the server restarts"),
        Protocol::EventStream { chunked: true } | Protocol::Stream { chunked: true } => {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        Protocol::EventStream { chunked: false } | Protocol::Stream { chunked: false } => {}
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::migration::saved::tests::{as_of_another_version, parting_fields};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn farewell(state: &[u8]) -> Vec<u8> {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        say_farewell(state, &ours);
        drop(ours);
        let mut bytes = Vec::new();
        theirs.read_to_end(&mut bytes).expect("the end");
        bytes
    }

    #[test]
    fn a_client_of_another_version_gets_the_rest_of_its_frame_and_a_close_frame() {
        let mut close = Vec::new();
        close_frame(&mut close, Some(SERVICE_RESTART), "the server restarts");
        let state = as_of_another_version(&parting_fields(1, Some(b"rest"), None, false));
        assert_eq!(farewell(&state), [&b"rest"[..], &close].concat());
        let state = as_of_another_version(&parting_fields(1, None, Some((2, b"frame")), false));
        assert_eq!(farewell(&state), [&b"ame"[..], &close].concat());
        let state = as_of_another_version(&parting_fields(3, Some(b"rest"), None, false));
        assert_eq!(farewell(&state), b"rest0\r\n\r\n");
    }

    #[test]
    fn nothing_is_written_in_the_middle_of_something_that_cannot_be_read() {
        for state in [
            as_of_another_version(&parting_fields(1, None, None, true)),
            as_of_another_version(&parting_fields(99, None, None, false)),
            b"FLCL".to_vec(),
            b"something else".to_vec(),
        ] {
            assert_eq!(farewell(&state), b"");
        }
    }
}
