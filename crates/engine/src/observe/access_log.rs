//! The access log: one line for each response, as text in the configured format, or as JSON.
//!
//! Input of a client is escaped, so that it can neither forge a line nor move the cursor of a terminal.

use crate::clock::unix_seconds;
use crate::config::log_format::{Format, Piece, Unit, Wait};
use crate::http::request::{Request, Waits};
use fairlead_wire::Version;
use std::io::Write;
use std::time::Duration;

/// The contents of one line.
pub(crate) struct LogLine<'a> {
    /// The client.
    pub(crate) host: String,
    /// The peer of its connection.
    pub(crate) peer: String,
    /// `None` for a refused request.
    pub(crate) request: Option<&'a Request>,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
    /// `None` if it is unknown.
    pub(crate) lock_wait: Option<Duration>,
}

impl LogLine<'_> {
    pub(crate) fn write(&self, format: &Format, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match format {
            Format::Json => self.write_json(out),
            Format::Text(pieces) => pieces.iter().try_for_each(|piece| self.write_piece(piece, out)),
        };
        out.push(b'\n');
    }

    fn write_piece(&self, piece: &Piece, out: &mut Vec<u8>) -> std::io::Result<()> {
        match piece {
            Piece::Literal(text) => write!(out, "{text}"),
            Piece::Host => write!(out, "{}", self.host),
            Piece::Peer => write!(out, "{}", self.peer),
            Piece::Time => write!(out, "[{}]", local_time()),
            Piece::RequestLine => {
                let (method, target) = (escaped(self.method()), escaped(self.target()));
                write!(out, "{method} {target} {}", self.protocol())
            }
            Piece::Method => write!(out, "{}", escaped(self.method())),
            Piece::Path => write!(out, "{}", escaped(self.target_parts().0)),
            Piece::Query => write!(out, "{}", escaped(self.target_parts().1)),
            Piece::Protocol => write!(out, "{}", self.protocol()),
            Piece::Status => write!(out, "{}", self.status),
            Piece::Bytes { dash: true } if self.bytes == 0 => write!(out, "-"),
            Piece::Bytes { .. } => write!(out, "{}", self.bytes),
            Piece::Took(Unit::Fraction) => write!(out, "{:.4}", self.took.as_secs_f64()),
            Piece::Took(Unit::Seconds) => write!(out, "{}", self.took.as_secs()),
            Piece::Took(Unit::Milliseconds) => write!(out, "{}", self.took.as_millis()),
            Piece::Took(Unit::Microseconds) => write!(out, "{}", self.took.as_micros()),
            Piece::Process => write!(out, "{}", std::process::id()),
            Piece::Field(name) => write!(out, "{}", dash(self.field(name))),
            Piece::TraceId => write!(out, "{}", dash(self.trace_id().unwrap_or_default())),
            Piece::Wait(wait) => match self.waited(*wait) {
                Some(time) => write!(out, "{:.6}", time.as_secs_f64()),
                None => write!(out, "-"),
            },
        }
    }

    fn write_json(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        write!(
            out,
            "{{\"time\":{},\"remote\":\"{}\",\"peer\":\"{}\",\"method\":\"{}\",\"target\":\"{}\",\"protocol\":\"{}\",\"status\":{},\
             \"bytes\":{},\"seconds\":{:.6},\"referer\":\"{}\",\"user_agent\":\"{}\"",
            unix_seconds(),
            self.host,
            self.peer,
            json(self.method()),
            json(self.target()),
            self.protocol(),
            self.status,
            self.bytes,
            self.took.as_secs_f64(),
            json(self.field(b"referer")),
            json(self.field(b"user-agent")),
        )?;
        let waits = [
            ("queue_time", Wait::Queue),
            ("waiting_room_time", Wait::WaitingRoom),
            ("lock_wait", Wait::Lock),
        ];
        for (name, wait) in waits {
            match self.waited(wait) {
                Some(time) => write!(out, ",\"{name}\":{:.6}", time.as_secs_f64())?,
                None => write!(out, ",\"{name}\":null")?,
            }
        }
        match self.trace_id() {
            Some(id) => write!(out, ",\"trace_id\":\"{}\"}}", json(id)),
            None => write!(out, "}}"),
        }
    }

    fn method(&self) -> &[u8] {
        self.request.map_or(b"-", Request::method)
    }

    fn target(&self) -> &[u8] {
        self.request.map_or(b"-", Request::target)
    }

    /// The target without its query, and the query with its question mark.
    fn target_parts(&self) -> (&[u8], &[u8]) {
        let target = self.target();
        let query = self.request.and_then(Request::query);
        target.split_at(target.len() - query.map_or(0, |query| query.len() + 1))
    }

    fn protocol(&self) -> &'static str {
        match self.request.map(Request::version) {
            None => "-",
            Some(Version::Http10) => "HTTP/1.0",
            Some(Version::Http11) => "HTTP/1.1",
            Some(Version::Http2) => "HTTP/2.0",
        }
    }

    fn field(&self, name: &[u8]) -> &[u8] {
        self.request.and_then(|request| request.field(name)).unwrap_or_default()
    }

    fn trace_id(&self) -> Option<&[u8]> {
        self.request.and_then(Request::trace_id)
    }

    fn waited(&self, wait: Wait) -> Option<Duration> {
        let waits = self.request.map_or(Waits::default(), Request::waits);
        match wait {
            Wait::Queue => Some(waits.queue),
            Wait::WaitingRoom => Some(waits.waiting_room),
            Wait::Lock => self.lock_wait,
        }
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
