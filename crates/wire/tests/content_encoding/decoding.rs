//! What a peer makes of a coded stream as it arrives, by the decoders of other libraries.

use crate::puff;
use fairlead_wire::content_encoding::Coding;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Write;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// A decoder that is fed as bytes come in, and asserts that they are sound.
pub(crate) struct Peer {
    decoder: Decoder,
    /// All it has decoded.
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

    /// Decodes what `bytes` and all before them hold.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        match &mut self.decoder {
            Decoder::Brotli(writer) => {
                writer.write_all(bytes).expect("sound brotli");
                // It keeps back what does not fit into its buffer, and gives it when it is called again.
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

    /// Whether the stream has ended with the last byte that was read; gives the content.
    pub(crate) fn end(self) -> (Vec<u8>, bool) {
        match self.decoder {
            Decoder::Brotli(mut writer) => (self.content, writer.close().is_ok()),
            _ => (self.content, self.ended),
        }
    }
}

/// Decodes what has to be a whole stream and nothing else.
pub(crate) fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut peer = Peer::new(coding);
    peer.read(bytes);
    let (content, ended) = peer.end();
    assert!(ended, "{coding:?}: {} bytes are not the whole stream", bytes.len());
    content
}

/// The same for gzip (RFC 1952 §2.3), slowly and without any library.
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
