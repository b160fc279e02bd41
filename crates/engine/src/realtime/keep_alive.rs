//! Keep-alive (RFC 6455 §5.5.2): a ping for a silent WebSocket, with a required pong; a comment for an event stream.

use super::migration::SavedSilence;
use crate::clock::{AtomicMillis, Millis};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// A silent client gets a ping after one period, and is aborted after this many.
const SILENT_PERIODS: u32 = 2;

/// The silence that a client may keep.
pub(super) struct KeepAlive {
    /// Seconds of silence after which a ping (or a comment) is sent; 0 for never.
    seconds: AtomicU32,
    /// The time when the peer was last heard, and the time of the last ping to it.
    heard: AtomicMillis,
    pinged: AtomicMillis,
}

/// The result of a check of a silent peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The peer may stay silent until this time.
    Until(Millis),
    /// A ping is due. The peer has to reply by this time.
    Ping(Millis),
    /// The peer has not replied.
    TooLong,
}

impl KeepAlive {
    pub(super) fn new(seconds: u32, now: Millis) -> KeepAlive {
        KeepAlive {
            seconds: AtomicU32::new(seconds),
            heard: AtomicMillis::new(now),
            pinged: AtomicMillis::new(now),
        }
    }

    /// Its state, for another process.
    pub(super) fn save(&self, now: Millis) -> SavedSilence {
        let (heard, pinged) = (self.heard.load(Relaxed), self.pinged.load(Relaxed));
        SavedSilence::since(self.seconds(), heard, pinged, now)
    }

    /// Continues with the state of another process.
    pub(super) fn restore(&self, saved: SavedSilence, now: Millis) {
        self.heard.store(now.before(saved.heard), Relaxed);
        self.pinged.store(now.before(saved.pinged), Relaxed);
    }

    pub(super) fn seconds(&self) -> u32 {
        self.seconds.load(Relaxed)
    }

    pub(super) fn set_seconds(&self, seconds: u32) {
        self.seconds.store(seconds, Relaxed);
    }

    /// The silence after which a ping (or a comment) is sent; `None` for never.
    pub(super) fn period(&self) -> Option<Duration> {
        match self.seconds() {
            0 => None,
            seconds => Some(Duration::from_secs(seconds.into())),
        }
    }

    /// Notes that the peer has sent something, or could not be heard until now.
    pub(super) fn hear(&self, now: Millis) {
        self.heard.store(now, Relaxed);
    }

    /// Checks a peer that has to reply to pings, and notes the ping that it gets.
    pub(super) fn look(&self, period: Duration, now: Millis) -> Silence {
        let due = self.heard.load(Relaxed) + period;
        if due > now {
            return Silence::Until(due);
        }
        // The peer's time begins with the ping: the process may have been stopped since the peer was heard.
        let pinged = self.pinged.load(Relaxed);
        let time = period * (SILENT_PERIODS - 1);
        if pinged < due {
            self.pinged.store(now, Relaxed);
            return Silence::Ping(now + time);
        }
        match pinged + time {
            gone if gone <= now => Silence::TooLong,
            gone => Silence::Until(gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(10);

    #[test]
    fn a_silent_peer_is_sent_one_ping_and_has_a_period_to_answer() {
        let begin = Millis::now();
        let keep_alive = KeepAlive::new(10, begin);
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(keep_alive.look(PERIOD, after(9)), Silence::Until(after(10)));
        // The process was stopped: the time of the peer begins with the ping.
        assert_eq!(keep_alive.look(PERIOD, after(50)), Silence::Ping(after(60)));
        assert_eq!(keep_alive.look(PERIOD, after(59)), Silence::Until(after(60)));
        assert_eq!(keep_alive.look(PERIOD, after(60)), Silence::TooLong);
        keep_alive.hear(after(60));
        assert_eq!(keep_alive.look(PERIOD, after(60)), Silence::Until(after(70)));
    }
}
