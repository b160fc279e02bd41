//! Measures WebSocket messages, by size and kind: `cargo bench -p fairlead-wire --bench websocket`. A read begins with
//! a copy of the bytes, because they are unmasked in place; the first result is the time of that copy.

mod measure;

use fairlead_wire::websocket::{
    frame, masked_frame, negotiate, Context, Decoder, Deflate, Deflater, Failure, Incoming, Limits, Opcode, Role,
};
use fairlead_wire::{event_stream, Head, HeadLimits};
use measure::measure;
use std::hint::black_box;

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    fragments: 1_000,
};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// About this many bytes of JSON, as an application would broadcast it.
fn json(length: usize) -> Vec<u8> {
    let entry = |id: usize| {
        let price = id * 7_919 % 100_000;
        format!(
            "{{\"id\":{id},\"symbol\":\"S{}\",\"price\":{price},\"change\":-0.{}}},",
            id % 500,
            price % 97
        )
    };
    (0..).flat_map(|id| entry(id).into_bytes()).take(length).collect()
}

/// Text in which most characters have two bytes.
fn greek(length: usize) -> Vec<u8> {
    let text = "Πάντες ἄνθρωποι τοῦ εἰδέναι ὀρέγονται φύσει. ";
    let mut text = text.repeat(length / text.len() + 1);
    while !text.is_char_boundary(length) {
        text.push(' ');
        text.insert(0, ' ');
    }
    text.truncate(length);
    text.into_bytes()
}

/// The bytes of a client that sends `payload` `times` times.
fn sent(opcode: Opcode, payload: &[u8], times: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..times).for_each(|_| masked_frame(&mut bytes, opcode, false, KEY, payload));
    bytes
}

/// Copies the bytes to `buffer` and reads them with a decoder in `reads` pieces; returns the bytes of the messages.
fn read(decoder: &mut Decoder, buffer: &mut [u8], reads: usize) -> usize {
    let mut length = 0;
    let mut on = |incoming: Incoming<'_>| match incoming {
        Incoming::Text(bytes) | Incoming::Binary(bytes) => length += bytes.len(),
        other => panic!("{other:?}"),
    };
    let pieces = buffer.len().div_ceil(reads);
    let read: Result<(), Failure> = buffer
        .chunks_mut(pieces)
        .try_for_each(|piece| decoder.feed(piece, &LIMITS, &mut on));
    assert_eq!(read, Ok(()));
    length
}

fn measure_reading(what: &str, bytes: &[u8], deflate: Option<Deflate>, reads: usize) {
    let mut decoder = Decoder::new(Role::Server, deflate);
    let mut buffer = vec![0; bytes.len()];
    measure(what, || {
        buffer.copy_from_slice(black_box(bytes));
        black_box(read(&mut decoder, &mut buffer, reads));
    });
}

fn reading() {
    for (name, size) in [("64 B", 64), ("64 KiB", 65_536)] {
        let ascii = sent(Opcode::Text, &json(size), 1);
        let mut buffer = vec![0; ascii.len()];
        measure(&format!("{name}: copy"), || buffer.copy_from_slice(black_box(&ascii)));
        measure_reading(
            &format!("{name}: read binary"),
            &sent(Opcode::Binary, &json(size), 1),
            None,
            1,
        );
        measure_reading(&format!("{name}: read ASCII text"), &ascii, None, 1);
        measure_reading(
            &format!("{name}: read Greek text"),
            &sent(Opcode::Text, &greek(size), 1),
            None,
            1,
        );
        measure_reading(&format!("{name}: read ASCII text in 4 reads"), &ascii, None, 4);
    }
    let many = sent(Opcode::Text, &json(64), 100);
    measure_reading("100 x 64 B: read ASCII text in one read", &many, None, 1);
}

fn deflating() {
    for (name, size) in [("64 B", 64), ("1 KiB", 1_024), ("64 KiB", 65_536)] {
        for (kind, keep) in [("alone", false), ("with context", true)] {
            let payload = json(size);
            let mut deflater = Deflater::new(15);
            let mut out = Vec::new();
            deflater.message(&payload, keep, &mut out);
            let compressed = out.clone();
            measure(
                &format!("{name}: deflate {kind}, to {} bytes", compressed.len()),
                || {
                    out.clear();
                    deflater.message(black_box(&payload), keep, &mut out);
                },
            );
            if !keep {
                let mut bytes = Vec::new();
                masked_frame(&mut bytes, Opcode::Text, true, KEY, &compressed);
                let alone = Deflate {
                    server_no_context: true,
                    client_no_context: true,
                    server_bits: 15,
                    client_bits: 15,
                };
                measure_reading(&format!("{name}: read compressed text"), &bytes, Some(alone), 1);
                let kept = Deflate {
                    client_no_context: false,
                    ..alone
                };
                measure_reading(
                    &format!("{name}: read compressed text with context"),
                    &bytes,
                    Some(kept),
                    1,
                );
            }
        }
    }
}

fn main() {
    reading();
    deflating();
    let payload = json(65_536);
    let mut out = Vec::new();
    for size in [64, 65_536] {
        measure(&format!("{size} B: write a frame"), || {
            out.clear();
            frame(&mut out, Opcode::Text, false, black_box(&payload[..size]));
        });
        measure(&format!("{size} B: write an event"), || {
            out.clear();
            event_stream::event(&mut out, black_box(&payload[..size]), None, None, None);
        });
    }
    let request =
        b"GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n";
    let limits = HeadLimits {
        head_bytes: 1_000,
        fields: 10,
        target_bytes: 100,
    };
    let mut head = Head::default();
    assert_eq!(head.parse(request, &limits), Ok(true));
    measure("negotiate", || {
        black_box(negotiate(black_box(&head), request, Context::PerMessage));
    });
}
