//! Responses, complete and split at every byte, valid and invalid.

use super::*;

/// All responses of `stream`, read in the given pieces, and the result at the end of the stream.
fn read_pieces<'a>(method: &str, pieces: impl Iterator<Item = &'a [u8]>) -> Result<Vec<(u16, bool)>, Malformed> {
    let mut reader = ResponseReader::new(method);
    let mut answers = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            answers.extend(reader.read(&mut piece)?);
        }
    }
    answers.extend(reader.end());
    Ok(answers
        .iter()
        .map(|answer| (answer.status, answer.keep_alive))
        .collect())
}

/// Reads `stream` at once, byte by byte, and split in two at every position; the results must be equal.
fn read(method: &str, stream: &str) -> Result<Vec<(u16, bool)>, Malformed> {
    let stream = stream.as_bytes();
    let whole = read_pieces(method, std::iter::once(stream));
    assert_eq!(read_pieces(method, stream.chunks(1)), whole, "byte by byte");
    for cut in 1..stream.len() {
        let (a, b) = stream.split_at(cut);
        assert_eq!(read_pieces(method, [a, b].into_iter()), whole, "cut after {cut} bytes");
    }
    whole
}

#[test]
fn a_response_ends_where_its_framing_says() {
    let table = [
        (
            "content-length",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            (200, true),
        ),
        ("no content", "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", (200, true)),
        (
            "same length twice",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
            (200, true),
        ),
        (
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\n\r\n",
            (200, true),
        ),
        (
            "trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\na: b\r\nc: d\r\n\r\n",
            (200, true),
        ),
        (
            "chunked wins",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            (200, true),
        ),
        ("until close", "HTTP/1.1 200 OK\r\n\r\nwhatever\r\n\r\n", (200, false)),
        (
            "coding without chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nwhatever",
            (200, false),
        ),
        ("204", "HTTP/1.1 204 No Content\r\n\r\n", (204, true)),
        (
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
            (304, true),
        ),
        ("no reason", "HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", (500, true)),
        (
            "bare line feeds",
            "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
            (200, true),
        ),
        (
            "other fields",
            "HTTP/1.1 404 Not Found\r\nServer: x\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n",
            (404, true),
        ),
    ];
    for (name, stream, expected) in table {
        assert_eq!(read("GET", stream), Ok(vec![expected]), "{name}");
    }
}

#[test]
fn the_connection_field_decides_what_happens_after() {
    let table = [
        (
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: X-Y , Close\r\nContent-Length: 0\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: X-Close\r\nContent-Length: 0\r\n\r\n",
            true,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false),
    ];
    for (stream, keep_alive) in table {
        let answers = read("GET", stream).expect(stream);
        assert_eq!(
            answers.iter().map(|answer| answer.1).collect::<Vec<_>>(),
            [keep_alive],
            "{stream}"
        );
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let stream = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(read("GET", stream), Ok(vec![(200, true)]));
}

#[test]
fn responses_to_head_have_no_content() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read("HEAD", stream), Ok(vec![(200, true), (200, true)]));
}

#[test]
fn responses_follow_each_other() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 304 X\r\n\r\n";
    assert_eq!(read("GET", stream), Ok(vec![(200, true), (404, true), (304, true)]));
}

#[test]
fn an_unfinished_response_gives_nothing() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for end in 0..whole.len() {
        assert_eq!(
            read_pieces("GET", std::iter::once(&whole.as_bytes()[..end])),
            Ok(vec![]),
            "{end} bytes"
        );
    }
}

#[test]
fn what_is_not_http_is_malformed() {
    let table = [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/2 200\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "HTTP/1.1 099 Odd\r\n\r\n",
        "HTTP/1.1 600 Odd\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
    ];
    for stream in table {
        assert_eq!(read("GET", stream), Err(Malformed), "{stream}");
    }
}

#[test]
fn a_line_without_end_is_malformed() {
    let line = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES));
    assert_eq!(read_pieces("GET", line.as_bytes().chunks(1000)), Err(Malformed));
}

#[test]
fn a_reset_forgets_what_had_begun() {
    let mut reader = ResponseReader::new("GET");
    let mut input: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Le";
    assert_eq!(reader.read(&mut input), Ok(None));
    reader.reset();
    let mut input: &[u8] = b"HTTP/1.1 204 None\r\n\r\n";
    assert_eq!(
        reader.read(&mut input),
        Ok(Some(Answer {
            status: 204,
            keep_alive: true
        }))
    );
}
