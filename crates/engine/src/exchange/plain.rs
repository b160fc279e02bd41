//! Responses of the server itself: a status, and its error page or a short text. Such a response also replaces a head
//! of the app that cannot be sent.

use super::state::ResponsePhase;
use super::Exchange;
use crate::http::http1::Announced;
use fairlead_wire::reason;

/// The media type of error pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

impl Exchange<'_> {
    /// Ends the head. `total` is the length of the body, if known; otherwise the body is chunked or, for HTTP/1.0, ends
    /// with the connection.
    pub fn end_head(&mut self, total: Option<u64>) {
        self.close_tunnel();
        if self.is_unspeakable() {
            return self.refuse_coding();
        }
        self.complete_head(total);
    }

    /// Responds in place of the app, which has applied a transfer coding that the client's protocol cannot carry.
    fn refuse_coding(&mut self) {
        self.blame("a transfer-encoding other than chunked can only be sent over HTTP/1.1");
        self.head.announced = Announced::default();
        self.respond_plainly(500);
        self.phase = ResponsePhase::Ended;
    }

    /// Writes a complete response: the status, and its error page or a short text.
    pub fn respond_plainly(&mut self, status: u16) {
        self.respond_plainly_with(status, &[]);
    }

    /// Like [`Exchange::respond_plainly`], with more fields.
    pub(crate) fn respond_plainly_with(&mut self, status: u16, fields: &[(&[u8], &[u8])]) {
        self.start(status);
        for (name, value) in fields {
            let _ = self.field(name, value);
        }
        if self.write_error_page() {
            return;
        }
        let text = reason(status);
        let _ = self.field(b"content-type", b"text/plain; charset=utf-8");
        self.end_head(Some(text.len() as u64 + 1));
        self.write_few(text.as_bytes());
        self.write_few(b"\n");
    }

    /// Writes a complete response with a few bytes of this type.
    pub(crate) fn respond_with_bytes(&mut self, content_type: &[u8], bytes: &[u8]) {
        self.start(200);
        let _ = self.field(b"content-type", content_type);
        self.end_head(Some(bytes.len() as u64));
        self.write_few(bytes);
    }

    /// Writes a complete response with the error page for `status`. Returns false, with nothing begun, if there is
    /// none.
    pub fn respond_with_error_page(&mut self, status: u16) -> bool {
        let has_page = self.services.files.page(status).is_some();
        if has_page {
            self.respond_plainly(status);
        }
        has_page
    }

    /// Returns true if [`Exchange::write_error_page`] would write a page.
    pub fn wants_error_page(&self) -> bool {
        let has_body = self.head.announced.length.is_some_and(|length| length > 0) || self.has_own_framing();
        self.head.response.status >= 400
            && self.services.files.page(self.head.response.status).is_some()
            && self.phase == ResponsePhase::Head
            && !has_body
            && !self.head.response.fields.has(b"content-type")
            && !self.head.response.fields.has(b"content-encoding")
    }

    /// Ends the head and writes the error page for the status, if there is one and the response announces no body of
    /// its own: neither Content-Type nor a length.
    pub fn write_error_page(&mut self) -> bool {
        let services = self.services;
        let Some(page) = services
            .files
            .page(self.head.response.status)
            .filter(|_| self.wants_error_page())
        else {
            return false;
        };
        self.head.announced.length = None;
        let _ = self.field(b"content-type", HTML.as_bytes());
        self.end_head(Some(page.len() as u64));
        self.write_few(page);
        true
    }
}
