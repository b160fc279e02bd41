//! Content codings (RFC 9110 §8.4): which of them a request accepts, which types are worth the work, and [`Encoder`],
//! which compresses while the content is made.

mod accepted;
mod brotli;
mod encoder;
mod gzip;
mod media_type;
mod zstd;

pub use accepted::Accepted;
pub use encoder::Encoder;
pub use media_type::{is_compressible, matches_type};

/// A content coding this server knows besides `identity`, which is none.
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
    /// All of them, the one that makes the smallest files first.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// All of them, the one whose [`Encoder`] takes the least time first. Their sizes are within a tenth of each other.
    pub const QUICKEST_FIRST: [Coding; 3] = [Coding::Zstd, Coding::Gzip, Coding::Brotli];

    /// Its name in Accept-Encoding and Content-Encoding.
    pub fn token(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// What the name of a file that is compressed with it ends in.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }

    /// The coding of a `token`, in any case. `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    fn named(token: &[u8]) -> Option<Coding> {
        let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
        let known = Coding::ALL.into_iter().find(|coding| is(coding.token()));
        known.or_else(|| is("x-gzip").then_some(Coding::Gzip))
    }
}
