//! Requests to which Range applies at all (RFC 9110 §14.2).

use crate::http1::accept;
use fairlead_wire::conditions::Validators;
use fairlead_wire::ranges::Ranges;

const FILE: Validators<'_> = Validators {
    etag: Some(b"\"xyzzy\""),
    modified: Some(784_111_777),
};

fn asked(method: &str, lines: &[&str]) -> Ranges {
    let fields: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let bytes = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    Ranges::of(&accept(&bytes), &bytes, &FILE, 10)
}

#[test]
fn a_get_with_one_range_field_gets_it() {
    assert_eq!(asked("GET", &["Range: bytes=2-3"]), Ranges::Parts(vec![2..4]));
    assert_eq!(
        asked("GET", &["rANGE: bytes=2-3, -1"]),
        Ranges::Parts(vec![2..4, 9..10])
    );
    assert_eq!(asked("GET", &["Range: bytes=10-"]), Ranges::Unsatisfiable);
    assert_eq!(asked("GET", &[]), Ranges::Whole);
    assert_eq!(
        asked("GET", &["Ranges: bytes=2-3", "X-Range: bytes=2-3"]),
        Ranges::Whole
    );
}

#[test]
fn range_means_nothing_to_other_methods() {
    for method in ["HEAD", "POST", "PUT", "OPTIONS", "get"] {
        assert_eq!(asked(method, &["Range: bytes=2-3"]), Ranges::Whole, "{method}");
        assert_eq!(asked(method, &["Range: bytes=10-"]), Ranges::Whole, "{method}");
    }
}

#[test]
fn a_repeated_range_is_ignored() {
    assert_eq!(asked("GET", &["Range: bytes=2-3", "Range: bytes=2-3"]), Ranges::Whole);
    assert_eq!(asked("GET", &["Range: bytes=10-", "Range: bytes=2-3"]), Ranges::Whole);
    assert_eq!(asked("GET", &["Range: bytes=2-3", "Range:"]), Ranges::Whole);
}

#[test]
fn if_range_decides_between_the_range_and_the_whole() {
    for (validator, agrees) in [
        ("\"xyzzy\"", true),
        ("\"other\"", false),
        ("W/\"xyzzy\"", false),
        ("Sun, 06 Nov 1994 08:49:37 GMT", true),
        ("Sun, 06 Nov 1994 08:49:38 GMT", false),
        ("garbage", false),
    ] {
        let line = format!("If-Range: {validator}");
        for (range, obeyed) in [("2-3", Ranges::Parts(vec![2..4])), ("10-", Ranges::Unsatisfiable)] {
            let expected = if agrees { obeyed } else { Ranges::Whole };
            assert_eq!(
                asked("GET", &[&line, &format!("Range: bytes={range}")]),
                expected,
                "{line}"
            );
        }
        assert_eq!(asked("GET", &[&line]), Ranges::Whole, "{line}");
    }
}
