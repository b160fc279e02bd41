//! permessage-deflate (RFC 7692), both directions. Our side keeps no context between messages, which is always allowed,
//! so all connections of a run can share one compressor. The server may keep its context.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The end of a sync flush, which a message omits (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
const STEP_BYTES: usize = 16 * 1024;

/// Inflates the messages of one server.
#[derive(Debug)]
pub(crate) struct Inflater {
    stream: Decompress,
    /// The server keeps no context between messages (`server_no_context_takeover`).
    forgets: bool,
}

impl Inflater {
    pub(crate) fn new(forgets: bool) -> Inflater {
        Inflater {
            stream: Decompress::new(false),
            forgets,
        }
    }

    /// Inflates a message into `out`, replacing its content.
    pub(crate) fn message(&mut self, payload: &[u8], out: &mut Vec<u8>, most: usize) -> Result<(), &'static str> {
        out.clear();
        if self.forgets {
            self.stream.reset(false);
        }
        self.feed(payload, out, most)?;
        self.feed(&TAIL, out, most)
    }

    fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>, most: usize) -> Result<(), &'static str> {
        const WRONG: &str = "a message that cannot be inflated";
        loop {
            if out.len() > most {
                return Err("a message too long");
            }
            out.reserve(STEP_BYTES);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress_vec(input, out, FlushDecompress::Sync);
            let status = status.map_err(|_| WRONG)?;
            // A payload fits into memory, so `usize` holds the number of consumed bytes.
            input = &input[(self.stream.total_in() - taken) as usize..];
            let stuck = self.stream.total_in() == taken && self.stream.total_out() == given;
            match status {
                // A final block is allowed (RFC 7692 §7.2.3.4); the stream then begins again.
                Status::StreamEnd => self.stream.reset(false),
                _ if stuck && !input.is_empty() => return Err(WRONG),
                _ => {}
            }
            if input.is_empty() && out.len() < out.capacity() {
                return Ok(());
            }
        }
    }
}

/// Deflates our messages, each on its own.
#[derive(Debug)]
pub(crate) struct Deflater {
    stream: Compress,
    out: Vec<u8>,
}

impl Deflater {
    pub(crate) fn new() -> Deflater {
        Deflater {
            stream: Compress::new(Compression::fast(), false),
            out: Vec::new(),
        }
    }

    pub(crate) fn message(&mut self, payload: &[u8]) -> &[u8] {
        self.stream.reset();
        self.out.clear();
        loop {
            self.out.reserve(payload.len() / 2 + 64);
            // The total counts from the reset, which was for this payload.
            let rest = &payload[self.stream.total_in() as usize..];
            let flushed = self.stream.compress_vec(rest, &mut self.out, FlushCompress::Sync);
            debug_assert!(flushed.is_ok(), "compressing into memory has no way to fail");
            if self.out.len() < self.out.capacity() {
                break;
            }
        }
        self.out.strip_suffix(&TAIL).unwrap_or(&self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_both_directions() {
        let (mut deflater, mut inflater, mut out) = (Deflater::new(), Inflater::new(false), Vec::new());
        let noise: Vec<u8> = (0..100_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for message in [&b"Hello"[..], b"", &noise, &[b'x'; 300_000], b"Hello"] {
            let deflated = deflater.message(message).to_vec();
            inflater.message(&deflated, &mut out, 1 << 20).expect("valid");
            assert!(out == message, "{} bytes", message.len());
        }
    }

    #[test]
    fn a_server_may_refer_to_messages_before() {
        // RFC 7692 §7.2.3.1 and §7.2.3.2: "Hello" twice, the second time with the first as its context.
        let (first, second) = (
            [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
            [0xf2, 0x00, 0x11, 0x00, 0x00],
        );
        let (mut inflater, mut out) = (Inflater::new(false), Vec::new());
        for message in [&first[..], &second] {
            inflater.message(message, &mut out, 100).expect("valid");
            assert_eq!(out, b"Hello");
        }
        let mut forgetful = Inflater::new(true);
        forgetful.message(&first, &mut out, 100).expect("valid");
        assert!(
            forgetful.message(&second, &mut out, 100).is_err(),
            "there is no context"
        );
    }

    #[test]
    fn a_block_may_be_final() {
        // RFC 7692 §7.2.3.4.
        let (mut inflater, mut out) = (Inflater::new(false), Vec::new());
        for _ in 0..2 {
            let message = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
            inflater.message(&message, &mut out, 100).expect("valid");
            assert_eq!(out, b"Hello");
        }
    }

    #[test]
    fn nonsense_and_bombs_are_refused() {
        let mut out = Vec::new();
        assert!(Inflater::new(false).message(&[0xff; 9], &mut out, 100).is_err());
        let bomb = Deflater::new().message(&vec![0; 1 << 20]).to_vec();
        assert_eq!(
            Inflater::new(false).message(&bomb, &mut out, 1 << 16),
            Err("a message too long")
        );
    }
}
