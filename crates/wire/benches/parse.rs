//! Measures the parser: `cargo bench -p fairlead-wire --bench parse`.

mod measure;

use fairlead_wire::{ChunkedDecoder, Head, HeadLimits};
use measure::measure;
use std::hint::black_box;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 65_536,
    fields: 100,
    target_bytes: 16_384,
};

/// A request of a load tool.
const SHORT: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:9292\r\n\r\n";

/// A request of a browser.
const BROWSER: &[u8] = b"GET /articles/2026/fairness?page=2&sort=date HTTP/1.1\r\n\
    Host: www.example.org\r\n\
    Connection: keep-alive\r\n\
    Cache-Control: max-age=0\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Referer: https://www.example.org/articles/2026\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
    Cookie: session=5f1d7a8e9b3c4d2e8f6a7b9c0d1e2f3a; theme=dark; consent=1\r\n\r\n";

/// 64 KiB in chunks of 4 KiB.
fn chunked_body() -> Vec<u8> {
    let chunk = [b"1000\r\n".as_slice(), &[b'x'; 4096], b"\r\n"].concat();
    [chunk.repeat(16), b"0\r\n\r\n".to_vec()].concat()
}

fn main() {
    let mut head = Head::default();
    let mut parse = |bytes: &[u8]| assert_eq!(head.parse(black_box(bytes), &LIMITS), Ok(true));
    measure("head of a load tool, 1 field", || parse(SHORT));
    measure("head of a browser, 12 fields", || parse(BROWSER));
    let mut head = Head::default();
    measure("the same without its last byte", || {
        let incomplete = &BROWSER[..BROWSER.len() - 1];
        assert_eq!(head.parse(black_box(incomplete), &LIMITS), Ok(false));
    });
    let body = chunked_body();
    measure("chunked body, 16 chunks of 4 KiB", || {
        let mut decoder = ChunkedDecoder::default();
        let mut length = 0;
        let progress = decoder.decode(black_box(&body), &mut |piece| length += piece.len());
        assert!(progress.is_ok_and(|progress| progress.done) && length == 65_536);
    });
}
