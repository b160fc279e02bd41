//! Random ranges, close to the ends of files and of numbers, against the naive model. Deterministic: a failing case
//! prints its value.

use crate::check;
use crate::http1::{Random, LIMITS};
use fairlead_wire::conditions::Validators;
use fairlead_wire::Head;

const CASES: u64 = 20_000;

const SIZES: [u64; 7] = [1, 2, 10, 300, 8_000, u32::MAX as u64 + 1, u64::MAX];

const FRAGMENTS: [&str; 12] = [
    " ",
    ",",
    "-",
    "=",
    "0",
    "9",
    "bytes=",
    "\t",
    "+",
    "x",
    "\u{e9}",
    "18446744073709551616",
];

/// A number close to a boundary.
fn number(random: &mut Random, size: u64) -> String {
    let near = [0, size / 2, size, u64::MAX][[0, 0, 0, 1, 1, 1, 2, 3][random.below(8)]];
    let number = u128::from(near) + random.below(12) as u128;
    let number = number.saturating_sub(random.below(12) as u128);
    let zeros = "0".repeat([0, 0, 0, 0, 0, 0, 1, 30][random.below(8)]);
    format!("{zeros}{number}")
}

fn value(random: &mut Random, size: u64) -> String {
    let most = [1, 3, 12, 105][random.below(4)];
    let count = if most > 100 {
        96 + random.below(10)
    } else {
        1 + random.below(most)
    };
    let spec = |random: &mut Random| match (random.below(5), number(random, size)) {
        (0, number) => format!("-{number}"),
        (1, number) => format!("{number}-"),
        (2, first) => format!("{first}-{}", number(random, size)),
        (_, number) => format!("{number}-{number}"),
    };
    let specs: Vec<String> = (0..count).map(|_| spec(random)).collect();
    let separator = random.pick(&[",", ", ", "\t,", ",,"]);
    let mut text = format!(
        "{}={}",
        random.mostly(&["bytes"], &["Bytes", "lines"]),
        specs.join(separator)
    );
    if random.below(6) == 0 {
        text.insert_str(random.below(text.len() + 1), random.pick(&FRAGMENTS));
    }
    text
}

/// Fails if the cases no longer produce the three statuses.
fn assert_mixed(statuses: &[u16]) {
    for status in [200, 206, 416] {
        let count = statuses.iter().filter(|&&found| found == status).count();
        assert!(
            count > statuses.len() / 40,
            "{count} of {} are {status}",
            statuses.len()
        );
    }
}

#[test]
fn values() {
    let case = |seed| {
        let random = &mut Random::new(seed);
        let size = SIZES[random.below(SIZES.len())];
        check::value(value(random, size).as_bytes(), size)
    };
    assert_mixed(&(0..CASES).map(case).collect::<Vec<_>>());
}

#[test]
fn requests() {
    let file = Validators {
        etag: Some(b"\"a\""),
        modified: Some(784_111_777),
    };
    let case = |seed| {
        let random = &mut Random::new(seed);
        let size = SIZES[random.below(SIZES.len())];
        let mut text = format!(
            "{} / HTTP/1.1\r\nHost: a\r\n",
            random.mostly(&["GET"], &["HEAD", "POST"])
        );
        if random.below(2) == 0 {
            text += random.pick(&[
                "If-Range: \"a\"\r\n",
                "If-Range: \"b\"\r\n",
                "If-Range: W/\"a\"\r\n",
                "If-Range: Sunday, 06-Nov-94 08:49:37 GMT\r\n",
                "If-Range: \"a\"\r\nif-range: \"a\"\r\n",
            ]);
        }
        for _ in 0..1 + random.below(8) / 7 {
            text += &format!("Range: {}\r\n", value(random, size));
        }
        let bytes = (text + "\r\n").into_bytes();
        let mut head = Head::default();
        assert_eq!(head.parse(&bytes, &LIMITS), Ok(true), "{}", bytes.escape_ascii());
        check::request(&head, &bytes, &file, size)
    };
    assert_mixed(&(0..CASES).map(case).collect::<Vec<_>>());
}

#[test]
fn noise() {
    for seed in 0..CASES {
        let random = &mut Random::new(seed);
        let alphabet = b"0019--, \t=\xff";
        let mut bytes = b"bytes=".to_vec();
        bytes.extend((0..random.below(12)).map(|_| alphabet[random.below(alphabet.len())]));
        check::value(&bytes, SIZES[random.below(SIZES.len())]);
    }
}
