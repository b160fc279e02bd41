//! Conditions and ranges: the result of a request for a file, against the naive models. The first byte chooses the
//! method and the file; the rest are field lines.

#![no_main]

#[path = "../../crates/wire/tests/ranges/check.rs"]
mod check;
#[path = "../../crates/wire/tests/conditions/check.rs"]
mod conditions;

use fairlead_wire::conditions::Validators;
use fairlead_wire::{Head, HeadLimits};
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 10_000,
    fields: 20,
    target_bytes: 10,
};

const METHODS: [&[u8]; 4] = [b"GET", b"GET", b"HEAD", b"POST"];

const SIZES: [u64; 7] = [0, 1, 10, 300, 10_000, u32::MAX as u64 + 1, u64::MAX];

const FILES: [Validators<'_>; 5] = [
    file(Some(b"\"a,b\""), Some(784_111_777)),
    file(Some(b"W/\"a\""), Some(0)),
    file(Some(b"\"\\\""), None),
    file(None, Some(u64::MAX)),
    file(Some(b"\"a\", \"b\""), None),
];

const fn file(etag: Option<&'static [u8]>, modified: Option<u64>) -> Validators<'static> {
    Validators { etag, modified }
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, lines @ ..] = bytes else {
        return;
    };
    let choice = usize::from(*choice);
    let size = SIZES[choice % SIZES.len()];
    let file = &FILES[choice / SIZES.len() % FILES.len()];
    check::value(lines, size);
    let line = [METHODS[choice % METHODS.len()], b" / HTTP/1.1\r\nHost: a\r\n"].concat();
    let request = [&line, lines, b"\r\n"].concat();
    let mut head = Head::default();
    if head.parse(&request, &LIMITS) == Ok(true) {
        conditions::conditions(&head, &request, file);
        check::request(&head, &request, file, size);
    }
});
