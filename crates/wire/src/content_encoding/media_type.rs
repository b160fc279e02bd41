//! Media types (RFC 9110 §8.3.1) for compression: the types that are some form of text, and patterns for others.

use crate::fields::trim;

/// Types that compress well, besides `text/*` and the types with one of the [`SUFFIXES`].
const COMPRESSIBLE: &[&str] = &[
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/json5",
    "application/jsonlines",
    "application/ndjson",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "message/rfc822",
    "model/obj",
];

/// Structured syntaxes that are text (RFC 6838 §4.2.8).
const SUFFIXES: &[&str] = &["+json", "+xml", "+yaml", "+json-seq"];

/// Returns true if content of this type is worth compressing. Parameters do not matter. An event stream is text, but
/// must arrive while it is made, in pieces that are too small to gain from compression.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let essence = essence(content_type);
    let is = |known: &&str| essence.eq_ignore_ascii_case(known.as_bytes());
    if is(&"text/event-stream") {
        return false;
    }
    matches_type(essence, b"text/*")
        || SUFFIXES.iter().any(|suffix| ends_with(essence, suffix.as_bytes()))
        || COMPRESSIBLE.iter().any(is)
}

/// Returns true if a type matches `pattern`: a type such as `application/json`, or a range such as `text/*` or `*/*`.
pub fn matches_type(content_type: &[u8], pattern: &[u8]) -> bool {
    let essence = essence(content_type);
    let slash = memchr::memchr(b'/', essence);
    match pattern {
        b"*/*" => slash.is_some(),
        [kind @ .., b'/', b'*'] => slash.is_some_and(|slash| essence[..slash].eq_ignore_ascii_case(kind)),
        _ => essence.eq_ignore_ascii_case(pattern),
    }
}

/// The type without its parameters.
fn essence(content_type: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    trim(&content_type[..end])
}

fn ends_with(text: &[u8], suffix: &[u8]) -> bool {
    let start = text.len().checked_sub(suffix.len());
    start.is_some_and(|start| text[start..].eq_ignore_ascii_case(suffix))
}
