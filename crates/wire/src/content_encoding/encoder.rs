//! [`Encoder`]: content to its coded form, while the content is made.

use super::brotli::Brotli;
use super::gzip::Gzip;
use super::zstd::Zstd;
use super::Coding;

/// Compresses one content. What it makes is appended to the buffer it is given; when, is its own affair, except that a
/// flush lets nothing wait.
///
/// It holds memory until the end of the stream and none after: 0.4 MiB for gzip, 1.2 for zstd, 0.5 and up to 2.3 for brotli,
/// which depends on the content. No call fails. Where there is no memory the process ends, as with any other allocation of
/// Rust's; the library that is not Rust allocates in [`Encoder::new`] only.
pub struct Encoder {
    /// `None` once the stream has ended.
    stream: Option<Stream>,
    /// Something has been written since the last flush.
    unflushed: bool,
}

enum Stream {
    Brotli(Box<Brotli>),
    Zstd(Zstd),
    Gzip(Gzip),
}

impl Encoder {
    /// An encoder for one content.
    pub fn new(coding: Coding) -> Encoder {
        let stream = match coding {
            Coding::Brotli => Stream::Brotli(Box::new(Brotli::new())),
            Coding::Zstd => Stream::Zstd(Zstd::new()),
            Coding::Gzip => Stream::Gzip(Gzip::new()),
        };
        Encoder {
            stream: Some(stream),
            unflushed: false,
        }
    }

    /// Takes the next bytes of the content. Without effect after [`Encoder::finish`].
    pub fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if input.is_empty() {
            return;
        }
        self.unflushed = true;
        match &mut self.stream {
            Some(Stream::Brotli(brotli)) => brotli.write(input, out),
            Some(Stream::Zstd(zstd)) => zstd.write(input, out),
            Some(Stream::Gzip(gzip)) => gzip.write(input, out),
            None => {}
        }
    }

    /// Appends what is still missing for the peer to read all that was written so far. Appends nothing when that is
    /// nothing, and after [`Encoder::finish`].
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.unflushed) {
            return;
        }
        match &mut self.stream {
            Some(Stream::Brotli(brotli)) => brotli.flush(out),
            Some(Stream::Zstd(zstd)) => zstd.flush(out),
            Some(Stream::Gzip(gzip)) => gzip.flush(out),
            None => {}
        }
    }

    /// Ends the stream. A second call appends nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.stream.take() {
            Some(Stream::Brotli(mut brotli)) => brotli.finish(out),
            Some(Stream::Zstd(mut zstd)) => zstd.finish(out),
            Some(Stream::Gzip(mut gzip)) => gzip.finish(out),
            None => {}
        }
    }
}
