//! Records that no client sends: the same alert as rustls sends, or `unexpected_message` where rustls sends none.

use super::pair::{Pair, ALL};
use crate::open::open;
use crate::seal::seal;
use crate::{frame, Frame, Keys, Records, Suite, Version};
use rustls::ServerConnection;
use std::io::IoSlice;

/// Makes records with the keys of a client.
struct Attacker {
    version: Version,
    keys: Keys,
    records: Vec<u8>,
}

impl Attacker {
    fn send(&mut self, kind: u8, contents: &[u8]) {
        let pieces = [IoSlice::new(contents)];
        let out = &mut self.records;
        seal(self.version, &mut self.keys, kind, &pieces, 0, contents.len(), out);
    }

    /// TLS 1.3: contents with their type and padding.
    fn send_padded(&mut self, contents: &[u8]) {
        self.send(0, contents);
    }

    fn send_plain(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
    }
}

/// Type and contents of each record of the server.
type Sent = Vec<(u8, Vec<u8>)>;

fn opened(version: Version, keys: &mut Keys, mut out: Vec<u8>) -> Sent {
    let mut sent = Vec::new();
    while let Frame::Whole(length) = frame(&out) {
        let mut record: Vec<u8> = out.drain(..length).collect();
        let contents = open(version, keys, &mut record).unwrap();
        sent.push((contents.kind, contents.bytes.to_vec()));
        if sent.last().unwrap().1.first() == Some(&24) {
            keys.update();
        }
    }
    sent
}

fn sent_by_rustls(version: Version, suite: Suite, attack: fn(&mut Attacker)) -> (Sent, bool) {
    let (mut server, keys, mut keys_of_server) = Pair::new(version, suite).without_client();
    let mut attacker = Attacker {
        version,
        keys,
        records: Vec::new(),
    };
    attack(&mut attacker);
    let is_refused = feed(&mut server, &attacker.records);
    let _ = std::io::Write::write(&mut server.writer(), &[]);
    let mut out = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut out).unwrap();
    }
    (opened(version, &mut keys_of_server, out), is_refused)
}

fn feed(server: &mut ServerConnection, mut records: &[u8]) -> bool {
    while !records.is_empty() {
        if server.read_tls(&mut records).unwrap() == 0 {
            return false;
        }
        if server.process_new_packets().is_err() {
            return true;
        }
        let mut data = [0; 1 << 15];
        let _ = std::io::Read::read(&mut server.reader(), &mut data);
    }
    false
}

fn sent_by_records(version: Version, suite: Suite, attack: fn(&mut Attacker)) -> (Sent, bool) {
    let pair = Pair::new(version, suite);
    let (_, mut records) = pair.without_rustls();
    let copy = Records::import(&records.export(&[], &[])).unwrap().records;
    let (keys, mut keys_of_server) = (copy.receiving, copy.sending);
    let mut attacker = Attacker {
        version,
        keys,
        records: Vec::new(),
    };
    attack(&mut attacker);
    let is_refused = receive(&mut records, attacker.records);
    (
        opened(version, &mut keys_of_server, records.unsent().to_vec()),
        is_refused,
    )
}

fn receive(records: &mut Records, mut input: Vec<u8>) -> bool {
    loop {
        match frame(&input) {
            Frame::Whole(length) => {
                let mut record: Vec<u8> = input.drain(..length).collect();
                if records.receive(&mut record, &mut [0; 1 << 15]).is_err() {
                    return true;
                }
            }
            Frame::Partial => return false,
            Frame::Broken(violation) => {
                records.refuse(violation);
                return true;
            }
        }
    }
}

const CLOSE: &[u8] = &[1, 0];

/// An attack, and the versions for which it is one.
type Attack = (&'static str, &'static [Version], fn(&mut Attacker));

const BOTH: &[Version] = &[Version::Tls12, Version::Tls13];
const TLS12: &[Version] = &[Version::Tls12];
const TLS13: &[Version] = &[Version::Tls13];

/// rustls has an alert for each of these, or goes on.
const ATTACKS: &[Attack] = &[
    ("data", BOTH, |peer| peer.send(23, b"data")),
    ("a damaged record", BOTH, |peer| {
        peer.send(23, b"data");
        *peer.records.last_mut().unwrap() ^= 1;
    }),
    ("a record again", BOTH, |peer| {
        peer.send(23, b"data");
        peer.records.extend_from_within(..);
    }),
    ("a record without protection", BOTH, |peer| {
        peer.send_plain(&[23, 3, 3, 0, 4, 1, 2, 3, 4])
    }),
    ("an empty record without protection", BOTH, |peer| {
        peer.send_plain(&[23, 3, 3, 0, 0])
    }),
    ("an unknown type", BOTH, |peer| peer.send_plain(&[99, 3, 3, 0, 1, 0])),
    ("an unknown version", BOTH, |peer| peer.send_plain(&[23, 9, 3, 0, 1, 0])),
    ("an empty alert", BOTH, |peer| peer.send_plain(&[21, 3, 3, 0, 0])),
    ("a header with an impossible length", BOTH, |peer| {
        peer.send_plain(&[23, 3, 3, 0xff, 0xff])
    }),
    ("an alert without protection", BOTH, |peer| {
        peer.send_plain(&[21, 3, 3, 0, 2, 2, 40])
    }),
    ("change_cipher_spec", BOTH, |peer| peer.send_plain(&[20, 3, 3, 0, 1, 1])),
    ("a malformed change_cipher_spec", BOTH, |peer| {
        peer.send_plain(&[20, 3, 3, 0, 1, 2])
    }),
    ("a long change_cipher_spec", BOTH, |peer| {
        peer.send_plain(&[20, 3, 3, 0, 2, 1, 1])
    }),
    ("a protected change_cipher_spec", TLS13, |peer| peer.send(20, &[1])),
    ("heartbeat", BOTH, |peer| peer.send(24, &[1, 2, 3])),
    ("an unknown type inside", TLS13, |peer| peer.send(77, &[1, 2, 3])),
    ("padding", TLS13, |peer| {
        let padded = [&b"data"[..], &[23], &[0; 1000]].concat();
        peer.send_padded(&padded);
    }),
    ("a full record", BOTH, |peer| peer.send(23, &[1; 1 << 14])),
    ("close_notify", BOTH, |peer| peer.send(21, CLOSE)),
    ("garbage after close_notify", BOTH, |peer| {
        peer.send(21, CLOSE);
        peer.send_plain(&[23, 3, 3, 0, 1, 0]);
    }),
    ("a fatal close_notify", BOTH, |peer| peer.send(21, &[2, 0])),
    ("a fatal alert", BOTH, |peer| peer.send(21, &[2, 40])),
    ("an unknown level", BOTH, |peer| peer.send(21, &[3, 40])),
    ("a short alert", BOTH, |peer| peer.send(21, &[1])),
    ("a long alert", BOTH, |peer| peer.send(21, &[1, 0, 0])),
    ("a warning", BOTH, |peer| peer.send(21, &[1, 41])),
    ("user_canceled", BOTH, |peer| {
        (0..4).for_each(|_| peer.send(21, &[1, 90]))
    }),
    ("32 empty records", BOTH, |peer| {
        (0..32).for_each(|_| peer.send(23, &[]))
    }),
    ("a key update", TLS13, |peer| {
        peer.send(22, &[24, 0, 0, 1, 0]);
        peer.keys.update();
        peer.send(23, b"data");
    }),
    ("a key update that wants another", TLS13, |peer| {
        peer.send(22, &[24, 0, 0, 1, 1]);
        peer.keys.update();
        peer.send(23, b"data");
    }),
    ("a key update in parts", TLS13, |peer| {
        peer.send(22, &[24, 0]);
        peer.send(22, &[0, 1]);
        peer.send(22, &[1]);
        peer.keys.update();
        peer.send(23, b"data");
    }),
    ("32 key updates", TLS13, |peer| {
        for _ in 0..32 {
            peer.send(22, &[24, 0, 0, 1, 0]);
            peer.keys.update();
        }
    }),
    ("the old keys after a key update", TLS13, |peer| {
        peer.send(22, &[24, 0, 0, 1, 0]);
        peer.send(23, b"data");
    }),
    ("a key update before another message", TLS13, |peer| {
        peer.send(22, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0]);
    }),
    ("an unknown key update", TLS13, |peer| peer.send(22, &[24, 0, 0, 1, 2])),
    ("a long key update", TLS13, |peer| peer.send(22, &[24, 0, 0, 2, 0, 0])),
    ("an empty key update", TLS13, |peer| peer.send(22, &[24, 0, 0, 0])),
    ("a key update of TLS 1.3", TLS12, |peer| {
        peer.send(22, &[24, 0, 0, 1, 0])
    }),
    ("finished", BOTH, |peer| {
        let finished = [&[20, 0, 0, 12][..], &[1; 12]].concat();
        peer.send(22, &finished);
    }),
    ("hello_request", TLS12, |peer| peer.send(22, &[0, 0, 0, 0])),
    ("another handshake", TLS12, |peer| {
        peer.send(22, &client_hello());
        peer.send(23, b"data");
    }),
    ("another handshake in parts", TLS12, |peer| {
        for part in client_hello().chunks(7) {
            peer.send(22, part);
        }
        peer.send(23, b"data");
    }),
];

/// rustls closes without an alert; the RFC wants one.
const ATTACKS_WITHOUT_ALERT: &[Attack] = &[
    ("33 empty records", BOTH, |peer| {
        (0..33).for_each(|_| peer.send(23, &[]))
    }),
    ("five warnings", BOTH, |peer| {
        (0..5).for_each(|_| peer.send(21, &[1, 90]))
    }),
    ("33 key updates", TLS13, |peer| {
        for _ in 0..33 {
            peer.send(22, &[24, 0, 0, 1, 0]);
            peer.keys.update();
        }
    }),
    ("only padding", TLS13, |peer| peer.send_padded(&[0; 20])),
    ("data within a message", BOTH, |peer| {
        let start = if peer.version == Version::Tls13 { 24 } else { 1 };
        peer.send(22, &[start, 0]);
        peer.send(23, b"data");
    }),
    ("two other handshakes", TLS12, |peer| {
        peer.send(22, &client_hello());
        peer.send(22, &client_hello());
    }),
];

/// A short ClientHello.
fn client_hello() -> Vec<u8> {
    let body = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0xc0, 0x2b], &[1, 0]].concat();
    [&[1, 0, 0, body.len() as u8][..], &body].concat()
}

#[test]
fn each_attack_has_the_effect_that_it_has_on_rustls() {
    for (name, versions, attack) in ATTACKS {
        for (version, suite) in ALL.into_iter().filter(|(version, _)| versions.contains(version)) {
            let expected = sent_by_rustls(version, suite, *attack);
            assert_eq!(
                sent_by_records(version, suite, *attack),
                expected,
                "{name}, {version:?}, {suite:?}"
            );
        }
    }
}

#[test]
fn where_rustls_has_no_alert_the_peer_gets_unexpected_message() {
    for (name, versions, attack) in ATTACKS_WITHOUT_ALERT {
        for (version, suite) in ALL.into_iter().filter(|(version, _)| versions.contains(version)) {
            let (mut expected, is_refused) = sent_by_rustls(version, suite, *attack);
            assert!(is_refused, "{name}, {version:?}");
            expected.push((21, vec![2, 10]));
            let sent = sent_by_records(version, suite, *attack);
            assert_eq!(sent, (expected, true), "{name}, {version:?}, {suite:?}");
        }
    }
}
