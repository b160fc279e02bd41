use super::*;
use crate::connection::slow_request::Times;
use crate::limits::descriptors::Descriptors;
use crate::support::config;
use std::time::Duration;

fn pieces() -> Vec<SavedPiece> {
    vec![
        SavedPiece::Memory { length: 3 },
        SavedPiece::File {
            device: 7,
            offset: 5,
            end: 1 << 40,
        },
        SavedPiece::Spooled {
            parts: vec![
                SavedPart::Sent { place: 0 },
                SavedPart::Disk {
                    place: 262_144,
                    sent: 9,
                    length: 100_000,
                },
                SavedPart::Memory { length: 2 },
            ],
            end: 524_288,
            on_disk: 524_288,
        },
    ]
}

fn bytes(about: &str, times: [u64; 6], pieces: &[SavedPiece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, &[1, 2]);
    put(&mut bytes, &peer_numbers(Some(([10, 0, 0, 1], 0).into())));
    put(&mut bytes, &times);
    put(&mut bytes, &[LINGER, about.len() as u64]);
    put_pieces(&mut bytes, pieces);
    bytes.extend_from_slice(about.as_bytes());
    bytes.extend_from_slice(b"abcde");
    bytes
}

fn file() -> SentFile {
    let permit = Descriptors::with(1, 1).for_file().expect("a permit");
    Arc::new(Counted::new(tempfile::tempfile().expect("a file"), permit))
}

#[test]
fn a_response_is_read_as_it_was_written() {
    let bytes = bytes("GET / 200", [1, 2, 3, 4, 5, 6], &pieces());
    assert_eq!(SavedResponse::file_id(&bytes), Some([1, 2]));
    let rest = Rest::read(&bytes, Some(file())).expect("a response");
    assert_eq!(peer(rest.client), Some(([10, 0, 0, 1], 0).into()));
    assert_eq!(rest.slow_request, Some(("GET / 200".into(), [1, 2, 3, 4, 5, 6])));
    assert_eq!(rest.then, Some(Then::Linger));
    assert_eq!((rest.output.pieces, &rest.output.bytes[..]), (pieces(), &b"abcde"[..]));
}

#[test]
fn bytes_that_do_not_belong_together_are_refused() {
    let spool = Spool::new(&config());
    // Space is given back at once.
    spool.stop();
    let restored = |bytes: &[u8], file| {
        let rest = Rest::read(bytes, file)?;
        Output::restored(rest.output, &spool)
    };
    let whole = bytes("", [0; 6], &pieces());
    for length in 0..whole.len() {
        assert!(restored(&whole[..length], Some(file())).is_none(), "{length} bytes");
    }
    assert!(restored(&[&whole[..], b"x"].concat(), Some(file())).is_none());
    assert!(restored(&whole, None).is_none(), "its file is missing");
    for wrong in [u64::MAX, 1 << 63] {
        for at in (104..whole.len() - 5).step_by(8) {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
            let _ = restored(&bytes, Some(file()));
        }
    }
    assert_eq!((spool.memory(), spool.disk()), (0, 0));
    let output = restored(&whole, Some(file())).expect("a response");
    assert_eq!(output.pending(), 3 + 100_000 - 9 + 2);
    assert_eq!((spool.memory(), spool.disk()), (2, 524_288));
    drop(output);
    assert_eq!((spool.memory(), spool.disk()), (0, 0));
}

#[test]
fn the_times_of_a_slow_request_go_along() {
    let worker = Arc::new(Worker::new(config(), Default::default(), None).expect("a poll set"));
    for lock in [None, Some(Duration::from_nanos(4))] {
        let [took, queue, waiting_room, sending] = [1, 2, 3, 5].map(Duration::from_nanos);
        let times = Times {
            took,
            queue,
            waiting_room,
            lock,
            sending,
        };
        let here = SlowRequest::new(&worker, "GET / 200".into(), times, false);
        let numbers = here.numbers();
        let there = SlowRequest::of_numbers(&worker, here.about().into(), numbers);
        assert_eq!((there.about(), there.numbers()), ("GET / 200", numbers));
        here.leave();
        there.leave();
    }
}
