//! The field Server-Timing (W3C Server Timing §2): the times of a request until its head is written, which browsers show to
//! developers.

use super::Exchange;
use crate::clock::Nanos;
use crate::config::ServerTiming;
use std::fmt::Write;
use std::time::Duration;

const NAME: &[u8] = b"server-timing";

/// Returns the time that the thread of the app has waited for the lock of the language; see
/// [`App::lock_wait`](crate::App::lock_wait).
pub(super) type LockWait<'a> = &'a dyn Fn() -> Option<Duration>;

impl<'a> Exchange<'a> {
    /// The app begins. If the client is told the times, its response gets them.
    pub(crate) fn times_app(&mut self, lock_wait: LockWait<'a>) {
        let config = self.services.config();
        let is_told = match config.server_timing {
            ServerTiming::Never => false,
            ServerTiming::Always => true,
            ServerTiming::Trusted => self.stream.peers.has_trusted_client(self.request(), config),
        };
        self.lock_wait = is_told.then_some(lock_wait);
    }

    /// Adds the times to the app's own ones.
    pub(super) fn add_server_timing(&mut self) {
        // A response that switches protocols is none that a browser shows.
        let Some(lock_wait) = self.lock_wait.filter(|_| self.head.response.status >= 200) else {
            return;
        };
        let (arrived, waits) = (self.request().arrived, self.request().waits());
        let mut text = times(waits.queue + waits.waiting_room, lock_wait(), Nanos::now() - arrived);
        let fields = &mut self.head.response.fields;
        if fields.has(NAME) {
            text.push_str(", ");
            fields.prefix(NAME, text.as_bytes());
        } else {
            fields.add(NAME, text.as_bytes());
        }
    }
}

/// The value of the field, in milliseconds. The times add up to `total`.
fn times(queue: Duration, lock: Option<Duration>, total: Duration) -> String {
    let app = total.saturating_sub(queue + lock.unwrap_or_default());
    let mut text = String::new();
    for (name, time) in [("queue", Some(queue)), ("lock", lock), ("app", Some(app))] {
        if let Some(time) = time {
            let separator = if text.is_empty() { "" } else { ", " };
            let micros = time.as_micros();
            let _ = write!(text, "{separator}{name};dur={}.{:03}", micros / 1_000, micros % 1_000);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_add_up() {
        let micros = Duration::from_micros;
        for (queue, lock, total, expected) in [
            (0, None, 999, "queue;dur=0.000, app;dur=0.999"),
            (1_500, Some(20), 3_020, "queue;dur=1.500, lock;dur=0.020, app;dur=1.500"),
            // The parts are measured one after the other.
            (5, Some(7), 10, "queue;dur=0.005, lock;dur=0.007, app;dur=0.000"),
            (
                61_000_000,
                Some(0),
                3_661_000_001,
                "queue;dur=61000.000, lock;dur=0.000, app;dur=3600000.001",
            ),
        ] {
            assert_eq!(times(micros(queue), lock.map(micros), micros(total)), expected);
        }
    }
}
