//! Compressible types, and types that match a pattern.

use fairlead_wire::content_encoding::{is_compressible, matches_type};

#[test]
fn text_in_any_form_is_compressible() {
    for content_type in [
        "text/html",
        "text/html; charset=utf-8",
        "text/html;charset=utf-8;x=\"a/b\"",
        "TEXT/HTML",
        " text/plain\t; charset=utf-8",
        "text/css",
        "text/javascript",
        "text/x-unheard-of",
        "application/json",
        "Application/JSON;charset=utf-8",
        "application/javascript",
        "application/x-ndjson",
        "application/xml",
        "application/xhtml+xml",
        "application/rss+xml; charset=utf-8",
        "application/ld+json",
        "application/vnd.api+JSON",
        "application/wasm",
        "image/svg+xml",
        "font/ttf",
    ] {
        assert!(is_compressible(content_type.as_bytes()), "{content_type}");
    }
}

#[test]
fn what_is_compressed_already_or_must_not_wait_is_not() {
    for content_type in [
        "",
        ";",
        "; charset=utf-8",
        "text",
        "text;/html",
        "texts/html",
        "html",
        "json",
        "image/png",
        "image/jpeg",
        "image/webp",
        "video/mp4",
        "audio/mpeg",
        "font/woff",
        "font/woff2",
        "application/zip",
        "application/gzip",
        "application/pdf",
        "application/octet-stream",
        "application/octet-stream; name=a+json",
        "application/json2",
        "application/xml+zip",
        "application/jsonx+",
        "multipart/form-data",
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "\u{e4}\u{f6}\u{fc}",
    ] {
        assert!(!is_compressible(content_type.as_bytes()), "{content_type}");
    }
}

#[test]
fn a_pattern_is_a_type_or_all_of_a_kind() {
    let cases = [
        ("text/html", "text/html", true),
        ("text/html; charset=utf-8", "TEXT/html", true),
        ("text/html", "text/*", true),
        ("Text/HTML", "tEXT/*", true),
        ("text/event-stream", "text/*", true),
        ("application/pdf", "*/*", true),
        ("text/html", "text/htm", false),
        ("text/htm", "text/html", false),
        ("text/html", "text/", false),
        ("text/html", "text", false),
        ("text/html", "*", false),
        ("texts/html", "text/*", false),
        ("text", "text/*", false),
        ("application/text/html", "text/*", false),
        ("text", "*/*", false),
        ("", "*/*", false),
        ("", "text/*", false),
        ("text/html", "", false),
        ("text/html; x=y/z", "*/z", false),
    ];
    for (content_type, pattern, expected) in cases {
        let matched = matches_type(content_type.as_bytes(), pattern.as_bytes());
        assert_eq!(matched, expected, "{content_type:?} {pattern:?}");
    }
}
