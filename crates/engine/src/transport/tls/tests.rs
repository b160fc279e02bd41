//! TLS connections that leave rustls at different points, and move from process to process.

use super::*;
use crate::support::tls as ends;
use fairlead_system::sockets;
use rustix::net::SocketType;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::{ClientConfig, ClientConnection, SupportedCipherSuite};
use std::io::{Read, Write};

/// A client, and the server's transport of its connection.
struct Pair {
    client: ClientConnection,
    socket: Socket,
    server: TlsSocket,
}

const SUITES: [SupportedCipherSuite; 6] = [
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

fn client_with(suite: SupportedCipherSuite) -> ClientConnection {
    let mut provider = default_provider();
    let ecdsa = |suite: &SupportedCipherSuite| {
        let name = format!("{suite:?}").replace("RSA", "ECDSA");
        default_provider()
            .cipher_suites
            .into_iter()
            .find(move |one| format!("{one:?}") == name)
    };
    provider.cipher_suites = [Some(suite), ecdsa(&suite)].into_iter().flatten().collect();
    let config = ClientConfig::builder_with_provider(Arc::new(provider));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(ends::roots()).with_no_client_auth();
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

impl Pair {
    fn new(suite: SupportedCipherSuite) -> Pair {
        let (here, there) = sockets::pair(SocketType::STREAM, true).unwrap();
        let mut pair = Pair {
            client: client_with(suite),
            socket: Socket::uncounted(here),
            server: TlsSocket::new(Socket::uncounted(there), ends::server()),
        };
        while pair.server.awaits_handshake() {
            pair.send_to_server(usize::MAX);
            pair.server.handshake().unwrap();
            pair.receive();
        }
        pair
    }

    /// Sends at most `most` bytes of the client's records.
    fn send_to_server(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).unwrap();
        }
        let rest = bytes.split_off(most.min(bytes.len()));
        self.send_bytes(&bytes);
        rest
    }

    fn send_bytes(&self, bytes: &[u8]) {
        assert!(bytes.is_empty() || self.socket.send(bytes, false) == Ok(bytes.len()));
    }

    /// Data that the client has received.
    fn receive(&mut self) -> Vec<u8> {
        let mut space = vec![0; 1 << 18];
        let count = self.socket.receive(&mut space).unwrap_or(0);
        let mut rest = &space[..count];
        let mut data = Vec::new();
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            let state = self.client.process_new_packets().unwrap();
            let start = data.len();
            data.resize(start + state.plaintext_bytes_to_read(), 0);
            self.client.reader().read_exact(&mut data[start..]).unwrap();
        }
        data
    }

    /// Continues the connection in another transport.
    fn move_on(&mut self) {
        let state = self.server.export().unwrap().tls.unwrap();
        let copy = self.server.as_fd().try_clone_to_owned().unwrap();
        let session = Arc::clone(self.server.session().unwrap());
        assert_eq!(self.server.send(b"no more", false), Err(Errno::AGAIN));
        assert_eq!(self.server.receive(&mut [0]), Err(Errno::AGAIN));
        assert!(self.server.shut_down(Shutdown::Both).is_err());
        self.server.cut();
        self.server.reset();
        assert!(self.server.export().is_none(), "it has left");
        let continued = TlsSocket::continued(Socket::uncounted(copy), ends::server(), &state);
        self.server = continued.unwrap();
        assert_eq!(self.server.session(), Some(&session));
        assert!(self.server.can_move() && !self.server.awaits_handshake() && self.server.as_plain().is_none());
    }

    fn server_receives(&self, most: usize) -> io::Result<Vec<u8>> {
        let mut space = vec![0; most];
        let count = self.server.receive(&mut space)?;
        space.truncate(count);
        Ok(space)
    }

    fn check(&mut self) {
        self.client.writer().write_all(b"question").unwrap();
        self.send_to_server(usize::MAX);
        assert_eq!(self.server_receives(100), Ok(b"question".to_vec()));
        assert_eq!(self.server.send(b"answer", false), Ok(6));
        assert_eq!(self.receive(), b"answer");
    }
}

fn has_unsent(server: &TlsSocket) -> bool {
    matches!(&server.channel.lock().stage, Stage::Open(protection) if protection.wants_flush())
}

fn with_each(test: impl Fn(&mut Pair)) {
    for suite in SUITES {
        test(&mut Pair::new(suite));
    }
}

#[test]
fn a_connection_moves_after_its_handshake_and_again() {
    with_each(|pair| {
        pair.move_on();
        pair.check();
        pair.move_on();
        pair.move_on();
        pair.check();
        pair.client.send_close_notify();
        pair.send_to_server(usize::MAX);
        assert_eq!(pair.server_receives(10), Ok(Vec::new()));
    });
}

#[test]
fn a_connection_moves_within_a_record() {
    with_each(|pair| {
        pair.check();
        for cut in [1, 5, 20] {
            pair.client.writer().write_all(b"one").unwrap();
            pair.client.writer().write_all(b"two").unwrap();
            let rest = pair.send_to_server(cut);
            assert_eq!(pair.server_receives(10), Err(Errno::AGAIN));
            assert!(!pair.server.holds_received());
            pair.move_on();
            assert!(!pair.server.holds_received());
            pair.send_bytes(&rest);
            assert_eq!(pair.server_receives(10), Ok(b"onetwo".to_vec()));
        }
        pair.check();
    });
}

#[test]
fn received_data_and_whole_records_come_along() {
    with_each(|pair| {
        let data: Vec<u8> = (0..30_000).map(|number| number as u8).collect();
        pair.client.writer().write_all(&data).unwrap();
        pair.send_to_server(usize::MAX);
        let mut received = pair.server_receives(10).unwrap();
        while received.len() < data.len() {
            assert!(pair.server.holds_received());
            pair.move_on();
            received.extend(pair.server_receives(7_000).unwrap());
        }
        assert!(received == data && !pair.server.holds_received());
        pair.check();
    });
}

#[test]
fn unsent_records_come_along() {
    with_each(|pair| {
        let data = vec![7; BATCH_BYTES];
        let mut sent = 0;
        while !has_unsent(&pair.server) {
            sent += pair.server.send(&data, false).unwrap_or(0);
        }
        pair.move_on();
        let mut received = 0;
        while received < sent {
            received += pair.receive().len();
            let _ = pair.server.send_rest();
        }
        assert_eq!(received, sent);
        pair.check();
    });
}

#[test]
fn key_updates_are_followed_before_and_after_a_move() {
    for suite in &SUITES[3..] {
        let mut pair = Pair::new(*suite);
        for _ in 0..3 {
            for _ in 0..2 {
                pair.client.refresh_traffic_keys().unwrap();
                pair.send_to_server(usize::MAX);
                // rustls has not sent its answer when the connection leaves.
                assert_eq!(pair.server_receives(10), Err(Errno::AGAIN));
            }
            pair.move_on();
            pair.check();
        }
    }
}

#[test]
fn a_peer_with_too_many_key_updates_stays() {
    let mut pair = Pair::new(SUITES[3]);
    for _ in 0..65 {
        pair.client.refresh_traffic_keys().unwrap();
        pair.check();
    }
    assert!(pair.server.export().is_none());
    pair.check();
}

#[test]
fn a_connection_that_was_exported_in_vain_goes_on() {
    with_each(|pair| {
        for _ in 0..3 {
            pair.server.export().unwrap();
            pair.server.stay();
            pair.check();
        }
    });
}

#[test]
fn a_connection_does_not_leave_during_its_handshake_or_after_its_end() {
    let (_here, there) = sockets::pair(SocketType::STREAM, true).unwrap();
    let fresh = TlsSocket::new(Socket::uncounted(there), ends::server());
    assert!(fresh.export().is_some_and(|export| export.tls.is_none()) && fresh.can_move());
    let pair = Pair::new(SUITES[0]);
    pair.server.shut_down(Shutdown::Write).unwrap();
    assert!(pair.server.export().is_none());
    let (_here, there) = sockets::pair(SocketType::STREAM, true).unwrap();
    assert!(TlsSocket::continued(Socket::uncounted(there), ends::server(), b"\x02").is_none());
}

#[test]
fn bytes_after_close_notify_are_ignored_before_and_after_a_move() {
    with_each(|pair| {
        for _ in 0..2 {
            pair.client.writer().write_all(b"last").unwrap();
            pair.client.send_close_notify();
            pair.send_to_server(usize::MAX);
            pair.send_bytes(&[99; 100]);
            assert_eq!(pair.server_receives(100), Ok(b"last".to_vec()));
            assert_eq!(pair.server_receives(100), Ok(Vec::new()));
            *pair = Pair::new(SUITES[0]);
            pair.move_on();
        }
    });
}

#[test]
fn a_violation_after_a_move_gets_its_alert() {
    with_each(|pair| {
        pair.move_on();
        pair.send_bytes(&[23, 3, 3, 0, 30]);
        pair.send_bytes(&[1; 30]);
        assert_eq!(pair.server_receives(10), Err(Errno::PROTO));
        let mut space = [0; 100];
        let count = pair.socket.receive(&mut space).unwrap();
        pair.client.read_tls(&mut &space[..count]).unwrap();
        let error = pair.client.process_new_packets().unwrap_err();
        let expected = rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac);
        assert_eq!(error, expected);
    });
}
