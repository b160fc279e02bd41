//! Random paths, made of pieces that matter, against the naive model. Deterministic: a failing case prints its seed.
//! `fuzz/` does the same, guided by coverage.

use crate::check;
use crate::http1::Random;
use std::panic::{catch_unwind, resume_unwind};

const CASES: u64 = 10_000;

const PIECES: [&str; 24] = [
    "a",
    "b.c",
    "index.html",
    "/",
    "/",
    "/",
    "x",
    "ü",
    "日本",
    "%20",
    "%61",
    "%C3%bc",
    "-1",
    "_",
    "+",
    "a..b",
    ";",
    "@",
    "~a",
    "%25",
    ".js",
    "com",
    "user~",
    "(1)",
];

const FAULTY: [&str; 40] = [
    "..",
    ".",
    " ",
    "~1",
    "~",
    "//",
    "%2f",
    "%5c",
    "\\",
    ":",
    "%00",
    "%0a",
    "%",
    "%c0%ae",
    "%ff",
    "%u002e",
    "#",
    "?",
    "*",
    "CON",
    "nul",
    "com1",
    "LPT¹",
    "CLOCK$",
    "%c2%b9",
    "\u{ff0e}",
    "\u{200b}",
    "%e2%80%8b",
    "\u{2026}",
    "\u{f05c}",
    "\u{85}",
    "\u{feff}",
    ".well-known",
    ".git",
    "%2e",
    "%2",
    "%%",
    "::$DATA",
    "\u{e0041}",
    "%7e9",
];

fn path(random: &mut Random) -> Vec<u8> {
    let mut text = if random.below(20) > 0 { "/" } else { "" }.to_owned();
    for _ in 0..random.below(8) {
        text += random.mostly(&PIECES, &FAULTY);
    }
    let mut bytes = text.into_bytes();
    if random.below(8) == 0 && !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

fn accepted(case: impl Fn(&mut Random) -> Vec<u8>) -> u64 {
    let run = |seed| {
        let bytes = case(&mut Random::new(seed));
        catch_unwind(|| check::path(&bytes)).unwrap_or_else(|panic| {
            eprintln!("seed {seed}: {}", bytes.escape_ascii());
            resume_unwind(panic)
        })
    };
    (0..CASES).filter(|&seed| run(seed)).count() as u64
}

#[test]
fn paths() {
    let accepted = accepted(path);
    assert!(
        (CASES / 5..CASES * 4 / 5).contains(&accepted),
        "{accepted} of {CASES} accepted"
    );
}

#[test]
fn noise() {
    let accepted = accepted(|random| {
        let bytes = (0..random.below(12)).map(|_| random.below(256) as u8);
        std::iter::once(b'/').chain(bytes).collect()
    });
    assert!((1..CASES / 2).contains(&accepted), "{accepted} of {CASES} accepted");
}
