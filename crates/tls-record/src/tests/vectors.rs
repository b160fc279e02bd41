//! The records of the simple handshake in RFC 8448 §3, after the handshake.

use crate::{Keys, Records, Suite, TrafficSecret, Version};
use std::io::IoSlice;

const CLIENT_SECRET: &str = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
const SERVER_SECRET: &str = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
const SERVER_KEY: &str = "9f02283b6c9c07efc26bb9f2ac92e356";
const SERVER_IV: &str = "cf782b88dd83549aadf1e984";
const CLIENT_DATA: &str =
    "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a\
     6292a2977014bd1e3deae63aeebb21694915e4";
const SERVER_DATA: &str =
    "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c4bf2\
     e5f0a21c0047c2abf332540dd032e167c2955d";
const CLIENT_ALERT: &str = "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3";
const SERVER_ALERT: &str = "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9";

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn secret(text: &str) -> TrafficSecret {
    TrafficSecret::new(Suite::Aes128Gcm, &bytes(text)).unwrap()
}

#[test]
fn the_records_of_the_example_are_made_and_read() {
    // The first record of the server was a ticket.
    let sending = Keys::of_secret(secret(SERVER_SECRET), 1);
    let mut records = Records::new(Version::Tls13, sending, Keys::of_secret(secret(CLIENT_SECRET), 0));
    let data: Vec<u8> = (0..50).collect();
    let mut space = [0; 64];
    assert_eq!(records.receive(&mut bytes(CLIENT_DATA), &mut space), Ok(50));
    assert_eq!(&space[..50], data);
    assert_eq!(records.write(&[IoSlice::new(&data)]), Ok(50));
    assert_eq!(records.unsent(), bytes(SERVER_DATA));
    records.note_sent(records.unsent().len());
    assert_eq!(records.receive(&mut bytes(CLIENT_ALERT), &mut space), Ok(0));
    assert!(records.has_ended());
    records.close();
    assert_eq!(records.unsent(), bytes(SERVER_ALERT));
}

#[test]
fn the_secret_of_a_key_is_found() {
    let first = secret(SERVER_SECRET);
    let found = first.clone().find(&bytes(SERVER_KEY), &bytes(SERVER_IV), 0).unwrap();
    assert_eq!(found.as_bytes(), first.as_bytes());
    let third = first.next().next();
    let wanted = third.key_and_iv();
    let find = |most| first.clone().find(&wanted.key[..16], &*wanted.iv, most);
    assert_eq!(find(2).unwrap().as_bytes(), third.as_bytes());
    assert!(find(1).is_none());
}
