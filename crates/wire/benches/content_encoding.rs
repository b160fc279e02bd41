//! Measures content codings, including the time to make and drop the encoder: `cargo bench -p fairlead-wire --bench
//! content_encoding`.

mod measure;

use fairlead_wire::content_encoding::{Accepted, Coding, Encoder};
use fairlead_wire::{Head, HeadLimits};
use measure::measure;
use std::hint::black_box;

/// A list of records, which compression reduces to about a fifth.
fn json(length: usize) -> Vec<u8> {
    let words = [
        "harbour", "invoice", "pending", "customer", "shipping", "review", "morning",
    ];
    let entry = |id: usize| {
        let number = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let word = |shift: usize| words[(number >> shift) % words.len()];
        format!(
            "{{\"id\":{id},\"key\":\"{:08x}\",\"name\":\"{} {}\",\"price\":{},\"state\":\"{}\",\"parent\":null}},",
            number as u32,
            word(1),
            word(9),
            number % 100_000,
            word(17)
        )
    };
    (1..).flat_map(|id| entry(id).into_bytes()).take(length).collect()
}

/// Writes `content` in pieces of `size`, with a flush after each piece except the last.
fn encode(coding: Coding, content: &[u8], size: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut encoder = Encoder::new(coding);
    for (index, piece) in content.chunks(size).enumerate() {
        if index > 0 {
            encoder.flush(out);
        }
        encoder.write(piece, out);
    }
    encoder.finish(out);
}

fn main() {
    let mut out = Vec::new();
    for (name, length) in [("2 KiB", 2 * 1024), ("100 KiB", 100 * 1024)] {
        let content = json(length);
        for coding in Coding::ALL {
            for (how, size) in [("at once", length), ("flushed every 4 KiB", 4 * 1024)] {
                if size > length {
                    continue;
                }
                encode(coding, &content, size, &mut out);
                let what = format!("{name}: {} {how}, to {} bytes", coding.token(), out.len());
                measure(&what, || encode(coding, black_box(&content), size, &mut out));
            }
        }
    }
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, deflate, br;q=0.9, zstd\r\n\r\n";
    let limits = HeadLimits {
        head_bytes: 1_000,
        fields: 10,
        target_bytes: 100,
    };
    let mut head = Head::default();
    assert_eq!(head.parse(request, &limits), Ok(true));
    measure("negotiate", || {
        black_box(Accepted::of(black_box(&head), request).best_first().next());
    });
}
