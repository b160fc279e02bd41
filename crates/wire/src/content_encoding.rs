//! Content codings (RFC 9110 §8.4): the codings that a request accepts, the media types that are worth compressing, and
//! [`Encoder`], which compresses content while it is made.

mod accepted;
mod brotli;
mod encoder;
mod gzip;
mod media_type;
mod zstd;

pub use accepted::Accepted;
pub use encoder::Encoder;
pub use media_type::{is_compressible, matches_type};

/// A content coding that this server knows, besides `identity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// All codings, ordered by the size of their results, smallest first.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// All codings, ordered by the speed of their [`Encoder`], fastest first. Their results differ in size by less than
    /// a tenth.
    pub const QUICKEST_FIRST: [Coding; 3] = [Coding::Zstd, Coding::Gzip, Coding::Brotli];

    /// The name in Accept-Encoding and Content-Encoding.
    pub fn token(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// The suffix of files that are compressed with this coding.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }

    /// The coding for a `token`, ignoring case. `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    fn named(token: &[u8]) -> Option<Coding> {
        let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
        let known = Coding::ALL.into_iter().find(|coding| is(coding.token()));
        known.or_else(|| is("x-gzip").then_some(Coding::Gzip))
    }
}
