//! Keys that have protected as many records as they may.

use super::pair::{read_by, Pair};
use crate::keys::Material;
use crate::open::open;
use crate::{Exhausted, Keys, Records, Suite, TrafficSecret, Version};
use std::io::IoSlice;

const LIMIT: u64 = 1 << 24;

fn secret() -> TrafficSecret {
    TrafficSecret::new(Suite::Aes128Gcm, &[7; 32]).unwrap()
}

#[test]
fn new_keys_follow_before_the_limit() {
    let receiving = Keys::of_secret(secret(), 0);
    let mut records = Records::new(Version::Tls13, Keys::of_secret(secret(), LIMIT - 2), receiving);
    assert_eq!(records.write(&[IoSlice::new(&[1; 20_000])]), Ok(20_000));
    let mut peer = Keys::of_secret(secret(), LIMIT - 2);
    let mut out = records.unsent().to_vec();
    let mut sizes = Vec::new();
    for next_keys in [false, true, false] {
        let length = 5 + usize::from(u16::from_be_bytes([out[3], out[4]]));
        let mut record: Vec<u8> = out.drain(..length).collect();
        let contents = open(Version::Tls13, &mut peer, &mut record).unwrap();
        sizes.push((contents.kind, contents.bytes.len()));
        if next_keys {
            assert_eq!(contents.bytes, [24, 0, 0, 1, 1], "the peer is asked for new keys, too");
            peer.update();
        }
    }
    assert_eq!(sizes, [(23, 1 << 14), (22, 5), (23, 20_000 - (1 << 14))]);
    assert!(out.is_empty());
}

#[test]
fn without_new_keys_the_connection_ends() {
    let (mut client, mut records) = Pair::new(Version::Tls12, Suite::Aes256Gcm).without_rustls();
    assert_eq!(records.write(&[IoSlice::new(b"before")]), Ok(6));
    assert_eq!(read_by(&mut client, records.unsent()), b"before");
    let Material::Key(key) = records.sending.material() else {
        panic!("no key")
    };
    let keys = Keys::of_key(Suite::Aes256Gcm, &key[..], records.sending.iv(), LIMIT);
    records.sending = keys.unwrap();
    records.note_sent(records.unsent().len());
    assert_eq!(records.write(&[IoSlice::new(b"after")]), Err(Exhausted));
    assert_eq!(records.unsent().len(), 5 + 8 + 2 + 16, "close_notify");
    assert_eq!(records.write(&[IoSlice::new(b"after")]), Err(Exhausted));
}

#[test]
fn nothing_follows_the_end() {
    let (mut client, mut records) = Pair::new(Version::Tls13, Suite::Aes128Gcm).without_rustls();
    records.close();
    records.close();
    records.update_keys();
    assert_eq!(records.write(&[IoSlice::new(b"after")]), Err(Exhausted));
    let mut bytes = records.unsent();
    client.read_tls(&mut bytes).unwrap();
    assert!(client.process_new_packets().unwrap().peer_has_closed());
    assert!(bytes.is_empty());
}
