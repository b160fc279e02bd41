//! The end of a client: closed by either side, or because of a protocol violation, of silence, or because it takes
//! nothing.
//!
//! ```text
//!   Open ──close──▶ Closing ──the peer's close frame──▶ Closed
//!     │               │ fault                             ▲ ▲
//!     ├────fault──▶ Failed ───the peer hangs up───────────┘ │
//!     └── error, end of input, silence, timeout ────────────┘
//! ```
//! A deadline runs only once the kernel has everything; until then the minimum rate bounds the end, as for any other
//! write. The rate bounds the kernel's queue, too: the server waits for a peer that still takes bytes from there. A
//! socket that is closed earlier replies to further bytes of the peer with a reset, which discards the rest of the
//! queue.
//!
//! The end of input ends nothing while the peer's close frame or violation has no reply yet: browsers end their half of
//! an HTTP/2 stream with their close frame. The last frame is sent, then the server's half of the connection is closed.
//! Further input is discarded for a while, so that no reset overtakes the last frame (RFC 6455 §7.1.1).

use crate::clock::Millis;
use crate::limits::meter::{Meter, Rate};
use std::time::Duration;

/// The state of a client; changes in this order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum EndState {
    Open,
    /// The server's close frame is being sent, and the server waits for the peer's.
    Closing,
    /// The last frame is being sent after a failure; further input is discarded.
    Failed,
    Closed,
}

/// An end that has begun. An arrow without a name means that the kernel has everything.
///
/// ```text
///   close, fault ───────────▶ Sending ─────────────────────▶ Waiting ──deadline──▶ over
///                              │ │ ▲                          │ │
///                              │ │ └────────── fault ─────────┘ │
///                              │ └─ the peer's close frame ─┐ ┌─┘
///   the peer's close frame ────┼──────────────────────────▶ Answering ───────────▶ over
///                              └─ a borrowed connection ──▶ Complete ────────────▶ over; given back
///   abandoned ──────────────▶ Cutting ───────────────────────────────────────────▶ over; cut off
/// ```
/// A fault while the last frame of `Answering` is queued leads back to `Sending`.
#[derive(Debug)]
pub(super) enum Ending {
    /// The last frame is queued.
    Sending {
        /// Time for the peer once the kernel has everything.
        patience: Duration,
    },
    /// The kernel has everything, and the peer has time to take it, to reply or to hang up.
    Waiting(Wait),
    /// The last frame is queued, and the peer has sent its own: the end follows immediately.
    Answering,
    /// The rest of an incomplete response is queued; no last frame follows.
    Cutting,
    /// A response is complete and with the kernel, so that another request may follow.
    Complete,
}

/// The time that a peer has after the last frame.
#[derive(Debug)]
pub(super) struct Wait {
    patience: Duration,
    /// The wait ends at this time. If the peer takes bytes of the kernel's queue meanwhile, the deadline moves.
    deadline: Millis,
    /// Length of the kernel's queue at the last check.
    queued: usize,
    /// Measures how fast the peer takes the queue.
    meter: Meter,
    /// The server's half of the connection is closed.
    pub(super) is_shut: bool,
}

impl Ending {
    /// The timeout of the end; [`Millis::NEVER`] until the kernel has everything.
    pub(super) fn deadline(&self) -> Millis {
        match self {
            Ending::Waiting(wait) => wait.deadline,
            _ => Millis::NEVER,
        }
    }

    /// Notes the peer's close frame.
    pub(super) fn hear_close(&mut self) {
        if let Ending::Sending { .. } | Ending::Waiting(_) = self {
            *self = Ending::Answering;
        }
    }
}

impl Wait {
    /// Begins when the kernel has everything; the peer has not acknowledged `queued` bytes of it.
    pub(super) fn begin(patience: Duration, queued: usize, now: Millis) -> Wait {
        Wait {
            patience,
            deadline: now + patience,
            queued,
            meter: Meter::begin(now),
            is_shut: false,
        }
    }

    pub(super) fn deadline(&self) -> Millis {
        self.deadline
    }

    /// Called at the deadline. Returns true if the peer gets more time, because it has taken bytes of the kernel's
    /// queue. `queued`: bytes that are left in the queue.
    pub(super) fn goes_on(&mut self, queued: usize, rate: Rate, now: Millis) -> bool {
        let before = std::mem::replace(&mut self.queued, queued);
        self.meter.moved(before.saturating_sub(queued) as u64, now, rate);
        let late = self.meter.deadline(rate);
        self.deadline = match queued {
            _ if before == 0 || late <= now => return false,
            0 => now + self.patience,
            _ => late.min(now + self.patience),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn the_close_frame_of_the_peer_leaves_nothing_to_wait_for() {
        let waiting = Ending::Waiting(Wait::begin(PATIENCE, 0, Millis::now()));
        assert_ne!(waiting.deadline(), Millis::NEVER);
        for mut ending in [Ending::Sending { patience: PATIENCE }, waiting] {
            ending.hear_close();
            assert!(matches!(ending, Ending::Answering) && ending.deadline() == Millis::NEVER);
        }
        let mut cutting = Ending::Cutting;
        cutting.hear_close();
        assert!(matches!(cutting, Ending::Cutting), "the response stays incomplete");
    }

    #[test]
    fn a_peer_that_takes_bytes_of_the_kernels_queue_gets_more_time() {
        let begin = Millis::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let rate = Rate {
            grace: Duration::from_secs(10),
            bytes: 100,
        };
        let mut wait = Wait::begin(PATIENCE, 1000, begin);
        assert_eq!(wait.deadline(), after(5));
        assert!(wait.goes_on(500, rate, after(5)), "500 bytes pay for five seconds");
        assert_eq!(wait.deadline(), after(10));
        assert!(wait.goes_on(500, rate, after(10)), "its grace is not over");
        assert!(!wait.goes_on(500, rate, after(15)));
        assert!(
            !Wait::begin(PATIENCE, 0, begin).goes_on(0, rate, after(5)),
            "it has everything"
        );
    }
}
