//! The head of a response: interim responses, the status line, the app's fields, and what follows for the framing of the body
//! (RFC 9110 §6.4, RFC 9112 §6).

use super::upgrade::is_own_field;
use super::{BodyFraming, Exchange, FieldError, ResponsePhase};
use crate::files::Named;
use fairlead_wire::{fields, has_no_body, reason, Version};

impl Exchange<'_> {
    /// Begins an interim response (RFC 8297), whose fields follow. False when there can be none: it is switched off, the
    /// client speaks HTTP/1.0, or the final response has begun.
    pub fn start_early_hints(&mut self) -> bool {
        if self.phase != ResponsePhase::NotStarted
            || self.head().version == Version::Http10
            || !self.services.config().early_hints
        {
            return false;
        }
        self.connection
            .output
            .buffer()
            .extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        self.phase = ResponsePhase::EarlyHints;
        true
    }

    /// Whether fields go into an interim response.
    pub fn is_hinting(&self) -> bool {
        self.phase == ResponsePhase::EarlyHints
    }

    /// Ends the interim response and sends it.
    pub fn end_early_hints(&mut self) {
        if self.phase == ResponsePhase::EarlyHints {
            self.connection.output.buffer().extend_from_slice(b"\r\n");
            self.phase = ResponsePhase::NotStarted;
            self.flush();
            self.flushed = false;
            self.start = self.connection.output.buffer().len();
        }
    }

    /// Takes back an interim response that was begun and not ended.
    pub fn cancel_early_hints(&mut self) {
        if self.phase == ResponsePhase::EarlyHints {
            self.connection.output.buffer().truncate(self.start);
            self.phase = ResponsePhase::NotStarted;
        }
    }

    /// Begins the final response.
    pub fn start(&mut self, status: u16) {
        self.cancel_early_hints();
        self.phase = ResponsePhase::Head;
        self.status = status;
        let buffer = self.connection.output.buffer();
        if status == 200 {
            buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            return;
        }
        buffer.extend_from_slice(b"HTTP/1.1 ");
        buffer.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        buffer.push(b' ');
        buffer.extend_from_slice(reason(status).as_bytes());
        buffer.extend_from_slice(b"\r\n");
    }

    /// Whether a head has been begun and not ended.
    pub fn takes_fields(&self) -> bool {
        matches!(
            self.phase,
            ResponsePhase::EarlyHints | ResponsePhase::Head | ResponsePhase::Upgrade(..)
        )
    }

    /// Adds one field line. Framing fields are taken as announcements; `connection` is the server's business but for
    /// `close`.
    ///
    /// # Errors
    /// If the field is left out because it may not be sent.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldError> {
        if !fields::is_valid_field_name(name) || !fields::is_valid_field_value(value) {
            return Err(FieldError::Splitting);
        }
        if self.phase == ResponsePhase::EarlyHints {
            if !is_of_the_connection(name) {
                push_field(self.connection.output.buffer(), name, value);
            }
            return Ok(());
        }
        if let ResponsePhase::Upgrade(_, given) = &mut self.phase {
            if !is_own_field(name) {
                given.note(name);
                push_field(self.connection.output.buffer(), name, value);
            }
            return Ok(());
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"date") => self.announced.date = true,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.close |= fields::has_member(value, b"close");
                return Ok(());
            }
            10 if name.eq_ignore_ascii_case(b"keep-alive") => return Ok(()),
            10 | 16 if self.services.files.has_roots() => {
                if let Some(named) = Named::from_field(name, value) {
                    // Of two names nobody can tell which one is meant: they are none.
                    let is_second = self.named.is_some();
                    self.named = Some(if is_second { Named::Path(Vec::new()) } else { named });
                    return Ok(());
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let length = length.and_then(|text| text.parse().ok()).ok_or(FieldError::Length)?;
                if self.announced.length.is_some_and(|before| before != length) {
                    return Err(FieldError::Length);
                }
                self.announced.length = Some(length);
                return Ok(());
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = fields::members(value).last();
                self.announced.chunked = Some(last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")));
                // RFC 9112 §6.1: neither to a client of 1.0 nor where there is no body.
                if self.head().version == Version::Http10 || has_no_body(self.status) {
                    return Ok(());
                }
            }
            _ => {}
        }
        push_field(self.connection.output.buffer(), name, value);
        Ok(())
    }

    /// The content-length that the app announced.
    pub fn announced_length(&self) -> Option<u64> {
        self.announced.length
    }

    /// Forgets the content-length that the app announced, because another body takes the place of its own; returns it.
    pub(crate) fn drop_announced_length(&mut self) -> Option<u64> {
        self.announced.length.take()
    }

    pub(crate) fn announce_length(&mut self, length: Option<u64>) {
        self.announced.length = length;
    }

    /// Forgets the transfer-encoding that the app has applied to a body in whose place another one is sent.
    pub(crate) fn drop_own_framing(&mut self) {
        if self.announced.chunked.take().is_some() {
            self.remove_field(b"transfer-encoding");
        }
    }

    /// Whether the app has applied a transfer-encoding, so that only it knows the bytes of the body.
    pub fn has_own_framing(&self) -> bool {
        self.announced.chunked.is_some()
    }

    /// Ends the head. `total` is the length of the body where it is known; without it the body is chunked, or for
    /// HTTP/1.0 ended by the end of the connection.
    pub fn end_head(&mut self, total: Option<u64>) {
        let is_http10 = self.head().version == Version::Http10;
        let is_head = self.is_head_request();
        let length = self.announced.length.or(total);
        let framing = if has_no_body(self.status) {
            BodyFraming::None
        } else if self.has_own_framing() {
            BodyFraming::Raw
        } else {
            match length {
                Some(length) => BodyFraming::Length(length),
                None if is_http10 => BodyFraming::Raw,
                None => BodyFraming::Chunked,
            }
        };
        // Without `chunked` as the last coding only the end of the connection ends the body (RFC 9112 §6.3).
        self.close |= framing == BodyFraming::Raw && (is_http10 || self.announced.chunked != Some(true));
        // What began before the drain ends its connection as well.
        self.close |= self.services.worker.is_draining();
        let close = self.close;
        let date = self.date.text();
        let buffer = self.connection.output.buffer();
        match framing {
            BodyFraming::Length(length) => {
                buffer.extend_from_slice(b"content-length: ");
                buffer.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
                buffer.extend_from_slice(b"\r\n");
            }
            BodyFraming::Chunked if !is_head => buffer.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            _ => {}
        }
        if !self.announced.date {
            buffer.extend_from_slice(b"date: ");
            buffer.extend_from_slice(date);
            buffer.extend_from_slice(b"\r\n");
        }
        if close {
            buffer.extend_from_slice(b"connection: close\r\n");
        } else if is_http10 {
            buffer.extend_from_slice(b"connection: keep-alive\r\n");
        }
        buffer.extend_from_slice(b"\r\n");
        self.phase = ResponsePhase::Body(if is_head { BodyFraming::None } else { framing });
    }

    /// Ends the head of a response 101, after which the app speaks another protocol on the socket ([`Exchange::hijack`]). It has no
    /// framing. False when the head does not name the protocol, as it has to (RFC 9110 §15.2.2).
    pub fn end_head_for_switch(&mut self) -> bool {
        if !self.has_field(b"upgrade") {
            return false;
        }
        let buffer = self.connection.output.buffer();
        if !self.announced.date {
            push_field(buffer, b"date", self.date.text());
        }
        buffer.extend_from_slice(b"connection: upgrade\r\n\r\n");
        self.close = true;
        self.phase = ResponsePhase::Body(BodyFraming::Raw);
        true
    }
}

/// Fields that say something of the final response or its connection, and nothing in an interim one (RFC 9110 §15.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"connection", b"content-length", b"keep-alive", b"transfer-encoding"];
    NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn push_field(buffer: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let start = buffer.len();
    buffer.extend_from_slice(name);
    buffer[start..].make_ascii_lowercase();
    buffer.extend_from_slice(b": ");
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(b"\r\n");
}
