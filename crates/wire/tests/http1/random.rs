//! Random heads and bodies, made of pieces that matter to parsers, against the naive model. Deterministic: a failing
//! case prints its seed. `fuzz/` does the same, guided by coverage.

use crate::check;
use crate::support::{Random, LIMITS};
use fairlead_wire::HeadLimits;
use std::panic::{catch_unwind, resume_unwind, RefUnwindSafe};

const CASES: u64 = 20_000;

const REQUEST_LINES: [&str; 8] = [
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "GET / HTTP/1.0\r\n",
    "\r\nGET / HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "GET HTTP://a:80?b HTTP/1.1\r\n",
    "GET https://b/ HTTP/1.2\r\n",
    "A-method-of-the-sixty-four-bytes-which-the-longest-ones-may-have / HTTP/1.9\r\n",
];

const FIELD_LINES: [&str; 12] = [
    "Content-Length: 5\r\n",
    "content-length:0\t\r\n",
    "Transfer-Encoding:\tCHUNKED \r\n",
    "Connection: close\r\n",
    "Connection: keep-alive, x\r\n",
    "Connection: upgrade\r\n",
    "Upgrade: b\r\n",
    "Expect: 100-continue,,\r\n",
    "X-Empty:\r\n",
    "X_Y: \t z \u{e9} \r\n",
    "X: y\r\n",
    "\r\n",
];

const FAULTY_LINES: [&str; 13] = [
    "GET /a#b HTTP/1.1\r\n",
    "hOST:a:443\r\n",
    "Host: [::1]:0\r\n",
    "Content-Length: 05\r\n",
    "Content_Length: 5\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    " folded\r\n",
    "X : y\r\n",
    "X: y\n",
    "X: y\r",
    ": y\r\n",
    "X: \0\r\n",
    "\n",
];

const CHUNKS: [&str; 6] = [
    "5\r\nhello\r\n",
    "1\r\n\r\r\n",
    "002;a=b\r\n\r\n\r\n",
    "1 ;a ; b = \"c;\\\"\"\r\nx\r\n",
    "a\r\nhelloworld\r\n",
    "A;b;c=\"\"\r\n0\r\n\r\n12345\r\n",
];

const LAST_CHUNKS: [&str; 4] = [
    "0\r\n\r\n",
    "00;a\r\n\r\n",
    "0\r\nA: b\r\nC:\r\n\r\nD",
    "0\r\nHost: a\r\n\r\n",
];

const FRAGMENTS: [&str; 14] = [
    "content_length: 5\r\n",
    "\r\n",
    "\r",
    "\n",
    "5",
    ";",
    "=",
    "\"",
    "\\",
    " ",
    "\0",
    "7fffffffffffffff",
    "00000000000000",
    "xyz",
];

fn head(random: &mut Random) -> Vec<u8> {
    let mut text = random.pick(&REQUEST_LINES).to_owned();
    // Usually adds Host: without it most heads would be refused.
    if random.below(8) > 0 {
        text += "Host: a\r\n";
    }
    for _ in 0..random.below(4) {
        text += random.mostly(&FIELD_LINES, &FAULTY_LINES);
    }
    text += "\r\n";
    mutate(text.into_bytes(), random)
}

fn chunked_body(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..random.below(4) {
        text += random.mostly(&CHUNKS, &FRAGMENTS);
    }
    text += random.pick(&LAST_CHUNKS);
    mutate(text.into_bytes(), random)
}

/// In half of the cases, changes, adds or drops one or two bytes.
fn mutate(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    const INTERESTING: &[u8] = b"\r\n\t\0 :;,#?/*@[]%_-+x09aA\x7f\x80\xff\"\\";
    for _ in 0..random.below(4).saturating_sub(1) {
        let at = random.below(bytes.len());
        let byte = INTERESTING[random.below(INTERESTING.len())];
        match random.below(3) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}

/// Runs `case` with every seed and returns how many cases were accepted.
fn accepted(case: impl Fn(&mut Random) -> bool + RefUnwindSafe) -> u64 {
    let run = |seed| {
        catch_unwind(|| case(&mut Random::new(seed))).unwrap_or_else(|panic| {
            eprintln!("seed {seed}");
            resume_unwind(panic)
        })
    };
    (0..CASES).filter(|&seed| run(seed)).count() as u64
}

/// Fails if the cases no longer produce both results.
fn assert_mixed(accepted: u64) {
    assert!(
        (CASES / 5..CASES * 4 / 5).contains(&accepted),
        "{accepted} of {CASES} accepted"
    );
}

#[test]
fn heads() {
    assert_mixed(accepted(|random| {
        let bytes = head(random);
        let limits = HeadLimits {
            head_bytes: 30 + random.below(300),
            fields: 1 + random.below(8),
            target_bytes: 3 + random.below(30),
        };
        check::head(&bytes, &limits)
    }));
}

#[test]
fn chunked_bodies() {
    assert_mixed(accepted(|random| {
        check::chunked(&chunked_body(random), random.below(60))
    }));
}

#[test]
fn noise() {
    let accepted = accepted(|random| {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
        check::head(&bytes, &LIMITS) || check::chunked(&bytes, 100)
    });
    assert_eq!(accepted, 0);
}
