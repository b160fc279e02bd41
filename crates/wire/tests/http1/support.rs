//! Shared by the tests: parsing with usual limits, and repeatable random numbers.

use fairlead_wire::{ChunkedDecoder, Error, Head, HeadLimits};

/// Limits that no usual test reaches.
pub(crate) const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 65_536,
    fields: 100,
    target_bytes: 16_384,
};

/// Parses `bytes` at once into a new head.
pub(crate) fn parse(bytes: &[u8]) -> Result<(bool, Head), Error> {
    let mut head = Head::default();
    let complete = head.parse(bytes, &LIMITS)?;
    Ok((complete, head))
}

/// Parses bytes that must be a complete head and nothing else.
pub(crate) fn accept(bytes: impl AsRef<[u8]>) -> Head {
    let bytes = bytes.as_ref();
    match parse(bytes) {
        Ok((true, head)) if head.len == bytes.len() => head,
        other => panic!("{} is {other:?}", bytes.escape_ascii()),
    }
}

/// The error for `bytes`, which must be refused.
pub(crate) fn refuse(bytes: impl AsRef<[u8]>) -> Error {
    let bytes = bytes.as_ref();
    match parse(bytes) {
        Err(error) => error,
        Ok((complete, _)) => panic!("{} is not refused, complete: {complete}", bytes.escape_ascii()),
    }
}

/// An HTTP/1.1 POST with Host and these field lines, each without its line end.
pub(crate) fn post(lines: &[&str]) -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for line in lines {
        request.extend_from_slice(line.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// Decodes a chunked body at once. Returns its data, the number of bytes consumed, and true if it is done.
pub(crate) fn decode(body: impl AsRef<[u8]>) -> Result<(Vec<u8>, usize, bool), Error> {
    let mut data = Vec::new();
    let progress = ChunkedDecoder::default().decode(body.as_ref(), &mut |piece| data.extend_from_slice(piece))?;
    Ok((data, progress.consumed, progress.done))
}

/// A small deterministic source of numbers (xorshift64*), so that a failure can be repeated from its seed.
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 32) as usize) % end
    }

    /// Returns one of `choices`.
    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// Returns one of `others` in one case of eight, else one of `choices`.
    pub(crate) fn mostly<'a>(&mut self, choices: &[&'a str], others: &[&'a str]) -> &'a str {
        if self.below(8) > 0 {
            self.pick(choices)
        } else {
            self.pick(others)
        }
    }
}
