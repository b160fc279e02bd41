//! The encoder: whole streams, streams in pieces, and the bytes that a peer can read after a flush.

use crate::decoding::{decode, gunzip, Peer};
use crate::http1::Random;
use fairlead_wire::content_encoding::{Coding, Encoder};

/// Records as an application would list them.
fn json(length: usize) -> Vec<u8> {
    let mut random = Random::new(length as u64);
    let words = [
        "harbour", "invoice", "pending", "customer", "shipping", "review", "blue", "large",
    ];
    let mut entry = |id: usize| {
        let (first, second) = (random.pick(&words), random.pick(&words));
        let price = random.below(100_000);
        format!(
            "{{\"id\":{id},\"name\":\"{first} {second}\",\"price\":{price},\"active\":{}}},",
            price % 2 == 0
        )
    };
    (0..).flat_map(|id| entry(id).into_bytes()).take(length).collect()
}

fn noise(length: usize) -> Vec<u8> {
    let mut random = Random::new(3);
    (0..length).map(|_| random.below(256) as u8).collect()
}

fn encoded(coding: Coding, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(coding);
    encoder.write(content, &mut out);
    encoder.finish(&mut out);
    out
}

#[test]
fn content_of_any_length_and_kind_arrives() {
    let edges = [
        1, 2, 100, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 262_145,
    ];
    for coding in Coding::ALL {
        for length in edges.into_iter().chain([(1 << 20) + 1]) {
            for content in [json(length), noise(length), vec![0; length]] {
                let stream = encoded(coding, &content);
                assert!(decode(coding, &stream) == content, "{coding:?} {length}");
            }
        }
    }
}

#[test]
fn gzip_is_what_the_rfcs_say() {
    for content in [json(0), json(1), json(100_000), noise(40_000), vec![0; 100_000]] {
        assert!(gunzip(&encoded(Coding::Gzip, &content)) == content, "{}", content.len());
    }
}

#[test]
fn nothing_is_a_stream_too() {
    for coding in Coding::ALL {
        let stream = encoded(coding, b"");
        assert!(!stream.is_empty() && stream.len() <= 20, "{coding:?} {stream:?}");
        assert_eq!(decode(coding, &stream), b"");
        let mut out = Vec::new();
        let mut encoder = Encoder::new(coding);
        encoder.flush(&mut out);
        encoder.write(b"", &mut out);
        encoder.flush(&mut out);
        assert_eq!(out, b"", "{coding:?}");
        encoder.finish(&mut out);
        assert_eq!(out, stream, "{coding:?}");
    }
}

#[test]
fn output_is_appended() {
    for coding in Coding::ALL {
        let content = json(300_000);
        let mut out = b"before".to_vec();
        let mut encoder = Encoder::new(coding);
        encoder.write(&content, &mut out);
        encoder.flush(&mut out);
        encoder.finish(&mut out);
        assert_eq!(&out[..6], b"before");
        assert!(decode(coding, &out[6..]) == content, "{coding:?}");
    }
}

#[test]
fn a_stream_ends_once() {
    for coding in Coding::ALL {
        for content in [&b""[..], b"content"] {
            let mut out = Vec::new();
            let mut encoder = Encoder::new(coding);
            encoder.write(content, &mut out);
            encoder.finish(&mut out);
            let stream = out.clone();
            encoder.finish(&mut out);
            encoder.flush(&mut out);
            encoder.write(b"more", &mut out);
            encoder.flush(&mut out);
            encoder.finish(&mut out);
            assert_eq!(out, stream, "{coding:?}");
            assert_eq!(decode(coding, &out), content);
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_is_not_complete() {
    for coding in Coding::ALL {
        for content in [json(0), json(1_000), json(200_000)] {
            let stream = encoded(coding, &content);
            let ends = [0, 1, stream.len() / 2, stream.len() - 1];
            for end in ends.into_iter().filter(|&end| end < stream.len()) {
                let mut peer = Peer::new(coding);
                peer.read(&stream[..end]);
                let (read, ended) = peer.end();
                assert!(!ended, "{coding:?}: {end} of {}", stream.len());
                assert!(content.starts_with(&read), "{coding:?}: {end} of {}", stream.len());
            }
        }
    }
}

#[test]
fn a_flush_lets_nothing_wait() {
    let content = json(400_000);
    for coding in Coding::ALL {
        for size in [1, 7, 100, 5_000, 131_072, 300_000] {
            let mut peer = Peer::new(coding);
            let mut encoder = Encoder::new(coding);
            let mut out = Vec::new();
            for chunk in content[..content.len().min(300 * size)].chunks(size) {
                let written = peer.content.len() + chunk.len();
                encoder.write(chunk, &mut out);
                encoder.flush(&mut out);
                peer.read(&std::mem::take(&mut out));
                assert_eq!(peer.content.len(), written, "{coding:?} by {size}");
                assert!(content.starts_with(&peer.content), "{coding:?} by {size}");
                encoder.flush(&mut out);
                assert_eq!(out, b"", "{coding:?}: nothing new to flush");
            }
            encoder.finish(&mut out);
            peer.read(&out);
            let (read, ended) = peer.end();
            assert!(ended && content.starts_with(&read), "{coding:?} by {size}");
        }
    }
}

/// Writes of any size, flushes at any time, and reads of the output at any time.
#[test]
fn splits_and_flushes_change_nothing_but_the_size() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let length = [0, 10, 1_000, 70_000, 300_000][random.below(5)];
        let content = if random.below(3) == 0 {
            noise(length)
        } else {
            json(length)
        };
        let largest = [3, 200, 20_000, 400_000][random.below(4)].max(length / 400);
        for coding in Coding::ALL {
            let mut peer = Peer::new(coding);
            let mut encoder = Encoder::new(coding);
            let mut out = Vec::with_capacity(random.below(100));
            let mut written = 0;
            while written < content.len() {
                let size = (1 + random.below(largest)).min(content.len() - written);
                encoder.write(&content[written..written + size], &mut out);
                written += size;
                if random.below(4) == 0 {
                    encoder.flush(&mut out);
                    peer.read(&out);
                    out.clear();
                    assert_eq!(peer.content.len(), written, "{coding:?}, seed {seed}");
                }
                if random.below(4) == 0 {
                    peer.read(&out);
                    out = Vec::new();
                }
            }
            encoder.finish(&mut out);
            peer.read(&out);
            let (read, ended) = peer.end();
            assert!(ended && read == content, "{coding:?}, seed {seed}");
        }
    }
}

#[test]
fn text_gets_much_smaller_and_noise_hardly_larger() {
    for coding in Coding::ALL {
        let text = encoded(coding, &json(100_000)).len();
        assert!(text < 25_000, "{coding:?}: {text}");
        let noise = encoded(coding, &noise(100_000)).len();
        assert!(noise < 100_100, "{coding:?}: {noise}");
        let short = encoded(coding, &json(2_000)).len();
        assert!(short < 1_000, "{coding:?}: {short}");
    }
}

#[test]
fn what_comes_again_is_found_across_writes_and_flushes() {
    for coding in Coding::ALL {
        let noise = noise(20_000);
        let mut encoder = Encoder::new(coding);
        let mut out = Vec::new();
        for _ in 0..10 {
            encoder.write(&noise, &mut out);
            encoder.flush(&mut out);
        }
        encoder.finish(&mut out);
        assert!(out.len() < 25_000, "{coding:?}: {}", out.len());
        assert!(decode(coding, &out) == noise.repeat(10));
    }
}

/// RFC 8878 §3.1.1.1.2: the window is the memory that a peer needs; RFC 9659 limits it to 8 MiB.
#[test]
fn no_zstd_frame_asks_for_much_memory() {
    for length in [0, 1, 1_000, 3 << 20] {
        let stream = encoded(Coding::Zstd, &vec![b'a'; length]);
        assert_eq!(stream[..4], [0x28, 0xb5, 0x2f, 0xfd]);
        let single_segment = stream[4] & 0b10_0000 != 0;
        assert!(!single_segment, "then the window would be the content");
        let (exponent, mantissa) = (u32::from(stream[5]) >> 3, u64::from(stream[5]) & 7);
        let base = 1u64 << (10 + exponent);
        assert!(base + base / 8 * mantissa <= 1 << 18, "{length}");
    }
}

/// RFC 7932 §9.1: the window is in the first bits of a stream, here for 10 to 17 bits.
#[test]
fn no_brotli_stream_asks_for_much_memory() {
    for length in [0, 1, 1_000, 3 << 20] {
        let stream = encoded(Coding::Brotli, &vec![b'a'; length]);
        assert!(
            stream[0] & 0b1 == 0 || stream[0] & 0b1110 == 0,
            "{length}: {:08b}",
            stream[0]
        );
    }
}

#[test]
fn an_encoder_may_move_to_another_thread() {
    for coding in Coding::ALL {
        let mut encoder = Encoder::new(coding);
        let mut out = Vec::new();
        encoder.write(b"here, ", &mut out);
        let other = std::thread::spawn(move || {
            encoder.write(b"there", &mut out);
            encoder.finish(&mut out);
            out
        });
        let stream = other.join().expect("it does not panic");
        assert_eq!(decode(coding, &stream), b"here, there");
    }
}
