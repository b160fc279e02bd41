//! The media type of a file, and the time for which it may be cached (RFC 9111 §5.2.2), derived from its name.

use fairlead_wire::pattern::glob_matches;

/// For files with a name that changes whenever their content changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// For all other files: may be stored, but must be validated before use. A 304 costs no body.
const ASK: &str = "no-cache";

/// Minimum number of hex digits of a fingerprint.
const FINGERPRINT: usize = 8;

/// The Content-Type of a file with this name.
pub(crate) fn content_type(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let guess = match mime_guess::from_path(name).first_raw() {
        // RFC 9239 registers all scripts as one type; RFC 8081 gives fonts their own top-level type.
        Some("application/javascript") => "text/javascript",
        Some("application/font-woff") => "font/woff",
        Some(guess) => guess,
        None => "application/octet-stream",
    };
    if is_text(guess) {
        format!("{guess}; charset=utf-8")
    } else {
        guess.to_string()
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+json")
        || matches!(media_type, "application/json" | "application/xml")
}

/// The Cache-Control of the file at `path` (relative): the value of the first of `rules` with a pattern that matches,
/// or a default that depends on the file's name.
pub(crate) fn cache_control<'a>(rules: &'a [(String, String)], path: &str) -> &'a str {
    let absolute = format!("/{path}");
    let matches = |(pattern, _): &&(String, String)| glob_matches(pattern.as_bytes(), absolute.as_bytes());
    match rules.iter().find(matches) {
        Some((_, value)) => value,
        None if has_fingerprint(&absolute) => FOR_EVER,
        None => ASK,
    }
}

/// Returns true if the name contains a digest of the content, as written by Sprockets, Propshaft, webpack (`-` or `.`
/// and hex digits) or Vite (`-` and eight letters, digits, `-` or `_`, in `/assets/`). A part that may also be a word
/// or a date does not count.
fn has_fingerprint(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut parts = name.split(['-', '.']);
    let base = parts.next();
    // Digits alone may be a date.
    let is_digest = |part: &str| {
        part.len() >= FINGERPRINT
            && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    if base.is_some_and(|base| !base.is_empty()) && parts.any(is_digest) {
        return true;
    }
    let is_asset = folder.ends_with("/assets") || folder.contains("/assets/");
    is_asset && name.rsplit_once('.').is_some_and(|(stem, _)| ends_as_vite_does(stem))
}

fn ends_as_vite_does(stem: &str) -> bool {
    let bytes = stem.as_bytes();
    let Some(start) = bytes.len().checked_sub(FINGERPRINT) else {
        return false;
    };
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    start >= 2
        && bytes[start - 1] == b'-'
        && bytes[start..].iter().all(is_part)
        && bytes[start..].iter().any(u8::is_ascii_digit)
        && bytes[start..].iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_media_type() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.css", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("logo.SVG", "image/svg+xml; charset=utf-8"),
            ("data.json", "application/json; charset=utf-8"),
            ("app.webmanifest", "application/manifest+json; charset=utf-8"),
            ("photo.jpeg", "image/jpeg"),
            ("photo.avif", "image/avif"),
            ("photo.webp", "image/webp"),
            ("font.woff2", "font/woff2"),
            ("font.woff", "font/woff"),
            ("app.wasm", "application/wasm"),
            ("film.mp4", "video/mp4"),
            ("paper.pdf", "application/pdf"),
            ("all.tar.gz", "application/gzip"),
            ("noextension", "application/octet-stream"),
            ("html/x", "application/octet-stream"),
            ("x.unheard-of", "application/octet-stream"),
        ] {
            assert_eq!(content_type(path), expected, "{path}");
        }
    }

    #[test]
    fn a_name_with_a_fingerprint_may_be_cached_for_ever() {
        for (path, expected) in [
            ("assets/application-7c0b2f1e9a.js", FOR_EVER),
            ("assets/app-0123456789abcdef0123456789abcdef.digested.css", FOR_EVER),
            ("packs/main.3f2a1b4c.js", FOR_EVER),
            ("packs/main.3f2a1b4c.chunk.js.map", FOR_EVER),
            ("assets/index-BfXh3k2_.js", FOR_EVER),
            ("vite/assets/index-D8-dk3_x.css", FOR_EVER),
            ("index-BfXh3k2_.js", ASK),
            ("assets/index-explorer.js", ASK),
            ("assets/index-version2.js", ASK),
            ("assets/deadbeef.js", ASK),
            ("assets/report-20261121.pdf", ASK),
            ("assets/.deadbeef", ASK),
            ("assets/app-1234567.js", ASK),
            ("assets/jquery-3.7.1.js", ASK),
            ("index.html", ASK),
            ("", ASK),
            ("assets/x-1é345678.js", ASK),
        ] {
            assert_eq!(cache_control(&[], path), expected, "{path}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rule = |pattern: &str, value: &str| (pattern.to_string(), value.to_string());
        let rules = [
            rule("/fonts/*", "max-age=9"),
            rule("*.css", "no-store"),
            rule("/?.js", "max-age=1"),
        ];
        for (path, expected) in [
            ("fonts/deep/a.css", "max-age=9"),
            ("a.css", "no-store"),
            ("deep/a-0123456789ab.css", "no-store"),
            ("a.js", "max-age=1"),
            ("ab.js", ASK),
            ("x/fonts/a.png", ASK),
        ] {
            assert_eq!(cache_control(&rules, path), expected, "{path}");
        }
    }
}
