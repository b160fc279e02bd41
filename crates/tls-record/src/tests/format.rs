//! The format of exported states. A sample of each former format stays here: new versions have to read them.

use crate::state::{Imported, Malformed};
use crate::{Keys, Records, Suite, TrafficSecret, Version};
use std::io::IoSlice;

/// Format 1: TLS 1.3 with AES-128-GCM, secrets of sevens and eights, an incomplete record and a part of a key update.
const TLS13_FORMAT_1: &[u8] = &[
    1, // format
    1, 2, 0, 0, 0, 3, 4, // version
    2, 1, 0, 0, 0, 1, // suite
    3, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, // sending
    4, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 8, // receiving
    5, 3, 0, 0, 0, 23, 3, 3, // input
    6, 2, 0, 0, 0, 9, 9, // unsent
    7, 1, 0, 0, 0, 4, // held
    8, 8, 0, 0, 0, 1, 0, 0, 0, 24, 0, 0, 1, // message
    9, 4, 0, 0, 0, 31, 30, 3, 1, // patience
    10, 1, 0, 0, 0, 4, // flags
    11, 2, 0, 0, 0, 120, 121, // extra
];

#[test]
fn format_1_is_read_and_written() {
    let Imported {
        mut records,
        input,
        extra,
    } = Records::import(TLS13_FORMAT_1).unwrap();
    assert_eq!((&input[..], &extra[..]), (&[23, 3, 3][..], &b"xy"[..]));
    assert_eq!(*records.export(&input, &extra), *TLS13_FORMAT_1);
    assert_eq!((records.version(), records.suite()), (Version::Tls13, Suite::Aes128Gcm));
    let mut space = [0; 4];
    assert_eq!((records.take_held(&mut space), space[0]), (1, 4));
    let secret = TrafficSecret::new(Suite::Aes128Gcm, &[7; 32]).unwrap();
    let mut same = Records::new(
        Version::Tls13,
        Keys::of_secret(secret.clone(), 5),
        Keys::of_secret(secret, 0),
    );
    same.write(&[IoSlice::new(b"data")]).unwrap();
    records.write(&[IoSlice::new(b"data")]).unwrap();
    assert_eq!(records.unsent(), [&[9, 9], same.unsent()].concat());
}

#[test]
fn an_unknown_format_and_damaged_bytes_are_refused() {
    let refused = |bytes: &[u8]| assert_eq!(Records::import(bytes).err(), Some(Malformed), "{bytes:?}");
    for length in 0..TLS13_FORMAT_1.len() {
        refused(&TLS13_FORMAT_1[..length]);
    }
    let mut other = TLS13_FORMAT_1.to_vec();
    other[0] = 2;
    refused(&other);
    let unknown_field = [TLS13_FORMAT_1, &[12, 0, 0, 0, 0]].concat();
    refused(&unknown_field);
    let repeated_field = [TLS13_FORMAT_1, &[2, 1, 0, 0, 0, 1]].concat();
    refused(&repeated_field);
    for (index, value) in [(6, 2), (7, 5), (13, 2), (13, 9)] {
        let mut damaged = TLS13_FORMAT_1.to_vec();
        damaged[index] = value;
        refused(&damaged);
    }
}

#[test]
fn states_of_tls12_are_read_and_written() {
    let keys = |byte| Keys::of_key(Suite::Chacha20Poly1305, &[byte; 32], &[byte; 12], 9).unwrap();
    let records = Records::new(Version::Tls12, keys(1), keys(2));
    let state = records.export(&[], &[]);
    let Imported { records, .. } = Records::import(&state).unwrap();
    assert_eq!(*records.export(&[], &[]), *state);
    assert_eq!(format!("{state:?}"), format!("SecretBytes({} bytes)", state.len()));
}
