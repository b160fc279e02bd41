//! The end of an HTTP/2 connection: because its worker ends, its deadline has passed, or its client has exceeded a
//! limit. Also computes the deadline.

use super::core::{Core, End};
use super::Http2Connection;
use crate::clock::Millis;
use crate::connection::place::Place;
use std::task::Context;

impl Http2Connection {
    /// Tells the client that no further requests are served; requests that it has sent are still served.
    pub(crate) fn leave(&self) {
        if self.with_core(|core| core.leave(&self.carrier)) {
            self.push();
        }
    }

    /// Ends the connection now. [`Http2Connection::close_for_engine`] returns the slot and the reason.
    pub(crate) fn end_now(&self, end: End) {
        self.with_core(|core| {
            core.end.get_or_insert(end);
            core.finish(&self.carrier);
        });
    }

    /// Returns the slot and the reason, once, after the end.
    pub(crate) fn close_for_engine(&self) -> Option<(Place, End)> {
        self.with_core(Core::close_for_engine)
    }

    /// The time when [`Http2Connection::expire`] has something to do.
    pub(crate) fn deadline(&self) -> Millis {
        self.with_core(|core| core.deadline(&self.carrier, &self.streams))
    }

    /// Makes sure that the connection is checked at `deadline`.
    pub(in crate::http2) fn expect(&self, deadline: Millis) {
        self.carrier.expect(deadline);
    }

    /// The agenda does not have the connection any more.
    pub(in crate::http2) fn is_not_noted(&self) {
        self.carrier.is_not_noted();
    }

    /// Removes the connection from the agenda.
    pub(in crate::http2) fn forget_deadline(&self) {
        self.carrier.forget_deadline();
    }

    /// Ends the connection, because it has the largest share of a limit that was reached. Its streams learn of the end
    /// in the poller's next turn; the requests in its queue are dropped now.
    pub(crate) fn give_way(&self, now: Millis) {
        self.with_core(|core| {
            let end = core.end.unwrap_or(End::GaveWay);
            self.end_for(core, end, now);
        });
        self.queue.clear();
        self.look_later();
    }

    /// Ends the connection if its deadline has passed, and tells the client if possible.
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
            // Tells its streams.
            self.look_later();
        }
    }

    fn end_for(&self, core: &mut Core, end: End, now: Millis) {
        let waker = self.waker();
        core.end_with(end, &self.carrier, &mut Context::from_waker(&waker), now);
        core.watch(&self.carrier, &self.streams);
    }

    /// Returns true if nothing is left to report: no streams, and no slot.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.with_core(|core| core.is_buried()) && self.streams.count() == 0
    }
}
