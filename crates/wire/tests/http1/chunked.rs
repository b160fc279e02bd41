//! Chunked bodies: accepted ones, and a catalogue of refused ones.

use crate::support::decode;
use fairlead_wire::{ChunkedDecoder, Error, Error::*, Progress};

fn refuse(body: impl AsRef<[u8]>) -> Error {
    match decode(body) {
        Err(error) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn bodies() {
    let cases: [(&str, &str); 9] = [
        ("0\r\n\r\n", ""),
        ("000\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
        ("A\r\nhelloworld\r\n0\r\n\r\n", "helloworld"),
        ("000000000000000a\r\nhelloworld\r\n0\r\n\r\n", "helloworld"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
        ("5;a=b;c=\"d;\\\"\" ; e\r\nhello\r\n0;f\r\n\r\n", "hello"),
        ("5\r\nhello\r\n0\r\nX-Sum: abc\r\nY:\r\n\r\n", "hello"),
    ];
    for (body, data) in cases {
        assert_eq!(decode(body), Ok((data.into(), body.len(), true)), "{body:?}");
    }
}

#[test]
fn what_follows_the_body_is_left() {
    let body = "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
    assert_eq!(decode(body), Ok((b"a".to_vec(), 11, true)));
}

#[test]
fn a_body_that_is_done_takes_nothing_more() {
    let mut decoder = ChunkedDecoder::default();
    let done = decoder.decode(b"0\r\n\r\n", &mut |_| {});
    assert_eq!(
        done,
        Ok(Progress {
            consumed: 5,
            done: true
        })
    );
    let more = decoder.decode(b"0\r\n\r\n", &mut |_| panic!("data after the end"));
    assert_eq!(
        more,
        Ok(Progress {
            consumed: 0,
            done: true
        })
    );
}

#[test]
fn an_error_stays() {
    let mut decoder = ChunkedDecoder::default();
    assert_eq!(decoder.decode(b"x", &mut |_| {}), Err(InvalidChunkSize));
    assert_eq!(decoder.decode(b"0\r\n\r\n", &mut |_| {}), Err(InvalidChunkSize));
}

#[test]
fn data_before_a_misdeed_has_been_given() {
    let mut data = Vec::new();
    let result = ChunkedDecoder::default().decode(b"2\r\nab\r\n2\r\nc", &mut |piece| data.extend_from_slice(piece));
    assert_eq!(
        result,
        Ok(Progress {
            consumed: 11,
            done: false
        })
    );
    assert_eq!(data, b"abc");
}

#[test]
fn sizes() {
    for size in [
        "", " 5", "+5", "-5", "0x5", "x5", "5x", "1_0", "5.", "5,5", "\t5", "\"5\"", "g", "5\0", "5\u{b}",
    ] {
        let body = format!("{size}\r\nhello\r\n0\r\n\r\n");
        assert_eq!(refuse(body), InvalidChunkSize, "{size:?}");
    }
    for size in [
        "8000000000000000",
        "ffffffffffffffff",
        "10000000000000000",
        "00000000000000000",
        "FFFFFFFFFFFFFFFF0",
    ] {
        assert_eq!(refuse(format!("{size}\r\n")), ChunkSizeOverflow, "{size:?}");
    }
    let largest = decode("7fffffffffffffff\r\nabc");
    assert_eq!(largest, Ok((b"abc".to_vec(), 21, false)));
}

#[test]
fn size_lines() {
    assert_eq!(refuse("5\nhello\r\n0\r\n\r\n"), BareLineFeed);
    assert_eq!(refuse("5\rhello\r\n0\r\n\r\n"), BareCarriageReturn);
    assert_eq!(refuse("5\r\r\nhello\r\n0\r\n\r\n"), BareCarriageReturn);
    assert_eq!(refuse("5;a\nhello\r\n0\r\n\r\n"), BareLineFeed);
    assert_eq!(refuse("5;a\rX\r\nhello\r\n0\r\n\r\n"), BareCarriageReturn);
    for extension in [
        " ",
        ";",
        "; ",
        ";a=",
        ";a b",
        ";a[=b",
        ";a=\"",
        ";\0a",
        ";a=\"\0\"",
        ";;",
        ";a=b ",
    ] {
        let body = format!("5{extension}\r\nhello\r\n0\r\n\r\n");
        assert_eq!(refuse(body), InvalidChunkExtension, "{extension:?}");
    }
}

#[test]
fn extensions_without_end() {
    let one = format!("5;a={}\r\nhello\r\n0\r\n\r\n", "b".repeat(5_000));
    assert_eq!(refuse(one), ChunkExtensionTooLong);
    let many = format!("1;a={}\r\nx\r\n", "b".repeat(4_000)).repeat(5);
    assert_eq!(refuse(many), ChunkExtensionTooLong);
    let tiny = "1;a\r\nx\r\n".repeat(20_000);
    assert_eq!(refuse(tiny), ChunkExtensionTooLong);
}

#[test]
fn terminators() {
    assert_eq!(refuse("5\r\nhello0\r\n\r\n"), MissingChunkTerminator);
    assert_eq!(refuse("5\r\nhello!!\r\n0\r\n\r\n"), MissingChunkTerminator);
    assert_eq!(refuse("5\r\nhello\n0\r\n\r\n"), MissingChunkTerminator);
    assert_eq!(refuse("5\r\nhello\r0\r\n\r\n"), MissingChunkTerminator);
    assert_eq!(refuse("5\r\nhell\r\n0\r\n\r\n"), MissingChunkTerminator);
}

#[test]
fn trailers() {
    let cases: [(&str, Error); 13] = [
        ("\n", BareLineFeed),
        ("A: b\n\r\n", BareLineFeed),
        ("A: b\r\n\n", BareLineFeed),
        ("A: b\rc\r\n\r\n", BareCarriageReturn),
        ("\r\r\n", BareCarriageReturn),
        ("A: b\0\r\n\r\n", NulByte),
        ("A: \x07\r\n\r\n", ControlCharacter),
        ("A: b\r\n c\r\n\r\n", ObsoleteFold),
        ("A : b\r\n\r\n", SpaceBeforeColon),
        (": b\r\n\r\n", InvalidTrailer),
        ("A\r\n\r\n", InvalidTrailer),
        ("A b: c\r\n\r\n", InvalidTrailer),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", InvalidTrailer),
    ];
    for (trailer, error) in cases {
        assert_eq!(refuse(format!("0\r\n{trailer}")), error, "{trailer:?}");
    }
}

#[test]
fn trailers_that_belong_in_the_head() {
    for name in [
        "Content-Length",
        "TRANSFER-ENCODING",
        "host",
        "Content_Length",
        "Authorization",
        "TE",
        "X-Forwarded-For",
    ] {
        assert_eq!(refuse(format!("0\r\n{name}: 5\r\n\r\n")), ForbiddenTrailer, "{name}");
    }
}

#[test]
fn trailers_up_to_their_limit() {
    let decode = |body: &str, limit| ChunkedDecoder::new(limit).decode(body.as_bytes(), &mut |_| {});
    let body = "0\r\nA: b\r\nC: d\r\n\r\n";
    assert_eq!(decode(body, 12).map(|progress| progress.done), Ok(true));
    assert_eq!(decode(body, 11), Err(TrailerTooLarge));
    assert_eq!(decode("0\r\n\r\n", 0).map(|progress| progress.done), Ok(true));
    assert_eq!(decode("0\r\nA:\r\n\r\n", 0), Err(TrailerTooLarge));
    assert_eq!(decode(&format!("0\r\n{}", "a".repeat(100)), 20), Err(TrailerTooLarge));
    assert_eq!(decode("0\r\n\r\n", usize::MAX).map(|progress| progress.done), Ok(true));
}
