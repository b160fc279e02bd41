//! What is logged of a request.

use super::Engine;
use crate::clock::nanoseconds;
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::observe::access_log::{escaped, LogLine};
use fairlead_wire::{Field, Span, Version};

impl Engine {
    /// Logs a response and what was wrong with it.
    pub(super) fn record(&self, connection: &Connection, ended: &Ended) {
        if let Some(fault) = ended.faulty {
            let target = escaped(connection.head.target.of(&connection.input));
            self.worker.log.error(format_args!("{fault} ({target})"));
        }
        let seconds = nanoseconds().saturating_sub(connection.arrived()) as f64 / 1e9;
        self.record_access(connection, true, ended.status, ended.body_bytes, seconds);
    }

    /// Logs what the server refused by itself; of a request that is not whole nothing is repeated.
    pub(super) fn record_refusal(&self, connection: &Connection, status: u16, bytes: u64) {
        self.record_access(connection, false, status, bytes, 0.0);
    }

    fn record_access(&self, connection: &Connection, is_whole: bool, status: u16, bytes: u64, seconds: f64) {
        let Some(format) = self.worker.log.access_format() else {
            return;
        };
        let host = connection
            .peer()
            .map_or_else(|| "-".to_string(), |peer| peer.ip().to_canonical().to_string());
        let (head, input) = (&connection.head, &connection.input[..]);
        let text = |span: Span| if is_whole { span.of(input) } else { b"-" };
        let field = |name: &[u8]| {
            let is_it = |field: &&Field| is_whole && field.name.of(input).eq_ignore_ascii_case(name);
            head.fields
                .iter()
                .find(is_it)
                .map_or(&b""[..], |field| field.value.of(input))
        };
        let line = LogLine {
            host,
            method: text(head.method),
            target: text(head.target),
            protocol: match head.version {
                _ if !is_whole => "-",
                Version::Http10 => "HTTP/1.0",
                Version::Http11 => "HTTP/1.1",
            },
            referer: field(b"referer"),
            user_agent: field(b"user-agent"),
            status,
            bytes,
            seconds,
        };
        self.worker.log.access(|out| line.write(format, out));
    }
}
