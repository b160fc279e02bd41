//! Decodes a coded stream as it arrives, as a peer would, with other libraries.

use crate::puff;
use fairlead_wire::content_encoding::Coding;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Write;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// A decoder that gets the bytes as they arrive, and asserts that they are valid.
pub(crate) struct Peer {
    decoder: Decoder,
    /// All decoded content.
    pub(crate) content: Vec<u8>,
    ended: bool,
}

enum Decoder {
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::raw::Decoder<'static>),
    Gzip(Decompress),
}

impl Peer {
    pub(crate) fn new(coding: Coding) -> Peer {
        let decoder = match coding {
            Coding::Brotli => Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(Vec::new(), 4_096))),
            Coding::Zstd => Decoder::Zstd(zstd::stream::raw::Decoder::new().expect("memory for a decoder")),
            Coding::Gzip => Decoder::Gzip(Decompress::new_gzip(15)),
        };
        Peer {
            decoder,
            content: Vec::new(),
            ended: false,
        }
    }

    /// Decodes `bytes`, together with all earlier bytes.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        match &mut self.decoder {
            Decoder::Brotli(writer) => {
                writer.write_all(bytes).expect("sound brotli");
                // The decoder keeps output that does not fit into its buffer, and returns it with the next call.
                while !writer.get_ref().is_empty() {
                    self.content.append(writer.get_mut());
                    assert_eq!(writer.write(&[]).expect("sound brotli"), 0);
                }
            }
            Decoder::Zstd(decoder) => {
                let mut input = InBuffer::around(bytes);
                loop {
                    assert!(!self.ended || input.pos() == bytes.len(), "bytes behind the frame");
                    self.content.reserve(1_000);
                    let filled = self.content.len();
                    let mut room = OutBuffer::around_pos(&mut self.content, filled);
                    let wanted = decoder.run(&mut input, &mut room).expect("sound zstd");
                    let full = room.pos() == room.capacity();
                    self.ended |= wanted == 0;
                    if self.ended || (input.pos() == bytes.len() && !full) {
                        assert_eq!(input.pos(), bytes.len(), "bytes behind the frame");
                        return;
                    }
                }
            }
            Decoder::Gzip(inflater) => {
                let start = inflater.total_in();
                loop {
                    self.content.reserve(1_000);
                    let rest = &bytes[(inflater.total_in() - start) as usize..];
                    let status = inflater.decompress_vec(rest, &mut self.content, FlushDecompress::None);
                    match status.expect("sound gzip") {
                        Status::StreamEnd => {
                            assert_eq!(
                                (inflater.total_in() - start) as usize,
                                bytes.len(),
                                "bytes behind the trailer"
                            );
                            self.ended = true;
                            return;
                        }
                        _ if self.content.len() < self.content.capacity() => return,
                        _ => {}
                    }
                }
            }
        }
    }

    /// Returns the content, and true if the stream has ended with the last byte that was read.
    pub(crate) fn end(self) -> (Vec<u8>, bool) {
        match self.decoder {
            Decoder::Brotli(mut writer) => (self.content, writer.close().is_ok()),
            _ => (self.content, self.ended),
        }
    }
}

/// Decodes bytes that must be exactly one whole stream.
pub(crate) fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut peer = Peer::new(coding);
    peer.read(bytes);
    let (content, ended) = peer.end();
    assert!(ended, "{coding:?}: {} bytes are not the whole stream", bytes.len());
    content
}

/// Does the same for gzip (RFC 1952 §2.3), slowly and without any library.
pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    assert_eq!(bytes[..4], [0x1f, 0x8b, 8, 0], "no optional parts");
    assert_eq!(bytes[4..8], [0; 4], "no time");
    let (deflated, trailer) = bytes[10..].split_at(bytes.len() - 18);
    let content = puff::inflate(deflated);
    assert!(content.complete);
    let content = content.bytes;
    assert_eq!(trailer[..4], crc32(&content).to_le_bytes());
    assert_eq!(trailer[4..], (content.len() as u32).to_le_bytes());
    content
}

/// RFC 1952 §8, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, &byte| {
        let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        (0..8).fold(crc ^ u32::from(byte), step)
    });
    !crc
}
