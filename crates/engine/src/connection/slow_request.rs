//! A slow request. Its line in the log waits until the kernel has the whole response, or the connection ends.

use crate::clock::Nanos;
use crate::worker::Worker;
use std::sync::Arc;
use std::time::Duration;

/// Times of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// From the complete request to the end of the response by the app.
    pub(crate) took: Duration,
    pub(crate) queue: Duration,
    pub(crate) waiting_room: Duration,
    /// `None` if it is unknown.
    pub(crate) lock: Option<Duration>,
    /// In which the client took its response.
    pub(crate) sending: Duration,
}

/// Logs a slow request when it is dropped.
pub(crate) struct SlowRequest {
    worker: Arc<Worker>,
    /// Its method, its path and its status.
    about: String,
    times: Times,
    /// The end of the response by the app, if the rest of it is still to be sent.
    sent_since: Option<Nanos>,
    /// Another process sends the rest, and logs it.
    has_left: bool,
}

impl std::fmt::Debug for SlowRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SlowRequest")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

impl SlowRequest {
    pub(crate) fn new(worker: &Arc<Worker>, about: String, times: Times, is_sent: bool) -> SlowRequest {
        SlowRequest {
            worker: Arc::clone(worker),
            about,
            times,
            sent_since: (!is_sent).then(Nanos::now),
            has_left: false,
        }
    }

    /// Its method, path and status.
    pub(super) fn about(&self) -> &str {
        &self.about
    }

    /// Numbers for another process: the times in nanoseconds, and the end of the response by the app.
    pub(super) fn numbers(&self) -> [u64; 6] {
        let times = &self.times;
        let lock = times.lock.map_or(UNKNOWN, nanoseconds);
        let [took, queue, room, sending] =
            [times.took, times.queue, times.waiting_room, times.sending].map(nanoseconds);
        let sent_since = self.sent_since.unwrap_or_else(Nanos::now);
        [took, queue, room, lock, sending, sent_since.to_number()]
    }

    /// A slow request of another process, from its numbers.
    pub(super) fn of_numbers(worker: &Arc<Worker>, about: String, numbers: [u64; 6]) -> SlowRequest {
        let [took, queue, waiting_room, lock, sending, sent_since] = numbers;
        let [took, queue, waiting_room, sending] = [took, queue, waiting_room, sending].map(Duration::from_nanos);
        let times = Times {
            took,
            queue,
            waiting_room,
            lock: (lock != UNKNOWN).then(|| Duration::from_nanos(lock)),
            sending,
        };
        let mut slow_request = SlowRequest::new(worker, about, times, false);
        slow_request.sent_since = Some(Nanos::from_number(sent_since));
        slow_request
    }

    /// Leaves the log line to another process.
    pub(super) fn leave(mut self) {
        self.has_left = true;
    }
}

/// In place of a time.
const UNKNOWN: u64 = u64::MAX;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1)
}

impl Drop for SlowRequest {
    fn drop(&mut self) {
        if self.has_left || !self.worker.is_at_home() {
            return;
        }
        let Times {
            took,
            queue,
            waiting_room,
            lock,
            sending,
        } = self.times;
        let waits = queue + waiting_room + sending + lock.unwrap_or_default();
        let later = self.sent_since.map_or(Duration::ZERO, |since| Nanos::now() - since);
        let all = [
            took + later,
            queue,
            waiting_room,
            took.saturating_sub(waits),
            sending + later,
        ];
        let [took, queue, room, rest, sending] = all.map(|time| time.as_secs_f64());
        let lock = lock.map_or(String::new(), |lock| format!(", lock {:.3}", lock.as_secs_f64()));
        let about = &self.about;
        self.worker.log.error(format_args!(
            "slow request: {about} took {took:.3} s (queue {queue:.3}, waiting room {room:.3}{lock}, application {rest:.3}, sending {sending:.3})"
        ));
    }
}
