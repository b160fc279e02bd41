//! Ends a client: closed by either side, because of a protocol violation, or because it takes nothing.

use super::client::Client;
use super::ending::{EndState, Ending};
use super::frames::Frame;
use super::inbox::{Event, LastEvent};
use super::outbox::Outbox;
use super::turns::GOING_AWAY;
use crate::http::own_chunks::UNFINISHED;
use crate::sync::MutexGuard;
use crate::transport::LINGER;
use std::time::Duration;

/// The time that the peer has to reply to the close frame.
const CLOSE: Duration = Duration::from_millis(5_000);

/// Close code for a client that may try again later (RFC 6455 §11.7, registered later).
const TRY_AGAIN_LATER: u16 = 1013;

impl Client {
    /// Closes the connection after the queued frames: with a close frame, or the last chunk. Later writes are refused.
    pub fn close(&self, code: Option<u16>, reason: &str) {
        let outbox = self.outbox.lock();
        if self.is_open() && outbox.remainder.lacks_last_chunk() {
            self.abort(outbox, UNFINISHED);
            return;
        }
        if self.advance(EndState::Closing) {
            if outbox.remainder.is_short() {
                self.tell_of_end(format_args!("its body is shorter than the announced content-length"));
            }
            let ending = self.sending(&outbox, CLOSE);
            self.send_last(outbox, ending, code, reason);
        }
    }

    /// Ends a client that nobody can write to or close any more. Queued bytes are sent; the response is cut off, unless
    /// it is complete.
    pub fn abandon(&self) {
        let outbox = self.outbox.lock();
        if outbox.remainder.is_complete() {
            drop(outbox);
            return self.close(None, "");
        }
        if self.advance(EndState::Closing) {
            self.tell_of_end(format_args!("the application has lost the stream without closing it"));
            self.send_last(outbox, Ending::Cutting, None, "");
        }
    }

    /// Replies to the peer's close frame or protocol violation.
    pub(super) fn answer_last(&self, last_event: LastEvent) {
        match last_event {
            LastEvent::Close(code) => self.peer_closed(code),
            LastEvent::Failure(failure) => self.fail(self.outbox.lock(), failure.code, failure.reason),
        }
    }

    /// Handles the peer's close frame.
    fn peer_closed(&self, code: Option<u16>) {
        let mut outbox = self.outbox.lock();
        if self.advance(EndState::Closing) {
            return self.send_last(outbox, Ending::Answering, code, "");
        }
        if let Some(ending) = &mut outbox.ending {
            ending.hear_close();
        }
        if outbox.frames.is_empty() {
            drop(outbox);
            self.end();
        }
    }

    /// Ends a client that does not take the bytes sent to it.
    pub(super) fn fail_slow(&self, outbox: MutexGuard<'_, Outbox>) {
        self.fail(outbox, TRY_AGAIN_LATER, "the client reads too slowly");
    }

    /// Ends a client that has violated the protocol: sends a close code, and discards further input.
    pub(super) fn fail(&self, mut outbox: MutexGuard<'_, Outbox>, code: u16, reason: &'static str) {
        if self.is_response() {
            // The dropped bytes are missing: a last chunk would announce a complete response.
            self.abort(outbox, reason);
            return;
        }
        if !self.advance(EndState::Failed) {
            return;
        }
        self.tell_of_end(format_args!("{reason} (close code {code})"));
        // After a close frame nothing may follow, and the frame itself must still be sent.
        if outbox.ending.is_none() {
            outbox.frames.forget_whole_frames();
        }
        let ending = self.sending(&outbox, LINGER);
        self.send_last(outbox, ending, Some(code), reason);
    }

    /// Queues the last frame, unless that has happened, and flushes.
    fn send_last(&self, mut outbox: MutexGuard<'_, Outbox>, ending: Ending, code: Option<u16>, reason: &str) {
        outbox.end(ending, self.protocol(), code, reason);
        self.flush_locked(outbox);
        // Further input does not go to the app, so reading need not wait for the app.
        if let Some(realtime) = self.realtime.upgrade() {
            self.resume(&realtime);
        }
    }

    /// The state of an end with a last frame. The peer has the `usual` time to reply to it, or longer if it has not
    /// taken earlier frames: when the kernel has the last one, its buffer is still full of them.
    fn sending(&self, outbox: &Outbox, usual: Duration) -> Ending {
        let patience = match self.realtime.upgrade() {
            Some(realtime) if outbox.writes => realtime.worker.write_timeout().max(usual),
            _ => usual,
        };
        Ending::Sending { patience }
    }

    /// Sends the last frame, as far as the kernel takes it at once, because the server ends before the app has closed
    /// the client. A response that is cut off gets no last frame.
    pub(super) fn say_goodbye(&self) {
        let mut outbox = self.outbox.lock();
        outbox.send_now();
        let lost = outbox.frames.bytes();
        if !self.is_response() && self.advance(EndState::Closing) {
            outbox.frames.forget_whole_frames();
            let last = outbox.last_frame(self.protocol(), Some(GOING_AWAY), "");
            outbox.frames.push(Frame::Own(last));
            outbox.send_now();
        }
        drop(outbox);
        if lost > 0 {
            self.tell_of_end(format_args!("the server ended before it took {lost} bytes"));
        }
    }

    /// Resets the connection without a last frame, so that the kernel does not keep unread data for minutes. Returns false if
    /// another thread has ended the client meanwhile.
    pub(super) fn abort(&self, outbox: MutexGuard<'_, Outbox>, why: &str) -> bool {
        drop(outbox);
        let ends = self.end_by(|transport| transport.reset());
        if ends {
            self.tell_of_end(format_args!("{why}"));
            self.tell(Event::Close);
        }
        ends
    }
}
