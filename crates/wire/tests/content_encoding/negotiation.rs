//! Accept-Encoding (RFC 9110 §12.5.3): its grammar, and known mistakes of servers.

use crate::http1::{accept, Random};
use fairlead_wire::content_encoding::{Accepted, Coding};

const BR: Coding = Coding::Brotli;
const ZSTD: Coding = Coding::Zstd;
const GZIP: Coding = Coding::Gzip;

/// The codings that a request with these values of Accept-Encoding accepts.
fn accepted(values: &[&str]) -> Accepted {
    let lines: String = values
        .iter()
        .map(|value| format!("Accept-Encoding: {value}\r\n"))
        .collect();
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: br\r\n{lines}X-Accept-Encoding: br\r\n\r\n");
    Accepted::of(&accept(&bytes), bytes.as_bytes())
}

fn best_first(values: &[&str]) -> Vec<Coding> {
    accepted(values).best_first().collect()
}

fn assert_all(cases: &[(&str, &[Coding])]) {
    for (value, expected) in cases {
        assert_eq!(best_first(&[value]), *expected, "{value:?}");
    }
}

#[test]
fn without_the_field_nothing_is_accepted() {
    assert_eq!(best_first(&[]), []);
    assert_eq!(accepted(&[]), Accepted::none());
    assert_all(&[("", &[]), (",", &[]), (" , ,", &[])]);
}

#[test]
fn what_browsers_and_tools_send() {
    assert_all(&[
        ("gzip, deflate, br, zstd", &[BR, ZSTD, GZIP]),
        ("gzip, deflate, br", &[BR, GZIP]),
        ("gzip, deflate", &[GZIP]),
        ("gzip;q=1.0,deflate;q=0.6,identity;q=0.3", &[GZIP]),
        ("deflate, gzip, br, zstd", &[BR, ZSTD, GZIP]),
        ("gzip,identity", &[GZIP]),
        ("identity", &[]),
        ("deflate", &[]),
        ("*", &[BR, ZSTD, GZIP]),
    ]);
}

#[test]
fn the_most_liked_comes_first_and_ties_have_an_order() {
    assert_all(&[
        ("br;q=0.5, gzip;q=0.5", &[BR, GZIP]),
        ("gzip;q=0.5, br;q=0.5", &[BR, GZIP]),
        ("br;q=0.5, gzip;q=0.501", &[GZIP, BR]),
        ("br;q=0.1, zstd;q=0.2, gzip;q=0.3", &[GZIP, ZSTD, BR]),
        ("br;q=0.1, zstd;q=0.3, gzip;q=0.3", &[ZSTD, GZIP, BR]),
        ("gzip, *;q=0.1", &[GZIP, BR, ZSTD]),
        ("gzip;q=0.001", &[GZIP]),
    ]);
    let accepted = accepted(&["gzip, br;q=0.5, zstd;q=0.5"]);
    let ranked = |ties| accepted.ranked(ties).collect::<Vec<_>>();
    assert_eq!(ranked(Coding::ALL), [GZIP, BR, ZSTD]);
    assert_eq!(ranked(Coding::QUICKEST_FIRST), [GZIP, ZSTD, BR]);
}

#[test]
fn zero_declines() {
    assert_all(&[
        ("gzip;q=0", &[]),
        ("gzip;q=0.", &[]),
        ("gzip;q=0.000", &[]),
        ("br, gzip;q=0", &[BR]),
        ("*;q=0", &[]),
        ("*;q=0, gzip", &[GZIP]),
        ("gzip;q=0, *", &[BR, ZSTD]),
        ("*, gzip;q=0", &[BR, ZSTD]),
        ("identity;q=0, *;q=0", &[]),
        ("identity;q=0", &[]),
        ("identity;q=0, gzip", &[GZIP]),
        ("*;q=0, identity", &[]),
    ]);
}

#[test]
fn a_coding_liked_less_than_none_is_not_used() {
    assert_all(&[
        ("identity, gzip;q=0.5", &[]),
        ("gzip;q=0.5, identity;q=0.6", &[]),
        ("gzip;q=0.5, identity;q=0.5", &[GZIP]),
        ("gzip;q=0.5, br;q=0.7, identity;q=0.6", &[BR]),
        // `*` includes `identity`.
        ("gzip;q=0.5, *;q=0.6", &[BR, ZSTD]),
        ("gzip;q=0.5, *;q=0.6, identity;q=0.1", &[BR, ZSTD, GZIP]),
        ("gzip;q=0.5, identity", &[]),
        ("*;q=0.5, identity", &[]),
    ]);
}

#[test]
fn case_and_white_space_do_not_matter() {
    assert_all(&[
        ("GZIP", &[GZIP]),
        ("gZip;Q=0.5, BR ; q=0.6", &[BR, GZIP]),
        ("gzip\t;\tq=0.5\t,\tZstd", &[ZSTD, GZIP]),
        ("IDENTITY;q=1, gzip;q=0.9", &[]),
    ]);
}

#[test]
fn aliases_are_the_same_coding() {
    assert_all(&[
        ("x-gzip", &[GZIP]),
        ("X-GZIP;q=0.5", &[GZIP]),
        ("x-gzip;q=0", &[]),
        ("x-gzip;q=0, *", &[BR, ZSTD]),
        ("x-br", &[]),
        ("x-compress", &[]),
    ]);
}

#[test]
fn repeated_fields_are_one_list() {
    assert_eq!(best_first(&["gzip", "br"]), [BR, GZIP]);
    assert_eq!(best_first(&["gzip;q=0.5", "br;q=0.4"]), [GZIP, BR]);
    assert_eq!(best_first(&["", "gzip", ""]), [GZIP]);
    assert_eq!(best_first(&["*", "gzip;q=0"]), [BR, ZSTD]);
    assert_eq!(best_first(&["identity;q=1", "gzip;q=0.5"]), []);
}

#[test]
fn what_is_named_twice_has_its_lowest_weight() {
    assert_all(&[
        ("gzip, gzip;q=0", &[]),
        ("gzip;q=0, gzip", &[]),
        ("gzip, x-gzip;q=0", &[]),
        ("gzip;q=0.2, br;q=0.3, gzip;q=0.4", &[BR, GZIP]),
        ("*, *;q=0", &[]),
    ]);
    assert_eq!(best_first(&["gzip;q=0", "gzip"]), []);
}

#[test]
fn malformed_members_are_passed_over() {
    for malformed in [
        "gzip;q=2",
        "gzip;q=1.001",
        "gzip;q=1.1",
        "gzip;q=-1",
        "gzip;q=+1",
        "gzip;q=0.5555",
        "gzip;q=0.0000",
        "gzip;q=.5",
        "gzip;q=00",
        "gzip;q=01",
        "gzip;q=0,5x",
        "gzip;q=1e0",
        "gzip;q=0x1",
        "gzip;q=0.5.",
        "gzip;q=\"1\"",
        "gzip;q=",
        "gzip;q",
        "gzip;",
        "gzip;;q=1",
        "gzip;q =1",
        "gzip;q= 1",
        "gzip;q=1;q=1",
        "gzip;q=0.5;level=9",
        "gzip;level=9",
        "gzip;level=9;q=0.5",
        "gzip q=1",
        "gzip=1",
        "gzip br",
        "gzipped",
        "gzi",
        "notgzip",
        "\"gzip\"",
        "gzip:q=1",
        ";q=1",
        ";",
        "**",
        "gzip*",
        "gz\u{ef}p",
    ] {
        assert_eq!(best_first(&[malformed]), [], "{malformed:?}");
        let among = format!("{malformed}, br");
        assert_eq!(best_first(&[&among]), [BR], "{among:?}");
        let among = format!("br,{malformed}");
        assert_eq!(best_first(&[&among]), [BR], "{among:?}");
    }
}

/// All possible weights (RFC 9110 §12.4.2), in all spellings, with their value in thousandths.
fn weights() -> Vec<(String, usize)> {
    let mut weights = Vec::new();
    for digits in 0..=3 {
        let scale = 10_usize.pow(3 - digits);
        for value in 0..10_usize.pow(digits) {
            let decimals = format!("{value:0>width$}", width = digits as usize);
            let decimals = if digits == 0 { "" } else { &decimals };
            weights.push((format!("0.{decimals}"), value * scale));
        }
        weights.push((format!("1.{}", "0".repeat(digits as usize)), 1_000));
    }
    weights.extend([("0".to_owned(), 0), ("1".to_owned(), 1_000)]);
    weights
}

#[test]
fn every_weight_is_read_exactly() {
    for (text, value) in weights() {
        let codings = best_first(&[&format!("gzip;q={text}")]);
        assert_eq!(codings.is_empty(), value == 0, "{text}");
        // Exactly between its neighbours.
        for (other, expected) in [(value.wrapping_sub(1), GZIP), (value + 1, BR)] {
            if (1..=1_000).contains(&other) && value > 0 {
                let other = format!("{}.{:03}", other / 1_000, other % 1_000);
                let codings = best_first(&[&format!("br;q={other}, gzip;q={text}")]);
                assert_eq!(codings.first(), Some(&expected), "{text} {other}");
            }
        }
    }
}

#[test]
fn nothing_else_is_a_weight() {
    let weights: std::collections::HashSet<String> = weights().into_iter().map(|(text, _)| text).collect();
    let alphabet = ["", "0", "1", "2", "9", "."];
    let mut texts = vec![String::new()];
    for _ in 0..6 {
        texts = texts
            .iter()
            .flat_map(|text| alphabet.map(|next| format!("{text}{next}")))
            .collect();
        texts.sort();
        texts.dedup();
    }
    assert!(texts.len() > 15_000);
    for text in texts {
        // A malformed weight leaves gzip to `*`.
        let codings = best_first(&[&format!("gzip;q={text}, *;q=0.5, br;q=0, zstd;q=0, identity;q=0")]);
        let expected = match weights.contains(&text) {
            true if text.bytes().all(|byte| byte == b'0' || byte == b'.') => vec![],
            _ => vec![GZIP],
        };
        assert_eq!(codings, expected, "{text:?}");
        let alone = best_first(&[&format!("gzip;q={text}")]);
        let sound = weights.contains(&text) && !expected.is_empty();
        assert_eq!(!alone.is_empty(), sound, "{text:?}");
    }
}

/// A second implementation of the rules, for valid members only.
fn model(members: &[(&str, usize)]) -> Vec<Coding> {
    let lowest = |names: &[&str]| {
        members
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|&(_, weight)| weight)
            .min()
    };
    let others = lowest(&["*"]).unwrap_or(0);
    let identity = lowest(&["identity"]).unwrap_or(others);
    let liked = [
        (lowest(&["br"]).unwrap_or(others), BR),
        (lowest(&["zstd"]).unwrap_or(others), ZSTD),
        (lowest(&["gzip", "x-gzip"]).unwrap_or(others), GZIP),
    ];
    let mut best = Vec::new();
    for weight in (identity.max(1)..=1_000).rev() {
        best.extend(liked.iter().filter(|liked| liked.0 == weight).map(|liked| liked.1));
    }
    best
}

#[test]
fn any_sound_list_means_what_the_model_says() {
    let names = ["br", "zstd", "gzip", "x-gzip", "identity", "*", "deflate", "unheard-of"];
    let weights = [0, 1, 200, 500, 999, 1_000];
    let mut random = Random::new(11);
    for _ in 0..10_000 {
        let members: Vec<(&str, usize)> = (0..random.below(6))
            .map(|_| (names[random.below(names.len())], weights[random.below(weights.len())]))
            .collect();
        let texts: Vec<String> = members
            .iter()
            .map(|&(name, weight)| match weight {
                1_000 if random.below(2) == 0 => name.to_owned(),
                _ => format!("{name};q={}.{:03}", weight / 1_000, weight % 1_000),
            })
            .collect();
        let split = random.below(texts.len() + 1);
        let values = [texts[..split].join(","), texts[split..].join(" , ")];
        assert_eq!(best_first(&[&values[0], &values[1]]), model(&members), "{values:?}");
    }
}

#[test]
fn whatever_comes_is_read_to_some_end() {
    let pieces = [
        "gzip", "br", "*", ";", ";q=", "0", "1", ".", ",", " ", "\t", "\"", "\\", "=", "q", "\u{fc}", "identity",
    ];
    let mut random = Random::new(5);
    for _ in 0..20_000 {
        let value: String = (0..random.below(20)).map(|_| random.pick(&pieces)).collect();
        let codings = best_first(&[value.trim()]);
        assert!(codings.len() <= 3, "{value:?}");
        assert!(
            !codings.contains(&BR) || value.contains("br") || value.contains('*'),
            "{value:?}"
        );
    }
}

#[test]
fn names_are_those_that_are_registered() {
    let named = Coding::ALL.map(|coding| (coding.token(), coding.suffix()));
    assert_eq!(named, [("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz")]);
    for coding in Coding::ALL {
        assert_eq!(best_first(&[coding.token()]), [coding]);
        assert!(Coding::QUICKEST_FIRST.contains(&coding));
    }
}
