//! The head of a response: interim responses, the status line and the app's fields, and the framing of the body that
//! they determine (RFC 9110 §6.4, RFC 9112 §6).

use super::state::ResponsePhase;
use super::upgrade::is_own_field;
use super::Exchange;
use crate::clock::DateCache;
use crate::files::Named;
use crate::http::http1::{write_head, Announced, BodyFraming, ConnectionField, HeadEnd};
use crate::http::own_chunks::OwnChunks;
use crate::http::response::{FieldError, ResponseHead};
use fairlead_wire::{fields, has_no_body, Version};

/// The status instead of success, in a tunnel that the app has not accepted: 2xx would open it (RFC 8441 §5).
const NO_TUNNEL: u16 = 501;

const HSTS: &[u8] = b"strict-transport-security";

/// The head of a response, until it is written.
pub(super) struct Head<'a> {
    pub(super) response: &'a mut ResponseHead,
    date: &'a mut DateCache,
    /// The app's own framing of the body.
    pub(super) announced: Announced,
    /// The file that the app has named to be sent.
    named: Option<Named>,
}

/// The use of a field of the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// It is sent unchanged.
    Sent,
    /// The server sends its own field, or none.
    Own,
    /// The connection ends with the response.
    Close,
}

impl Head<'_> {
    pub(super) fn new<'a>(response: &'a mut ResponseHead, date: &'a mut DateCache) -> Head<'a> {
        response.start(0);
        Head {
            response,
            date,
            announced: Announced::default(),
            named: None,
        }
    }

    /// Forgets the app's statements about the body, because another response replaces it.
    pub(super) fn forget(&mut self) {
        self.announced = Announced::default();
        self.named = None;
    }

    /// Notes the meaning of a field of the final response for the server. `names_files`: the field may name a file to
    /// be sent.
    fn note(&mut self, name: &[u8], value: &[u8], version: Version, names_files: bool) -> Result<Noted, FieldError> {
        let is_sent = match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => {
                return Ok(match fields::has_member(value, b"close") {
                    true => Noted::Close,
                    false => Noted::Own,
                });
            }
            10 if name.eq_ignore_ascii_case(b"keep-alive") => false,
            10 | 16 if names_files => !self.note_file(name, value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.announced.note_length(value)?;
                false
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let is_new = self.announced.note_coding(value);
                // RFC 9112 §6.1: not to an HTTP/1.0 client, and not without a body.
                is_new && version == Version::Http11 && !has_no_body(self.response.status)
            }
            _ => true,
        };
        Ok(if is_sent { Noted::Sent } else { Noted::Own })
    }

    /// Notes the file that a field names, if it names one.
    fn note_file(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Some(named) = Named::from_field(name, value) else {
            return false;
        };
        // With two names it is unclear which one is meant, so neither counts.
        let is_second = self.named.is_some();
        self.named = Some(if is_second { Named::Path(Vec::new()) } else { named });
        true
    }

    /// The file that the app has named.
    pub(super) fn take_named(&mut self) -> Option<Named> {
        self.named.take()
    }

    /// Returns true if the app has applied a transfer-encoding, so that only the app knows the bytes of the body.
    pub(super) fn has_own_framing(&self) -> bool {
        self.announced.coding.is_some()
    }

    /// Forgets the transfer-encoding that the app has applied to a body that is replaced.
    fn drop_own_framing(&mut self) {
        if self.announced.coding.take().is_some() {
            self.response.fields.remove(b"transfer-encoding");
        }
    }

    /// Writes the head, with a date, to `output`. `framing`: `None` without a body.
    fn write(
        &mut self,
        framing: Option<BodyFraming>,
        connection: ConnectionField,
        is_head_request: bool,
        output: &mut Vec<u8>,
    ) {
        let has_date = self.response.fields.has(b"date");
        let end = HeadEnd {
            framing,
            connection,
            is_head_request,
            date: (!has_date).then(|| self.date.text()),
        };
        write_head(self.response, end, output);
    }
}

impl Exchange<'_> {
    /// Drops an interim response that was begun and not ended.
    pub fn cancel_early_hints(&mut self) {
        if self.phase == ResponsePhase::EarlyHints {
            self.phase = ResponsePhase::NotStarted;
        }
    }

    /// Begins the final response.
    pub fn start(&mut self, status: u16) {
        self.cancel_early_hints();
        self.phase = ResponsePhase::Head;
        self.head.response.start(status);
    }

    /// Returns true if a head was begun and has not ended.
    pub fn takes_fields(&self) -> bool {
        matches!(
            self.phase,
            ResponsePhase::EarlyHints | ResponsePhase::Head | ResponsePhase::Upgrade(_)
        )
    }

    /// Adds one field line. Framing fields only announce the framing. In `connection`, only `close` has an effect; the
    /// server sets this field itself.
    ///
    /// # Errors
    /// If the field is left out because it may not be sent.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldError> {
        if !fields::is_valid_field_name(name) || !fields::is_valid_field_value(value) {
            return Err(FieldError::Splitting);
        }
        let is_sent = match self.phase {
            ResponsePhase::EarlyHints => !is_of_the_connection(name),
            ResponsePhase::Upgrade(_) => !is_own_field(name),
            _ => {
                let version = self.request().version();
                let noted = self.head.note(name, value, version, self.services.files.has_roots())?;
                if noted == Noted::Close {
                    self.persistence.close();
                }
                noted == Noted::Sent
            }
        };
        if is_sent {
            self.head.response.fields.add(name, value);
        }
        Ok(())
    }

    /// The content-length that the app announced.
    pub fn announced_length(&self) -> Option<u64> {
        self.head.announced.length
    }

    /// Forgets the content-length that the app announced, because another body replaces the app's; returns it.
    pub(crate) fn drop_announced_length(&mut self) -> Option<u64> {
        self.head.announced.length.take()
    }

    pub(crate) fn announce_length(&mut self, length: Option<u64>) {
        self.head.announced.length = length;
    }

    /// Forgets the transfer-encoding that the app has applied to a body that is replaced.
    pub(crate) fn drop_own_framing(&mut self) {
        self.head.drop_own_framing();
    }

    /// Returns true if the app has applied a transfer-encoding, so that only the app knows the bytes of the body.
    pub fn has_own_framing(&self) -> bool {
        self.head.has_own_framing()
    }

    /// Returns true if the connection ends because this worker ends.
    fn ends_connection(&self) -> bool {
        let (worker, transport) = (&self.services.worker, self.stream.transport());
        match transport.can_move() {
            // It belongs to another worker.
            true if transport.is_relayed() => false,
            true => worker.ends_connections(),
            false => worker.is_leaving(),
        }
    }

    /// Replaces a status that would open a tunnel which the app has not accepted.
    pub(super) fn close_tunnel(&mut self) {
        if self.request().is_tunnel() && (200..300).contains(&self.head.response.status) {
            self.head.response.status = NO_TUNNEL;
        }
    }

    /// Returns true if the app has applied a transfer coding that the client's protocol cannot carry.
    pub(super) fn is_unspeakable(&self) -> bool {
        let version = self.request().version();
        self.head.announced.is_unspeakable(self.head.response.status, version)
    }

    /// Decides the framing of the body, and writes the head.
    pub(super) fn complete_head(&mut self, total: Option<u64>) {
        let version = self.request().version();
        self.add_hsts();
        self.add_server_timing();
        let is_head_request = self.request().is_head();
        let framing = self.head.announced.framing(self.head.response.status, version, total);
        // In HTTP/2 the end of the stream ends the body, too.
        let is_raw = framing == BodyFraming::Raw;
        self.persistence.end_body(is_raw && version != Version::Http2);
        // A response that began before the worker's end also ends its connection.
        if is_raw || self.ends_connection() {
            self.persistence.close();
        }
        // The app's own field announces the framing of its body.
        let has_field = self.has_own_framing() && framing == BodyFraming::Chunked;
        let in_head = if has_field { BodyFraming::Raw } else { framing };
        self.write_head(Some(in_head), ConnectionField::of(version, self.persistence.closes()));
        self.phase = ResponsePhase::Body(if is_head_request { BodyFraming::None } else { framing });
        if self.head.announced.is_chunked() && self.wants_body() {
            self.own_chunks = Some(Box::new(OwnChunks::new()));
        }
    }

    /// Tells browsers to use only TLS, in responses over TLS: without TLS anybody could have added the field, so
    /// browsers ignore it (RFC 6797 §8.1).
    fn add_hsts(&mut self) {
        if let Some(value) = &self.services.config().hsts {
            if self.is_secure() && !self.head.response.fields.has(HSTS) {
                self.head.response.fields.add(HSTS, value.as_bytes());
            }
        }
    }

    /// Writes the head to the output, unless the client has got another response already.
    pub(super) fn write_head(&mut self, framing: Option<BodyFraming>, connection: ConnectionField) {
        if !self.may_respond() {
            return;
        }
        let is_head_request = self.request().is_head();
        self.head
            .write(framing, connection, is_head_request, self.stream.output.buffer());
    }

    /// Accepts a protocol that the client has offered, in a head that was begun: its status becomes 101, which is sent
    /// as 200 over HTTP/2 (RFC 8441 §5). Returns false if the client has not offered the protocol.
    pub fn accept_protocol(&mut self, protocol: &[u8]) -> bool {
        if !self.request().offered_protocols().any(|offered| offered == protocol) {
            return false;
        }
        self.head.response.status = 101;
        if !self.head.response.fields.has(b"upgrade") {
            self.head.response.fields.add(b"upgrade", protocol);
        }
        true
    }
}

/// Fields that concern the final response or its connection, and have no meaning in an interim response (RFC 9110
/// §15.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"connection", b"content-length", b"keep-alive", b"transfer-encoding"];
    NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}
