//! The pace at which the app resumes clients that have arrived: otherwise a restart would be the worst load of the day.
//! Until its turn a client gets messages, and its own messages wait.

use crate::clock::Nanos;
use crate::realtime::client::Client;
use crate::realtime::Realtime;
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Clients that are resumed at once after a pause: the share of a second.
const BURST: u32 = 8;

/// See the head of this file.
#[derive(Default)]
pub(in crate::realtime) struct Resuming {
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
        self.state.lock().waiting.push_back(client);
        self.go_on(realtime);
    }

    /// Resumes the clients that are due. Returns the time until the next one, if any waits.
    pub(in crate::realtime) fn go_on(&self, realtime: &Realtime) -> Option<Duration> {
        loop {
            let client = match self.take(realtime.worker.config.resume_rate, Nanos::now())? {
                Ok(client) => client,
                Err(rest) => {
                    realtime.expect(crate::clock::Millis::now() + rest);
                    return Some(rest);
                }
            };
            client.release_inbox();
        }
    }

    /// The next client, or the time until then; `None` if there is none.
    fn take(&self, rate: u32, now: Nanos) -> Option<Result<Arc<Client>, Duration>> {
        let mut state = self.state.lock();
        state.waiting.front()?;
        let Some(pause) = Duration::from_secs(1).checked_div(rate) else {
            return state.waiting.pop_front().map(Ok);
        };
        let earliest = now - Duration::from_secs(1) / BURST;
        let next = state.next.map_or(earliest, |next| next.max(earliest));
        if next > now {
            return Some(Err(next - now));
        }
        state.next = Some(next + pause);
        state.waiting.pop_front().map(Ok)
    }
}
