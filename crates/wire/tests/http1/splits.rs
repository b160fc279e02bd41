//! The result is the same for every split of the bytes: at every split point, and byte by byte.

use crate::check;
use crate::support::{post, LIMITS};
use fairlead_wire::{ChunkedDecoder, Head, HeadProgress};

fn heads() -> Vec<Vec<u8>> {
    let mut heads = vec![
        post(&["Content-Length: 5", "X-A: b", "Connection: close, x"]),
        post(&["Transfer-Encoding: chunked", "Expect: 100-continue"]),
        b"\r\nGET http://a:80/b?c HTTP/1.1\r\nHost: A\r\nEmpty:\r\nSpaced: \t d \t\r\n\r\nnext".to_vec(),
        b"OPTIONS * HTTP/1.0\r\n\r\nPOST".to_vec(),
        b"GET http://a HTTP/1.2\r\nHost: b\r\nA: b\r\n\r\nnext".to_vec(),
        vec![b'A'; 70],
    ];
    let faults: [&[u8]; 14] = [
        b"\r\n\r\nGET",
        b"\nGET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\n",
        b"GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n d\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost a\r\n\r\n",
        b"GET /\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.2\r\n\r\n",
        b"GET /#a HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: \0\r\nHost: a\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01\0",
    ];
    heads.extend(faults.map(<[u8]>::to_vec));
    heads
}

#[test]
fn a_head_byte_by_byte() {
    for head in heads() {
        check::head(&head, &LIMITS);
    }
}

#[test]
fn a_head_in_two_pieces() {
    for bytes in heads() {
        let mut head = Head::default();
        let whole = head.parse(&bytes, &LIMITS);
        for split in 0..bytes.len() {
            let early = head.parse(&bytes[..split], &LIMITS);
            assert!(
                early == Ok(false) || early == whole,
                "{split} of {}",
                bytes.escape_ascii()
            );
            assert_eq!(
                head.parse(&bytes, &LIMITS),
                whole,
                "{split} of {}",
                bytes.escape_ascii()
            );
            let mut progress = HeadProgress::default();
            if head.parse_on(&bytes[..split], &LIMITS, &mut progress) == Ok(false) {
                let outcome = head.parse_on(&bytes, &LIMITS, &mut progress);
                assert_eq!(outcome, whole, "{split} of {}, going on", bytes.escape_ascii());
            }
        }
    }
}

#[test]
fn a_chunked_body_in_two_and_in_three_pieces() {
    let bodies = [
        "5\r\nhello\r\n0\r\n\r\nnext",
        "5;a=\"b\" ; c\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\nC:\r\n\r\n",
        "5\r\nhello\r\nx",
        "5\r\nhello\n",
        "0\r\nA: b\r\n c\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "5 \r\nhello",
        "fffffffffffffffff\r\n",
    ];
    for body in bodies {
        check::chunked(body.as_bytes(), 100);
        let whole = feed(&[body.as_bytes()]);
        for first in 0..body.len() {
            for second in first..body.len() {
                let (a, rest) = body.as_bytes().split_at(first);
                let (b, c) = rest.split_at(second - first);
                assert_eq!(feed(&[a, b, c]), whole, "{body:?} at {first} and {second}");
            }
        }
    }
}

fn feed(pieces: &[&[u8]]) -> (Vec<u8>, usize, String) {
    let mut decoder = ChunkedDecoder::default();
    let mut data = Vec::new();
    let mut consumed = 0;
    let mut done = false;
    for piece in pieces {
        match decoder.decode(piece, &mut |part| data.extend_from_slice(part)) {
            Ok(progress) => {
                consumed += progress.consumed;
                done = progress.done;
            }
            // The number of bytes read from the piece with the fault may differ.
            Err(error) => return (data, 0, format!("{error:?}")),
        }
    }
    (data, consumed, format!("done: {done}"))
}
