use super::numbers::peer;
use super::*;
use crate::clock::Millis;
use fairlead_system::wake_up;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;

const PEER: &str = "[fe80::1%7]:9292";

fn descriptor() -> OwnedFd {
    wake_up::open().expect("a descriptor")
}

fn outgoing<'a>(socket: &'a OwnedFd, input: [&'a [u8]; 3], body: &'a Body) -> OutgoingMigration<'a> {
    OutgoingMigration {
        socket: socket.as_fd(),
        origin: u32::MAX,
        peer: Some(PEER.parse().expect("an address")),
        awaited: Some(ProxyVersions::V2),
        stage: Stage::Request { arrived: Nanos::START },
        entered: Nanos::START + Duration::from_nanos(9),
        waits_since: Nanos::START + Duration::from_nanos(5),
        body_wait: Duration::from_millis(7),
        served: 2,
        input,
        body,
        is_http2: true,
        session: None,
        back_channel: None,
        is_last: true,
        tls: None,
        response: None,
        ticket: u64::MAX,
    }
}

fn sent(message: &Message<'_>) -> (Vec<u8>, Vec<OwnedFd>) {
    let copy = |one: BorrowedFd<'_>| one.try_clone_to_owned().expect("a copy");
    (
        message.datagram().iter().flat_map(|part| part.to_vec()).collect(),
        message.descriptors().into_iter().map(copy).collect(),
    )
}

fn file(text: &str) -> Body {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.rewind().expect("rewound");
    Body::File(file, text.len() as u64)
}

#[test]
fn a_message_is_read_as_it_was_written() {
    let bodies: [fn() -> Body; 3] = [|| Body::Empty, || Body::Memory(b"body".to_vec()), || file("body")];
    for (body, is_long) in bodies.into_iter().flat_map(|body| [(body, false), (body, true)]) {
        let (socket, stored) = (descriptor(), body());
        let outgoing = outgoing(&socket, [b"PROXY", b"GET /", b" and more"], &stored);
        let mut message = Message::new(&outgoing).expect("no secret");
        if is_long {
            message.lengthen().expect("a file in memory");
        }
        let (datagram, descriptors) = sent(&message);
        let incoming = open(&datagram, descriptors).expect("a complete message");
        assert_eq!((incoming.origin, incoming.peer), (u32::MAX, outgoing.peer));
        assert!(incoming.is_last);
        assert_eq!((incoming.stage, incoming.served), (outgoing.stage, 2));
        assert_eq!(incoming.entered, outgoing.entered);
        assert_eq!(incoming.waits_since, outgoing.waits_since);
        assert_eq!(incoming.ticket, outgoing.ticket);
        let beginning = datagram.first_chunk().expect("a longer message");
        assert_eq!(waits_since(beginning), outgoing.waits_since);
        assert!(incoming.is_http2);
        assert_eq!(
            (incoming.awaited, incoming.body_wait),
            (outgoing.awaited, outgoing.body_wait)
        );
        assert_eq!(incoming.input, outgoing.input.concat());
        let mut text = String::new();
        match (incoming.body, body()) {
            (Body::Empty, Body::Empty) => continue,
            (Body::Memory(bytes), Body::Memory(_)) => text = String::from_utf8(bytes).expect("text"),
            (Body::File(mut file, 4), Body::File(..)) => _ = file.read_to_string(&mut text).expect("text"),
            (got, sent) => panic!("{got:?} instead of {sent:?}"),
        }
        assert_eq!(text, "body");
    }
}

#[test]
fn a_request_whose_connection_stays_takes_its_session_and_a_place_for_the_last_word() {
    let session = Session {
        version: "TLSv1.3".into(),
        client_chain: vec![vec![7; 2_000]],
        ..Session::default()
    };
    let (socket, back_channel) = (descriptor(), descriptor());
    for (body, is_long) in [(Body::Memory(b"body".to_vec()), false), (file("body"), true)] {
        let outgoing = OutgoingMigration {
            session: Some(&session),
            back_channel: Some(&back_channel),
            ..outgoing(&socket, [b"", b"GET /", b""], &body)
        };
        let mut message = Message::new(&outgoing).expect("no secret");
        if is_long {
            message.lengthen().expect("a file in memory");
        }
        let (datagram, descriptors) = sent(&message);
        let incoming = open(&datagram, descriptors).expect("a complete message");
        assert_eq!(incoming.session.as_deref(), Some(&session));
        assert_eq!((incoming.input, incoming.body.len()), (b"GET /".to_vec(), 4));
        let last_word = incoming.back_channel.expect("its descriptor");
        rustix::io::write(&last_word, &1u64.to_ne_bytes()).expect("an eventfd");
        let mut heard = [0; 8];
        rustix::io::read(&back_channel, &mut heard).expect("the same eventfd");
        let without = message.descriptors().len() - 1;
        let (datagram, descriptors) = sent(&message);
        let fewer = descriptors.into_iter().take(without).collect();
        assert!(open(&datagram, fewer).is_err());
    }
}

#[test]
fn a_connection_without_a_request_keeps_its_stage_and_its_age() {
    let since = Millis::START;
    for (stage, awaited) in [
        (Stage::Idle { since }, None),
        (Stage::Idle { since }, Some(ProxyVersions::V1)),
        (Stage::Idle { since }, Some(ProxyVersions::Any)),
        (Stage::Head { since }, None),
        (Stage::Head { since }, Some(ProxyVersions::V2)),
        (Stage::Head { since }, Some(ProxyVersions::Any)),
    ] {
        let socket = descriptor();
        let outgoing = OutgoingMigration {
            stage,
            awaited,
            ..outgoing(&socket, [b"", b"", b"GET /"], &Body::Empty)
        };
        let (datagram, descriptors) = sent(&Message::new(&outgoing).expect("no secret"));
        let incoming = open(&datagram, descriptors).expect("a complete message");
        assert_eq!((incoming.stage, incoming.awaited, incoming.served), (stage, awaited, 2));
        assert_eq!((&incoming.input[..], incoming.body.len()), (&b"GET /"[..], 0));
    }
}

#[test]
fn the_rest_of_a_response_keeps_its_file() {
    let (socket, stored) = (descriptor(), tempfile::tempfile().expect("a file"));
    stored.write_all_at(b"sent", 0).expect("written");
    let stage = Stage::Response { paid: Nanos::START };
    for (is_long, file) in [false, true]
        .into_iter()
        .flat_map(|long| [(long, None), (long, Some(stored.as_fd()))])
    {
        let outgoing = OutgoingMigration {
            stage,
            response: Some(OutgoingResponse { bytes: b"rest", file }),
            ..outgoing(&socket, [b"", b"", b"GET /"], &Body::Empty)
        };
        let mut message = Message::new(&outgoing).expect("no secret");
        if is_long {
            message.lengthen().expect("a file in memory");
        }
        let (datagram, descriptors) = sent(&message);
        let incoming = open(&datagram, descriptors).expect("a complete message");
        assert_eq!((incoming.stage, &incoming.input[..]), (stage, &b"GET /"[..]));
        let response = incoming.response.expect("a response");
        assert_eq!(
            (&response.bytes[..], response.file.is_some()),
            (&b"rest"[..], file.is_some())
        );
        let mut text = [0; 4];
        let read = response
            .file
            .map(|file| File::from(file).read_exact_at(&mut text, 0).expect("text"));
        assert_eq!(read.map(|()| text), file.map(|_| *b"sent"));
    }
}

#[test]
fn a_message_longer_than_a_datagram_is_not_short() {
    for (length, is_short) in [(DATAGRAM_BYTES - HEADER, true), (DATAGRAM_BYTES - HEADER + 1, false)] {
        let (socket, body) = (descriptor(), Body::Memory(vec![7; length - length / 2]));
        let input = vec![7; length / 4];
        let rest = vec![7; length / 2 - length / 4];
        assert_eq!(
            Message::new(&outgoing(&socket, [&[], &input, &rest], &body))
                .expect("no secret")
                .is_short(),
            is_short
        );
    }
}

#[test]
fn an_incomplete_message_gives_back_its_socket() {
    let (socket, back_channel, body) = (descriptor(), descriptor(), file("body"));
    let outgoing = OutgoingMigration {
        back_channel: Some(&back_channel),
        ..outgoing(&socket, [b"", b"GET /", b""], &body)
    };
    let mut message = Message::new(&outgoing).expect("no secret");
    message.lengthen().expect("a file in memory");
    for count in 0..message.descriptors().len() {
        let (datagram, mut descriptors) = sent(&message);
        descriptors.truncate(count);
        let rest = open(&datagram, descriptors).expect_err("an incomplete message");
        assert_eq!(rest.socket.is_some(), count > 0);
        assert_eq!(rest.ticket, outgoing.ticket);
    }
    let short = Message::new(&outgoing).expect("no secret");
    for length in 0..HEADER + outgoing.input.concat().len() {
        let (datagram, descriptors) = sent(&short);
        assert!(open(&datagram[..length], descriptors).is_err(), "{length} bytes");
    }
}

#[test]
fn a_peer_address_survives_the_round_trip() {
    for text in ["127.0.0.2:80", "[2001:db8::7]:65535", "[::ffff:10.0.0.1]:1", PEER] {
        let one: SocketAddr = text.parse().expect("an address");
        assert_eq!(peer(peer_numbers(Some(one))), Some(one));
    }
    assert_eq!(peer(peer_numbers(None)), None);
}

#[test]
fn the_state_of_a_tls_connection_travels_in_a_file_that_is_wiped() {
    let (socket, state) = (descriptor(), SecretBytes::from(vec![7; 40_000]));
    let since = Millis::START;
    for input in [&b"GET /"[..], &[b'x'; DATAGRAM_BYTES]] {
        let outgoing = OutgoingMigration {
            tls: Some(&state),
            stage: Stage::Head { since },
            ..outgoing(&socket, [b"", b"", input], &Body::Empty)
        };
        let mut message = Message::new(&outgoing).expect("a file in memory");
        if !message.is_short() {
            message.lengthen().expect("a file in memory");
        }
        let (datagram, descriptors) = sent(&message);
        assert!(!datagram.windows(9).any(|bytes| bytes == [7; 9]));
        let copy = File::from(descriptors.last().expect("a file").try_clone().expect("a descriptor"));
        let incoming = open(&datagram, descriptors).expect("a complete message");
        assert_eq!(
            (&incoming.tls.expect("a state")[..], &incoming.input[..]),
            (&state[..], input)
        );
        let mut rest = vec![1; state.len()];
        copy.read_exact_at(&mut rest, 0).expect("zeros");
        assert!(rest.iter().all(|byte| *byte == 0));
    }
}
