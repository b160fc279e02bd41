//! Clients before and after their way.

use super::*;
use crate::pubsub::{Delivery, Match, PagePosition, Position};
use crate::realtime::cable::{SavedQuestion, SavedReceipts, StreamOptions, StreamStart};

/// A client with a value in each field.
fn client() -> SavedClient {
    let page = PagePosition {
        position: Position { epoch: 7, offset: 8 },
        page: 9,
        made: 10,
    };
    let name = |text: &[u8], kind, delivery, id| SavedName {
        text: text.into(),
        kind,
        delivery,
        id,
    };
    SavedClient {
        protocol: Protocol::WebSocket,
        deflate: Some(Deflate {
            server_no_context: true,
            client_no_context: false,
            server_bits: 12,
            client_bits: 15,
        }),
        origin: 0x1234_5678,
        peer: Some(([127, 0, 0, 1], 4711).into()),
        tls: None,
        owner: Owner::Network(11),
        flow: Some(12),
        decoder: Some(b"decoder".to_vec()),
        undecoded: b"undecoded".to_vec(),
        begun: b"rest".to_vec(),
        sent: 3,
        unsent: vec![
            Unsent::Own(b"unsent".to_vec()),
            Unsent::Shared(Arc::new(WireForm::new(*b"shared"))),
            Unsent::Own(b"more".to_vec()),
        ],
        past: 5,
        owes_drained: true,
        wanted: 1,
        silence: SavedSilence {
            period: 40,
            heard: 1_000,
            pinged: 2_000,
        },
        cut: Arc::default(),
        memory: SharedMemory {
            scoreboard: 15,
            history: 16,
        },
        generation: 17,
        left: Millis::from_number(13),
        subscriptions: SavedSubscriptions {
            names: vec![
                name(b"news", Match::Exact, Delivery::Text, 0),
                name(b"n*", Match::Glob, Delivery::Binary, 0),
                name(b"a.>", Match::Subject, Delivery::Event(3), 3),
            ],
            streams: vec![
                SavedStream {
                    channel: (*b"room").into(),
                    identifier: Some("{\"channel\":\"Room\"}".into()),
                    options: StreamOptions {
                        since: Some(StreamStart::Page(page)),
                        extended: true,
                        ..StreamOptions::default()
                    },
                    after: 14,
                },
                SavedStream {
                    channel: (*b"plain").into(),
                    identifier: None,
                    options: StreamOptions {
                        is_text: true,
                        ..StreamOptions::default()
                    },
                    after: 0,
                },
            ],
            has_pings: true,
            receipts: SavedReceipts {
                pages: vec![[9, 20, 19]],
                questions: vec![SavedQuestion {
                    question: 2,
                    page: 9,
                    offset: 19,
                }],
                last_question: 2,
            },
        },
        published: vec![(3, (*b"a.b").into(), (*b"message").into())],
        messages: vec![(true, b"text".to_vec()), (false, Vec::new())],
        application: Some(b"state of the app".to_vec()),
    }
}

#[test]
fn a_client_is_the_same_after_its_way() {
    let client = client();
    let bytes = client.to_bytes();
    let read = SavedClient::from_bytes(&bytes).expect("the same version");
    assert_eq!(format!("{read:?}"), format!("{client:?}"));
    for length in 0..bytes.len() {
        let _ = SavedClient::from_bytes(&bytes[..length]);
    }
}

#[test]
fn a_client_without_anything_is_the_same_after_its_way() {
    let empty = SavedClient {
        protocol: Protocol::EventStream { chunked: true },
        deflate: None,
        peer: Some("[fe80::1%3]:80".parse().expect("an address")),
        owner: Owner::Key(0),
        flow: None,
        decoder: None,
        subscriptions: SavedSubscriptions::default(),
        published: Vec::new(),
        messages: Vec::new(),
        application: None,
        ..client()
    };
    let read = SavedClient::from_bytes(&empty.to_bytes()).expect("the same version");
    assert_eq!(format!("{read:?}"), format!("{empty:?}"));
}

/// A client that version 1 of the format has written. Later versions of the server must read it as long as the version of the
/// format is the same: fields are only added.
#[test]
fn the_sample_of_version_1_is_read() {
    let sample = include_bytes!("../samples/client-1.bin");
    let read = SavedClient::from_bytes(sample).expect("version 1");
    // It is older than these fields.
    let expected = SavedClient {
        memory: SharedMemory::default(),
        generation: 0,
        ..client()
    };
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

/// The bytes of a client with the fields of a [`Parting`] alone: the protocol, the rest of a frame, a frame with the number of its
/// bytes that were sent, and the keys of TLS.
pub(in crate::realtime::migration) fn parting_fields(
    protocol: u64,
    begun: Option<&[u8]>,
    sent: Option<(u64, &[u8])>,
    has_tls: bool,
) -> Vec<u8> {
    let mut out = Writer::begin();
    out.number(tag::PROTOCOL, protocol);
    out.bytes(tag::BEGUN, begun.unwrap_or_default());
    if let Some((sent, frame)) = sent {
        out.bytes(tag::SHARED, frame);
        out.number(tag::SENT, sent);
    }
    if has_tls {
        out.secret(tag::TLS, b"keys");
    }
    out.end()
}

/// The same bytes with another version of the format.
pub(in crate::realtime::migration) fn as_of_another_version(bytes: &[u8]) -> Vec<u8> {
    [&bytes[..4], &[0xff, 0xff], &bytes[6..]].concat()
}

#[test]
fn invalid_values_are_refused() {
    let refused = |tag: u16, bytes: &[u8]| {
        let mut out = Writer::begin();
        out.bytes(tag, bytes);
        let changed = [out.end(), client().to_bytes()[6..].to_vec()].concat();
        SavedClient::from_bytes(&changed).err() == Some(Unreadable::Invalid)
    };
    assert!(refused(tag::PROTOCOL, &[9, 0, 0, 0, 0, 0, 0, 0]), "no such protocol");
    assert!(refused(tag::PROTOCOL, &[1]), "no number");
    assert!(refused(tag::DEFLATE, &[1, 1, 16, 15]), "too large a window");
    assert!(refused(tag::PEER, &[127, 0, 0, 1]), "no port");
    assert!(refused(tag::CUT, b"no cut"));
    assert!(refused(tag::NAME, b"no fields"));
    assert!(refused(tag::STREAM, &[]), "no channel");
    assert!(!refused(999, b"of a later version"));
}
