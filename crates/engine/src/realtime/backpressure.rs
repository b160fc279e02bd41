//! Flow control of a client's messages to the app: reading stops while the app does not keep up, and continues when
//! there is room.

use super::client::{Client, Events};
use super::ending::EndState;
use super::inbox::Room;
use super::Realtime;
use crate::clock::Millis;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};

/// Bytes that were read wait to be decoded.
const BEHIND: u8 = 1;

/// The poller does not read, because the app does not keep up.
const PAUSED: u8 = 2;

/// The state of the reading side.
///
/// ```text
///               a turn leaves bytes
///   Current ◀──────────────────────▶ Behind         the poller decodes them in its next turn
///     │ ▲        they are decoded      │ ▲
///     │ │ resume                       │ │ resume
///     ▼ │ pause                        ▼ │ pause
///   Paused ◀───────────────────────▶ PausedBehind   they are decoded when the pause ends
/// ```
/// The poller, which has locked the reader, moves to the right and back. Any thread that has locked the outbox moves
/// down and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// All bytes that were read are decoded.
    Current,
    Behind,
    Paused,
    PausedBehind,
}

impl Reading {
    fn of(bits: u8) -> Reading {
        match (bits & PAUSED != 0, bits & BEHIND != 0) {
            (false, false) => Reading::Current,
            (false, true) => Reading::Behind,
            (true, false) => Reading::Paused,
            (true, true) => Reading::PausedBehind,
        }
    }
}

/// The state of the reading side, for all threads.
#[derive(Default)]
pub(super) struct Backpressure {
    state: AtomicU8,
    /// The client is in the queue for room in all inboxes together.
    is_in_line: AtomicBool,
}

impl std::fmt::Debug for Backpressure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Reading::of(self.state.load(SeqCst)).fmt(formatter)
    }
}

impl Backpressure {
    pub(super) fn is_paused(&self) -> bool {
        matches!(
            Reading::of(self.state.load(SeqCst)),
            Reading::Paused | Reading::PausedBehind
        )
    }

    fn pause(&self) {
        self.state.fetch_or(PAUSED, SeqCst);
    }

    /// Ends a pause. Returns true if there are undecoded bytes, which the poller decodes now.
    fn resume(&self) -> bool {
        matches!(
            Reading::of(self.state.fetch_and(!PAUSED, SeqCst)),
            Reading::Behind | Reading::PausedBehind
        )
    }

    /// Notes that bytes are left. Returns true if the poller decodes them now; otherwise it does so after the pause.
    fn fall_behind(&self) -> bool {
        matches!(
            Reading::of(self.state.fetch_or(BEHIND, SeqCst)),
            Reading::Current | Reading::Behind
        )
    }

    /// Notes that all bytes are decoded, or are about to be.
    pub(super) fn catch_up(&self) {
        self.state.fetch_and(!BEHIND, SeqCst);
    }

    /// Returns true if the client was not in the queue.
    fn join_queue(&self) -> bool {
        !self.is_in_line.swap(true, SeqCst)
    }

    fn leave_queue(&self) {
        self.is_in_line.store(false, SeqCst);
    }
}

impl Client {
    /// Returns true if messages go to the app.
    pub(super) fn keeps_messages(&self) -> bool {
        self.wants(Events::MESSAGE) && self.state() == EndState::Open
    }

    /// The bytes and events that may still wait for the app.
    pub(super) fn room(&self, realtime: &Realtime) -> Room {
        let own = self.inbox.lock().room(realtime.worker.config.client_pending_bytes);
        Room {
            bytes: own.bytes.min(realtime.intake.room()),
            ..own
        }
    }

    /// Stops reading, unless the app has caught up.
    pub(super) fn pause(&self, realtime: &Realtime) {
        let mut outbox = self.outbox.lock();
        self.backpressure.pause();
        outbox.reads = false;
        self.watch(&mut outbox);
        drop(outbox);
        // The app may have caught up in between, before it could see the pause.
        self.resume(realtime);
    }

    /// Stops reading, because the client leaves.
    pub(super) fn stop_reading(&self) {
        let mut outbox = self.outbox.lock();
        self.backpressure.pause();
        outbox.reads = false;
        self.watch(&mut outbox);
    }

    /// Ends a pause, if the app has caught up or takes no more messages, once there is room in all inboxes.
    pub(crate) fn resume(&self, realtime: &Realtime) {
        if !self.backpressure.is_paused() || self.departure.has_begun() && self.is_open() {
            return;
        }
        if self.keeps_messages() {
            let half = realtime.worker.config.client_pending_bytes / 2;
            if !self.inbox.lock().has_room(half) {
                return;
            }
            if realtime.intake.room() == 0 {
                return self.wait_in_line(realtime);
            }
        }
        let mut outbox = self.outbox.lock();
        let is_behind = self.backpressure.resume();
        // Bytes that the peer has sent during the pause have not been read yet.
        let now = Millis::now();
        self.keep_alive.hear(now);
        self.message_due.resume(now);
        outbox.reads = true;
        self.watch(&mut outbox);
        drop(outbox);
        if is_behind {
            self.read_on(realtime);
        }
    }

    /// Notes that bytes are left for which the poller sees no event. They are decoded in the next turn, or, if the
    /// client is paused, when it is resumed.
    pub(super) fn stay_behind(&self, realtime: &Realtime) {
        if self.backpressure.fall_behind() {
            self.read_on(realtime);
        }
    }

    /// Lets the poller decode the rest of a read.
    fn read_on(&self, realtime: &Realtime) {
        if let Some(client) = self.me.upgrade() {
            realtime.intake.read_on(client, &realtime.worker.poller);
        }
    }

    fn wait_in_line(&self, realtime: &Realtime) {
        if self.backpressure.join_queue() {
            if let Some(client) = self.me.upgrade() {
                realtime.intake.wait(client, &realtime.worker.poller);
            }
        }
    }

    /// Removes the client from the queue, because it is read again.
    pub(super) fn leave_queue(&self) {
        self.backpressure.leave_queue();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_left_in_a_pause_are_decoded_when_it_ends() {
        let flow = Backpressure::default();
        assert!(flow.fall_behind(), "the poller decodes them in its next turn");
        flow.pause();
        assert!(!flow.fall_behind(), "the pause is not over");
        assert!(flow.is_paused() && flow.resume());
        assert!(!flow.is_paused() && flow.fall_behind());
        flow.catch_up();
        flow.pause();
        assert!(!flow.resume(), "nothing is left");
    }

    #[test]
    fn a_client_is_in_the_line_once() {
        let flow = Backpressure::default();
        assert!(flow.join_queue() && !flow.join_queue());
        flow.leave_queue();
        assert!(flow.join_queue());
    }
}
