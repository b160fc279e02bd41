//! Uploads that wait for a descriptor: their bodies have outgrown memory while as many files are open as there may be. They
//! are not read meanwhile, so the wait is their clients' and costs no thread; who waits longest is next. Whoever gets none
//! within `body_timeout` is refused with 503.

use crate::clock::milliseconds;
use crate::connection::{Connection, Next};
use crate::engine::Engine;
use crate::limits::request_totals::Waiting;
use crate::reactor::is_in_reactor;
use crate::reactor::parked::Key;
use crate::reactor::poller::Interest;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// How often the poller looks for free descriptors while somebody waits, should nobody tell it of one.
const LOOK_MILLISECONDS: u64 = 50;

/// In order of arrival. A key whose connection has ended or been refused is passed over when its turn comes.
#[derive(Default)]
pub(crate) struct Uploads {
    queue: Mutex<VecDeque<(Key, Waiting)>>,
}

impl Engine {
    /// Parks a connection that cannot go on without a descriptor.
    pub(crate) fn put_off(&self, connection: Box<Connection>) {
        let place = (connection.key(), self.config.request_totals.wait());
        // In this order: who looks for the next one finds the connection where it belongs.
        self.park(connection, Interest::Nothing);
        self.uploads.queue.lock().push_back(place);
        self.timer.expect(milliseconds() + LOOK_MILLISECONDS, &self.poller);
    }

    /// Lets the poller know, if somebody waits, that there may be a descriptor.
    pub(crate) fn tell_uploads(&self) {
        if self.config.request_totals.has_waiting() && !is_in_reactor() {
            self.poller.wake();
        }
    }

    /// Lets those go on for whom there is a descriptor; called by the poller.
    pub(crate) fn resume_uploads(&self, now: u64) {
        if !self.config.request_totals.has_waiting() {
            return;
        }
        loop {
            // One lock at a time: whoever is taken out here is still the next of those that wait.
            let front = self.uploads.queue.lock().front().map(|(key, _)| *key);
            let Some(key) = front else { return };
            let waits = |connection: &Connection| connection.waits_for_descriptor();
            let connection = self.parked.lock().take_if(key, waits);
            let next = connection.map(|mut connection| (connection.go_on(&self.config, now), connection));
            if let Some((Next::PutOff, connection)) = next {
                self.park(connection, Interest::Nothing);
                return self.timer.expect(now + LOOK_MILLISECONDS, &self.poller);
            }
            self.uploads.queue.lock().pop_front();
            if let Some((next, connection)) = next {
                self.settle(connection, next);
            }
        }
    }
}
