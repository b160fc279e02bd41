//! Properties of any input, for the fuzzer and the tests.

use crate::{frame, Frame, Keys, Records, Suite, TrafficSecret, Version};

fn records(version: Version) -> Records {
    let keys = || match version {
        Version::Tls13 => Keys::of_secret(TrafficSecret::new(Suite::Aes128Gcm, &[7; 32]).expect("32 bytes"), 0),
        Version::Tls12 => Keys::of_key(Suite::Aes128Gcm, &[7; 16], &[7; 12], 0).expect("16 and 12 bytes"),
    };
    Records::new(version, keys(), keys())
}

/// Any bytes as a state: they are refused, or written as they were read.
pub fn states(bytes: &[u8]) {
    if let Ok(found) = Records::import(bytes) {
        let again = Records::import(&found.records.export(&found.input, &found.extra));
        let again = again.expect("what was written can be read");
        assert_eq!((again.input, again.extra), (found.input, found.extra));
        assert_eq!(again.records.unsent(), found.records.unsent());
    }
}

/// Any bytes as records of a peer without keys: the first whole one ends the connection, with an alert.
pub fn forgeries(bytes: &[u8]) {
    let mut records = records(Version::Tls13);
    let mut bytes = bytes.to_vec();
    match frame(&bytes) {
        Frame::Whole(length) => {
            let refused = records.receive(&mut bytes[..length], &mut [0; 64]);
            let violation = refused.expect_err("nobody has the keys");
            assert_eq!(records.unsent().is_empty(), violation.alert().is_none());
        }
        Frame::Partial => assert!(bytes.len() < 5 + (1 << 14) + 2048),
        Frame::Broken(violation) => {
            records.refuse(violation);
            assert!(!records.unsent().is_empty());
        }
    }
}

/// Any contents of records, with a length and a type in front of each. The connection moves after each record: that makes
/// no difference.
pub fn contents(bytes: &[u8]) {
    for version in [Version::Tls12, Version::Tls13] {
        let (mut stays, mut moves) = (records(version), records(version));
        let mut rest = bytes;
        while let [length, kind, after @ ..] = rest {
            let (part, after) = after.split_at((*length as usize).min(after.len()));
            rest = after;
            let (mut space, mut other) = ([0; 64], [0; 64]);
            let taken = stays.take_contents(*kind, part, &mut space);
            assert_eq!(moves.take_contents(*kind, part, &mut other), taken);
            assert_eq!((stays.unsent(), space), (moves.unsent(), other));
            let held = stays.holds_data();
            moves = Records::import(&moves.export(&[], &[])).expect("a state").records;
            assert_eq!(moves.holds_data(), held);
            assert!(
                stays.messages.start.len() <= 5,
                "no more than a header and a key update is kept"
            );
            if taken.is_err() || stays.has_ended() {
                break;
            }
            stays.take_held(&mut [0; 256]);
            moves.take_held(&mut [0; 256]);
        }
    }
}
