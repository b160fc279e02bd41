//! The access log: one line for each response, in the Common or Combined Log Format or as JSON.
//!
//! What a client has sent is escaped, so that it can neither forge a line nor move the cursor of a terminal.

use crate::clock::unix_seconds;
use crate::config::Format;
use std::io::Write;

/// The contents of one line.
pub(crate) struct LogLine<'a> {
    pub(crate) host: String,
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) protocol: &'static str,
    pub(crate) referer: &'a [u8],
    pub(crate) user_agent: &'a [u8],
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl LogLine<'_> {
    pub(crate) fn write(&self, format: Format, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match format {
            Format::Json => self.write_json(out),
            Format::Common | Format::Combined => self.write_common(format, out),
        };
        out.push(b'\n');
    }

    fn write_common(&self, format: Format, out: &mut Vec<u8>) -> std::io::Result<()> {
        let (method, target) = (escaped(self.method), escaped(self.target));
        write!(
            out,
            "{} - - [{}] \"{method} {target} {}\" {} {}",
            self.host,
            local_time(),
            self.protocol,
            self.status,
            self.bytes,
        )?;
        if format == Format::Combined {
            write!(out, " \"{}\" \"{}\"", dash(self.referer), dash(self.user_agent))?;
        }
        write!(out, " {:.4}", self.seconds)
    }

    fn write_json(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        write!(
            out,
            "{{\"time\":{},\"remote\":\"{}\",\"method\":\"{}\",\"target\":\"{}\",\"protocol\":\"{}\",\"status\":{},\
             \"bytes\":{},\"seconds\":{:.6},\"referer\":\"{}\",\"user_agent\":\"{}\"}}",
            unix_seconds(),
            self.host,
            json(self.method),
            json(self.target),
            self.protocol,
            self.status,
            self.bytes,
            self.seconds,
            json(self.referer),
            json(self.user_agent),
        )
    }
}

fn dash(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        "-".into()
    } else {
        escaped(bytes)
    }
}

/// Printable ASCII unchanged; quotes, backslashes and all other bytes as `\xHH`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => text.push_str(&format!("\\x{byte:02x}")),
            _ => text.push(char::from(byte)),
        }
    }
    text
}

fn json(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.push_str(&format!("\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text
}

/// `20/Nov/2026:13:37:00 +0000`: always in UTC.
fn local_time() -> String {
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_seconds());
    // `Fri, 20 Nov 2026 13:37:00 GMT`
    let text = httpdate::fmt_http_date(now);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_string();
    format!("{}/{}/{}:{} +0000", part(5..7), part(8..11), part(12..16), part(17..25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_of_a_client_cannot_forge_a_line_or_move_the_cursor() {
        assert_eq!(escaped(b"/a\" 200\n\x1b[2J\xff"), "/a\\x22 200\\x0a\\x1b[2J\\xff");
        assert_eq!(json(b"a\"b\\\n\xff"), "a\\\"b\\\\\\u000a\u{fffd}");
    }

    #[test]
    fn the_time_has_the_form_of_the_common_log_format() {
        let text = local_time();
        assert_eq!(text.len(), "20/Nov/2026:13:37:00 +0000".len(), "{text}");
        assert_eq!((&text[2..3], &text[6..7], &text[11..12]), ("/", "/", ":"), "{text}");
    }
}
