//! Random conditions, made of tags and dates that nearly match, against the naive model. Deterministic: a failing case
//! prints its request.

use crate::check;
use crate::http1::{Random, LIMITS};
use crate::support::{AFTER, BEFORE, MODIFIED, SAME};
use fairlead_wire::conditions::Validators;
use fairlead_wire::Head;

const CASES: u64 = 20_000;

const NAMES: [&str; 6] = [
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "If-Range",
    "if-none-match",
];

const TAGS: [&str; 8] = ["\"a\"", "W/\"a\"", "\"b\"", "W/\"b\"", "\"a,b\"", "\"\"", "\"\\\"", "*"];

const DATES: [&str; 7] = [
    BEFORE,
    SAME,
    AFTER,
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Sun Nov 06 08:49:36 1994",
    "Thu, 01 Jan 1970 00:00:00 GMT",
];

const FRAGMENTS: [&str; 10] = ["\"", "W/", "w/", ",", " ", "\t", "\\", "a", "0", "\u{e9}"];

fn value(random: &mut Random, name: &str) -> String {
    let dated = name.ends_with("Since") || (name == "If-Range" && random.below(2) == 0);
    let mut text = match random.below(16) {
        0 => random.pick(&FRAGMENTS).to_owned(),
        _ if dated => random.pick(&DATES).to_owned(),
        _ => random.pick(&TAGS).to_owned(),
    };
    while !dated && random.below(3) == 0 {
        text += random.pick(&[",", ", ", " ,\t", ",,", " "]);
        text += random.pick(&TAGS);
    }
    if random.below(6) == 0 {
        let places: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
        text.insert_str(places[random.below(places.len())], random.pick(&FRAGMENTS));
    }
    text
}

fn request(random: &mut Random) -> Vec<u8> {
    let mut text = format!(
        "{} / HTTP/1.1\r\nHost: a\r\n",
        random.mostly(&["GET", "HEAD"], &["POST"])
    );
    for _ in 0..1 + random.below(3) {
        let name = random.pick(&NAMES);
        text += &format!("{name}: {}\r\n", value(random, name));
    }
    text += "\r\n";
    text.into_bytes()
}

fn file(random: &mut Random) -> Validators<'static> {
    let etags: [&[u8]; 7] = [
        b"\"a\"",
        b"W/\"a\"",
        b"\"a,b\"",
        b"\"\"",
        b"\"\\\"",
        b"a",
        b"\"a\", \"b\"",
    ];
    Validators {
        etag: etags.get(random.below(8)).copied(),
        modified: [None, Some(0), Some(MODIFIED), Some(MODIFIED)][random.below(4)],
    }
}

#[test]
fn conditions() {
    let mut statuses = [0; 3];
    let mut permitted = 0;
    for seed in 0..CASES {
        let random = &mut Random::new(seed);
        let (bytes, file) = (request(random), file(random));
        let mut head = Head::default();
        assert_eq!(head.parse(&bytes, &LIMITS), Ok(true), "{}", bytes.escape_ascii());
        match check::conditions(&head, &bytes, &file) {
            200 => statuses[0] += 1,
            304 => statuses[1] += 1,
            _ => statuses[2] += 1,
        }
        permitted += u64::from(check::if_range(&head, &bytes, &file));
    }
    // The cases must produce all results.
    assert!(statuses.iter().all(|&count| count > CASES / 20), "{statuses:?}");
    assert!(
        (CASES / 2..CASES * 19 / 20).contains(&permitted),
        "{permitted} of {CASES} permitted"
    );
}
