//! Shared by the tests: a file with validators, and requests for it.

use crate::http1::accept;
use fairlead_wire::conditions::{evaluate, permits_range, Outcome, Validators};
use fairlead_wire::Head;

/// RFC 9110 §5.6.7 has this moment in all three forms.
pub(crate) const MODIFIED: u64 = 784_111_777;
pub(crate) const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
pub(crate) const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
pub(crate) const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// A file with both validators.
pub(crate) const FILE: Validators<'_> = Validators {
    etag: Some(b"\"xyzzy\""),
    modified: Some(MODIFIED),
};

/// The file with another entity tag.
pub(crate) fn tagged(etag: &str) -> Validators<'_> {
    Validators {
        etag: Some(etag.as_bytes()),
        ..FILE
    }
}

/// A request with these field lines, each without its line end.
pub(crate) fn request(method: &str, lines: &[&str]) -> (Head, Vec<u8>) {
    let fields: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let bytes = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
    (accept(&bytes), bytes)
}

/// The result of a GET with these field lines, which must be the same as for HEAD.
pub(crate) fn outcome(lines: &[&str], file: &Validators<'_>) -> Outcome {
    let [get, head] = ["GET", "HEAD"].map(|method| {
        let (head, bytes) = request(method, lines);
        evaluate(&head, &bytes, file)
    });
    assert_eq!(get, head, "{lines:?}");
    get
}

/// Returns true if a GET with these field lines may get a range.
pub(crate) fn permits(lines: &[&str], file: &Validators<'_>) -> bool {
    let (head, bytes) = request("GET", lines);
    permits_range(&head, &bytes, file)
}
