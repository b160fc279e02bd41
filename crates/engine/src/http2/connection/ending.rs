//! The end of a session: because its worker ends, its time is over, or its client has gone too far; and when that is due.

use super::core::{Core, End};
use super::Http2Connection;
use crate::clock::Millis;
use crate::connection::place::Place;
use std::task::Context;

impl Http2Connection {
    /// Tells the client that no further requests are served; those that it has sent are.
    pub(crate) fn leave(&self) {
        if self.with_core(|core| core.leave(&self.carrier)) {
            self.push();
        }
    }

    /// Ends the session now. The place and the reason are for whoever forgets it.
    pub(crate) fn end_now(&self, end: End) {
        self.with_core(|core| {
            core.end.get_or_insert(end);
            core.finish(&self.carrier);
        });
    }

    /// After the end: its place, once, and the reason.
    pub(crate) fn close_for_engine(&self) -> Option<(Place, End)> {
        self.with_core(Core::close_for_engine)
    }

    /// When [`Http2Connection::expire`] has something to do.
    pub(crate) fn deadline(&self) -> Millis {
        self.with_core(|core| core.deadline(&self.carrier, &self.streams))
    }

    /// Ends the session, because it has more than others of what is short. Its streams learn of it in the poller's next
    /// turn; the requests that wait in its line are dropped now.
    pub(crate) fn give_way(&self, now: Millis) {
        self.with_core(|core| {
            let end = core.end.unwrap_or(End::GaveWay);
            self.end_for(core, end, now);
        });
        self.queue.clear();
        self.look_later();
    }

    /// Ends the session if its deadline has come. The client is told, if that is possible.
    pub(crate) fn expire(&self, now: Millis) {
        let has_ended = self.with_core(|core| {
            if core.deadline(&self.carrier, &self.streams) > now {
                return false;
            }
            if core.is_closing() {
                core.finish(&self.carrier);
                return false;
            }
            let is_slow = core.slow_deadline(&self.carrier, &self.streams) <= now;
            self.end_for(core, if is_slow { End::Slow } else { End::Idle }, now);
            true
        });
        if has_ended {
            // Its streams learn of it.
            self.look_later();
        }
    }

    fn end_for(&self, core: &mut Core, end: End, now: Millis) {
        let waker = self.waker();
        core.end_with(end, &self.carrier, &mut Context::from_waker(&waker), now);
        core.watch(&self.carrier, &self.streams);
    }

    /// Whether nothing is left of it to be told to anybody: no streams, and no place.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.with_core(|core| core.is_buried()) && self.streams.count() == 0
    }
}
