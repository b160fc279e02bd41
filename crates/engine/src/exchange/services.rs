//! The parts of an engine that all its exchanges need.

use super::body_sender::BodySender;
use super::deadline::Deadlines;
use super::plain::HTML;
use crate::clock::http_date;
use crate::config::Config;
use crate::files::Files;
use crate::http::http1::{write_head, BodyFraming, ConnectionField, HeadEnd};
use crate::http::response::ResponseHead;
use crate::observe::excess::About;
use crate::realtime::Realtime;
use crate::spool::{Relief, Spool};
use crate::stream::output::Spill;
use crate::worker::Worker;
use fairlead_wire::http1::reason;
use std::sync::{Arc, Weak};

const PLAIN_TEXT: &str = "text/plain";

/// Seconds after which a client may try again.
pub(crate) const RETRY_AFTER: &[u8] = b"1";

/// See the head of this file.
pub(crate) struct Services {
    pub(crate) worker: Arc<Worker>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Files,
    pub(crate) realtime: Arc<Realtime>,
    pub(crate) relief: Weak<dyn Relief>,
    pub(crate) deadlines: Deadlines,
    pub(crate) body_sender: BodySender,
}

impl Services {
    pub(super) fn config(&self) -> &Config {
        &self.worker.config
    }

    /// The destination of bytes that the buffer of the connection cannot hold.
    pub(super) fn spill(&self) -> Spill<'_> {
        Spill::new(&self.worker.config, &self.spool)
    }

    /// Writes a response of the server itself that ends the connection: the status, and its error page or a short text.
    /// Returns the length of its body.
    pub(crate) fn write_closing(&self, status: u16, is_head_request: bool, buffer: &mut Vec<u8>) -> u64 {
        let plain = format!("{}\n", reason(status));
        let (content_type, body) = match self.files.page(status) {
            Some(page) => (HTML, page),
            None => (PLAIN_TEXT, plain.as_bytes()),
        };
        let mut head = ResponseHead::default();
        head.start(status);
        head.fields.add(b"content-type", content_type.as_bytes());
        if status == 503 {
            head.fields.add(b"retry-after", RETRY_AFTER);
        }
        let date = http_date();
        let end = HeadEnd {
            framing: Some(BodyFraming::Length(body.len() as u64)),
            connection: ConnectionField::Close,
            date: Some(date.as_bytes()),
            is_head_request,
        };
        write_head(&head, end, buffer);
        if !is_head_request {
            buffer.extend_from_slice(body);
        }
        body.len() as u64
    }

    /// Logs that a client was aborted to free memory for other responses.
    pub(crate) fn log_abort(&self) {
        self.worker.log.about_peer(
            About::SlowReader,
            None,
            format_args!("aborted the slowest reader: unsent responses have reached response_memory_total_bytes, and requests wait"),
        );
    }
}
