//! Dates in fields (RFC 9110 §5.6.7).

use crate::check::model;
use crate::http1::Random;
use crate::support::MODIFIED;
use fairlead_wire::conditions::{format_http_date, parse_http_date};

/// 9999-12-31 23:59:59.
const LAST: u64 = 253_402_300_799;

/// 2070-01-01 00:00:00.
const END_OF_TWO_DIGITS: u64 = 3_155_760_000;

fn written(seconds: u64) -> String {
    let mut out = b"before ".to_vec();
    format_http_date(seconds, &mut out);
    String::from_utf8(out.split_off(7)).expect("ASCII")
}

#[test]
fn the_three_forms_of_the_rfc_are_the_same_moment() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse_http_date(text.as_bytes()), Some(MODIFIED), "{text}");
    }
    assert_eq!(written(MODIFIED), "Sun, 06 Nov 1994 08:49:37 GMT");
}

#[test]
fn the_ends_of_time() {
    assert_eq!(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(written(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
    assert_eq!(written(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
    for seconds in [LAST, LAST + 1, i64::MAX as u64, u64::MAX] {
        assert_eq!(written(seconds), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
    assert_eq!(parse_http_date(b"Fri, 31 Dec 9999 23:59:59 GMT"), Some(LAST));
    // Two digits for the year: from 1970 to 2069.
    assert_eq!(parse_http_date(b"Thursday, 01-Jan-70 00:00:00 GMT"), Some(0));
    assert_eq!(
        parse_http_date(b"Tuesday, 31-Dec-69 23:59:59 GMT"),
        Some(END_OF_TWO_DIGITS - 1)
    );
}

#[test]
fn any_moment_is_read_in_any_form_as_what_it_is() {
    let mut random = Random::new(1);
    for _ in 0..2_000 {
        let seconds = (random.below(1 << 31) as u64) << random.below(8);
        let seconds = seconds.min(LAST);
        let forms = model::forms(seconds);
        assert_eq!(written(seconds), forms[0]);
        for (form, text) in forms.iter().enumerate() {
            let read = parse_http_date(text.as_bytes());
            assert_eq!(read, model::date(text.as_bytes()), "{text}");
            // The second form has only two digits for the year.
            assert!(
                read == Some(seconds) || (form == 1 && seconds >= END_OF_TWO_DIGITS),
                "{text}"
            );
        }
    }
}

#[test]
fn what_is_not_a_date() {
    for text in [
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 GMT+1",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "sun, 06 nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT",
        // The day of the week is wrong, or the day or the time does not exist.
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Wed, 30 Feb 2000 00:00:00 GMT",
        "Thu, 29 Feb 1900 00:00:00 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Sat, 01 Jan 0000 00:00:00 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94008:49:37 GMT",
        "Sunday, 06-Nov-94-08:49:37 GMT",
        "Sunday, 06-Nov-9408:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 94",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun Nov  6 08:49:37 1994\n",
        " GMT",
        "1994-11-06T08:49:37Z",
        "784111777",
        "-1",
        "\u{ff33}un, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        assert_eq!(model::date(text.as_bytes()), None, "{text}");
    }
    assert_eq!(parse_http_date(b"Sun, 06 Nov 1994 08:49:37 GM\xff"), None);
}
