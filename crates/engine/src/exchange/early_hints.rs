//! Interim responses with fields of the final one (RFC 8297).

use super::state::{OutputState, ResponsePhase};
use super::Exchange;
use crate::http::http1::{write_head, ConnectionField, HeadEnd};
use fairlead_wire::Version;

/// Their status.
const EARLY_HINTS: u16 = 103;

impl Exchange<'_> {
    /// Returns true if the app may send interim responses.
    pub fn offers_early_hints(&self) -> bool {
        self.services.config().early_hints
    }

    /// Begins an interim response (RFC 8297); its fields follow. Returns false if it cannot be sent: early hints are
    /// off, the client uses HTTP/1.0, or the final response has begun.
    pub fn start_early_hints(&mut self) -> bool {
        if self.phase != ResponsePhase::NotStarted
            || self.request().version() == Version::Http10
            || !self.services.config().early_hints
        {
            return false;
        }
        self.head.response.start(EARLY_HINTS);
        self.phase = ResponsePhase::EarlyHints;
        true
    }

    /// Returns true if fields go into an interim response.
    pub fn is_hinting(&self) -> bool {
        self.phase == ResponsePhase::EarlyHints
    }

    /// Ends the interim response and sends it.
    pub fn end_early_hints(&mut self) {
        if self.phase == ResponsePhase::EarlyHints {
            let end = HeadEnd {
                framing: None,
                connection: ConnectionField::Implied,
                date: None,
                is_head_request: false,
            };
            self.phase = ResponsePhase::NotStarted;
            // No other thread may respond in the middle of the interim response.
            let deadline = self.own_deadline().cloned();
            let held = deadline.as_ref().map(|deadline| deadline.hold());
            if matches!(held, Some(None)) {
                return;
            }
            write_head(self.head.response, end, self.stream.output.buffer());
            if !self.is_away_for_flush() {
                self.flush_now();
            }
            if let Some(Some(held)) = held {
                held.note_unsent(!self.stream.output.is_empty());
            }
            if !self.is_in_wait() {
                self.output = OutputState::Held;
            }
            self.start = self.stream.output.buffer().len();
        }
    }
}
