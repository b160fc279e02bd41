//! Limits: a head of exactly the limit is accepted, one byte or field more is refused as soon as it has arrived, and
//! the cost is bounded.

use fairlead_wire::{Error, Head, HeadLimits, MAX_FIELDS};

fn limits(head_bytes: usize, fields: usize, target_bytes: usize) -> HeadLimits {
    HeadLimits {
        head_bytes,
        fields,
        target_bytes,
    }
}

fn parse(bytes: &[u8], limits: &HeadLimits) -> Result<bool, Error> {
    Head::default().parse(bytes, limits)
}

#[test]
fn a_head_may_be_as_long_as_its_limit() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let exactly = limits(request.len(), 100, 100);
    assert_eq!(parse(request, &exactly), Ok(true));
    assert_eq!(parse(&[request.as_slice(), b"next"].concat(), &exactly), Ok(true));
    let shorter = limits(request.len() - 1, 100, 100);
    assert_eq!(parse(request, &shorter), Err(Error::HeadTooLarge));
    assert_eq!(parse(&request[..request.len() - 2], &shorter), Ok(false));
    assert_eq!(parse(&request[..request.len() - 1], &shorter), Err(Error::HeadTooLarge));
}

#[test]
fn a_misdeed_within_the_limit_is_told_before_the_size() {
    let request = [b"GET / HTTP/1.1\nHost: ".as_slice(), &[b'a'; 100]].concat();
    assert_eq!(parse(&request, &limits(50, 100, 100)), Err(Error::BareLineFeed));
}

#[test]
fn there_may_be_as_many_fields_as_the_limit() {
    let three = b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\nD: e\r\n\r\n";
    assert_eq!(parse(three, &limits(1000, 3, 100)), Ok(true));
    assert_eq!(parse(three, &limits(1000, 2, 100)), Err(Error::TooManyFields));
    let third_begins = b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\nD";
    assert_eq!(parse(third_begins, &limits(1000, 2, 100)), Err(Error::TooManyFields));
    assert_eq!(
        parse(&third_begins[..third_begins.len() - 1], &limits(1000, 2, 100)),
        Ok(false)
    );
}

#[test]
fn no_limit_lifts_the_largest_number_of_fields() {
    let with = |fields: usize| {
        let lines = "A: b\r\n".repeat(fields - 1);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
    };
    let lifted = limits(usize::MAX, usize::MAX, usize::MAX);
    assert_eq!(parse(with(MAX_FIELDS).as_bytes(), &lifted), Ok(true));
    assert_eq!(
        parse(with(MAX_FIELDS + 1).as_bytes(), &lifted),
        Err(Error::TooManyFields)
    );
}

#[test]
fn a_target_may_be_as_long_as_its_limit() {
    let request = b"GET /abc HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(parse(request, &limits(1000, 100, 4)), Ok(true));
    assert_eq!(parse(request, &limits(1000, 100, 3)), Err(Error::TargetTooLong));
    assert_eq!(parse(b"GET /abc", &limits(1000, 100, 3)), Err(Error::TargetTooLong));
    assert_eq!(parse(b"GET /ab", &limits(1000, 100, 3)), Ok(false));
}

#[test]
fn nothing_is_known_of_nothing() {
    assert_eq!(parse(b"", &limits(100, 100, 100)), Ok(false));
    assert_eq!(parse(b"", &limits(0, 0, 0)), Err(Error::HeadTooLarge));
}
