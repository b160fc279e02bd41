//! The pace at which the app resumes clients that have arrived: otherwise a restart would be the worst load of the day.
//! Until its turn a client gets messages, and its own messages wait.

use crate::clock::{Millis, Nanos};
use crate::realtime::client::Client;
use crate::realtime::Realtime;
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Clients that are resumed at once after a pause: the share of a second.
const BURST: u32 = 8;

/// See the head of this file.
#[derive(Default)]
pub(in crate::realtime) struct Resuming {
    /// True if a client may wait.
    is_due: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Client>>,
    /// The time from which on the next client may be resumed.
    next: Option<Nanos>,
}

impl Resuming {
    /// Adds a client at the end of the line.
    pub(super) fn add(&self, client: Arc<Client>, realtime: &Realtime) {
        let mut state = self.state.lock();
        state.waiting.push_back(client);
        self.is_due.store(true, SeqCst);
        drop(state);
        self.go_on(realtime);
    }

    /// Resumes the clients that are due.
    pub(in crate::realtime) fn go_on(&self, realtime: &Realtime) {
        if !self.is_due.load(SeqCst) {
            return;
        }
        while let Some(next) = self.take(realtime.worker.config.resume_rate, Nanos::now()) {
            match next {
                Ok(client) => client.release_inbox(),
                Err(rest) => return realtime.worker.expect(Millis::now() + rest),
            }
        }
    }

    /// The next client, or the time until then; `None` if there is none.
    fn take(&self, rate: u32, now: Nanos) -> Option<Result<Arc<Client>, Duration>> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            self.is_due.store(false, SeqCst);
            return None;
        }
        match state.next(rate, now) {
            Ok(()) => state.waiting.pop_front().map(Ok),
            Err(rest) => Some(Err(rest)),
        }
    }
}

impl State {
    /// Takes the place of the next client, or returns the time until there is one. `rate`: places in a second; 0 for no limit.
    fn next(&mut self, rate: u32, now: Nanos) -> Result<(), Duration> {
        let Some(pause) = Duration::from_secs(1).checked_div(rate) else {
            return Ok(());
        };
        let earliest = now - Duration::from_secs(1) / BURST;
        let next = self.next.map_or(earliest, |next| next.max(earliest));
        if next > now {
            return Err(next - now);
        }
        self.next = Some(next + pause);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which clients are resumed, in milliseconds, with looks at each millisecond.
    fn resumed(rate: u32, clients: usize, milliseconds: u64) -> Vec<u64> {
        let resuming = Resuming::default();
        let mut times = Vec::new();
        for time in 0..milliseconds {
            let now = Nanos::START + Duration::from_millis(time);
            while times.len() < clients {
                match resuming.state.lock().next(rate, now) {
                    Ok(()) => times.push(time),
                    Err(_) => break,
                }
            }
        }
        times
    }

    #[test]
    fn clients_are_resumed_at_the_rate_after_a_small_burst() {
        let times = resumed(8, 100, 1_000);
        assert_eq!(
            times.iter().filter(|time| **time == 0).count(),
            2,
            "the share of an eighth of a second, and one"
        );
        assert_eq!(times.len(), 9);
        assert_eq!(resumed(200, 1_000, 1_000).len(), 225);
        assert_eq!(resumed(0, 1_000, 1), [0; 1_000]);
    }
}
