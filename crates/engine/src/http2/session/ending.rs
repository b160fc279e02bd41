//! The end of a session: because its worker ends, its time is over, or its client has gone too far; and when that is due.

use super::{Core, End, Session, State};
use crate::clock::Millis;
use crate::connection::place::Place;
use crate::transport::LINGER;
use h2::Reason;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::task::{Context, Waker};

impl Session {
    /// Tells the client that no further requests are served; those that it has sent are.
    pub(crate) fn leave(&self) {
        let is_new = self.with_core(|core| {
            if std::mem::replace(&mut core.is_leaving, true) {
                return false;
            }
            match &mut core.state {
                State::Open(connection) => connection.graceful_shutdown(),
                State::Preface(_) => self.finish(core),
                _ => {}
            }
            true
        });
        if is_new {
            self.push();
        }
    }

    /// Ends the session now. The place and the reason are for whoever forgets it.
    pub(crate) fn end_now(&self, end: End) {
        self.with_core(|core| {
            core.end.get_or_insert(end);
            self.finish(core);
        });
    }

    /// After the end: its place, once, and the reason.
    pub(crate) fn bury(&self) -> Option<(Place, End)> {
        self.with_core(|core| {
            let place = core.place.take_if(|_| matches!(core.state, State::Over))?;
            Some((place, core.end.unwrap_or(End::Usual)))
        })
    }

    /// When [`Session::expire`] has something to do.
    pub(crate) fn deadline(&self) -> Millis {
        self.with_core(|core| self.deadline_of(core))
    }

    pub(super) fn deadline_of(&self, core: &Core) -> Millis {
        match core.state {
            State::Closing(since) => since + LINGER,
            // A client that has not taken all responses is not idle, although their streams are over.
            _ if self.stuck_since().is_some() => self.slow_deadline(core),
            _ => self.idle_deadline().min(self.slow_deadline(core)),
        }
    }

    /// When it has been idle for too long. In a drain, streams that the app has taken keep nobody.
    pub(super) fn idle_deadline(&self) -> Millis {
        let streams = self.streams.load(SeqCst);
        let idle = match streams {
            0 => self.idle_since.load(SeqCst) + self.worker.config.keep_alive_timeout,
            _ => Millis::NEVER,
        };
        let drained = self.worker.drain_deadline();
        let drained = drained.filter(|_| streams == self.hijacked.load(SeqCst));
        drained.map_or(idle, |end| idle.min(end))
    }

    /// When the client has taken too long for a frame, or to take what it has made room for.
    fn slow_deadline(&self, core: &Core) -> Millis {
        let config = &self.worker.config;
        let inside = match core.state {
            State::Preface(_) => Some(self.idle_since.load(SeqCst)),
            _ => self.pipe.inside_since(),
        };
        let after = |since: Option<Millis>, time| since.map_or(Millis::NEVER, |since| since + time);
        after(inside, config.head_timeout).min(after(self.stuck_since(), config.write_timeout))
    }

    /// Since when the client has taken nothing, if it has something to take.
    fn stuck_since(&self) -> Option<Millis> {
        self.pipe.blocked_since().or_else(|| self.pipe.unsent.since())
    }

    /// Ends the session, because it has more than others of what is short. Its streams learn of it in the poller's next
    /// turn; the requests that wait in its line are dropped now.
    pub(crate) fn give_way(&self, now: Millis) {
        self.with_core(|core| {
            core.end.get_or_insert(End::GaveWay);
            let waker = Waker::from(Arc::clone(&self.wakeup));
            core.say_goodbye(&mut Context::from_waker(&waker));
            self.close(core, now);
            self.watch_socket(core);
        });
        self.line.clear();
        self.look_later();
    }

    /// Ends the session if its deadline has come. The client is told, if that is possible.
    pub(crate) fn expire(&self, now: Millis) {
        let has_ended = self.with_core(|core| {
            if self.deadline_of(core) > now {
                return false;
            }
            if matches!(core.state, State::Closing(_)) {
                self.finish(core);
                return false;
            }
            let is_slow = self.slow_deadline(core) <= now;
            core.end = Some(if is_slow { End::Slow } else { End::Idle });
            let waker = Waker::from(Arc::clone(&self.wakeup));
            core.say_goodbye(&mut Context::from_waker(&waker));
            self.close(core, now);
            self.watch_socket(core);
            true
        });
        if has_ended {
            // Its streams learn of it.
            self.look_later();
        }
    }

    /// Whether nothing is left of it to be told to anybody: no streams, and no place.
    pub(crate) fn is_forgettable(&self) -> bool {
        let is_buried = self.with_core(|core| matches!(core.state, State::Over) && core.place.is_none());
        is_buried && self.streams.load(SeqCst) == 0
    }
}

impl Core {
    /// GOAWAY, as far as the socket takes it at once.
    pub(super) fn say_goodbye(&mut self, context: &mut Context<'_>) {
        let State::Open(connection) = &mut self.state else {
            return;
        };
        connection.abrupt_shutdown(match self.end {
            Some(End::Flood(_) | End::Slow | End::GaveWay) => Reason::ENHANCE_YOUR_CALM,
            _ => Reason::NO_ERROR,
        });
        let _ = connection.poll_closed(context);
    }
}
