//! Gives waiting bytes of a client to the kernel, and handles the consequences: other clients give way for its memory,
//! the app is told that everything is sent, or the client has ended.

use super::client::{Client, Events};
use super::ending::EndState;
use super::frames::{Flushed, Frame};
use super::inbox::Event;
use super::outbox::{AllSent, Outbox};
use crate::limits::budget::Kind;
use crate::sync::MutexGuard;
use crate::transport::{Shutdown, Transport};
use std::sync::Arc;

impl Client {
    /// Sends the head of the response, before anything that was queued already.
    pub(super) fn send_first(&self, mut outbox: MutexGuard<'_, Outbox>, head: Frame) {
        outbox.frames.push_first(head);
        self.flush_locked(outbox);
    }

    /// Sends a frame of the server itself.
    pub(super) fn send_quietly(&self, mut outbox: MutexGuard<'_, Outbox>, frame: Vec<u8>) {
        outbox.begin();
        outbox.frames.push(Frame::Own(frame));
        self.flush_or_count(outbox);
    }

    /// Gives queued frames to the kernel, or only counts them if earlier frames wait for the socket already.
    pub(super) fn flush_or_count(&self, mut outbox: MutexGuard<'_, Outbox>) {
        if !outbox.writes {
            return self.flush_locked(outbox);
        }
        let is_too_much = self.count_waiting(&mut outbox);
        drop(outbox);
        if is_too_much {
            self.make_room();
        }
    }

    /// Gives the kernel as much as it takes, and handles the result.
    pub(super) fn flush_locked(&self, mut outbox: MutexGuard<'_, Outbox>) {
        let rate = || Some(self.realtime.upgrade()?.worker.config.write_rate());
        match outbox.flush(rate) {
            None => {}
            Some(Ok(Flushed::Part)) => {
                self.watch_writes(&mut outbox, true);
                let is_too_much = self.count_waiting(&mut outbox);
                drop(outbox);
                if is_too_much {
                    self.make_room();
                }
            }
            Some(Ok(Flushed::Everything)) => {
                self.watch_writes(&mut outbox, false);
                let drained = std::mem::take(&mut outbox.owes_drained) && self.wants(Events::DRAINED);
                let is_over = self.is_over_once_sent(&mut outbox);
                drop(outbox);
                if drained {
                    self.tell(Event::Drained);
                }
                if is_over {
                    self.end();
                }
            }
            Some(Err(_)) => {
                drop(outbox);
                self.end();
            }
        }
    }

    /// Counts the bytes that wait for the peer. Returns true if a client has to give way for them, once the outbox is
    /// unlocked.
    fn count_waiting(&self, outbox: &mut Outbox) -> bool {
        let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) else {
            return false;
        };
        let budget = || Arc::clone(transport.budget().unwrap_or_else(|| self.budget(&realtime)));
        outbox.frames.count(&realtime.spool, budget) && realtime.spool.is_memory_exceeded(0)
    }

    fn make_room(&self) {
        if let Some(realtime) = self.realtime.upgrade() {
            realtime.make_room(Kind::Responses);
        }
    }

    fn watch_writes(&self, outbox: &mut Outbox, writes: bool) {
        if std::mem::replace(&mut outbox.writes, writes) != writes {
            self.watch(outbox);
        }
    }

    /// Called once the kernel has everything. Returns true if that ends the client.
    fn is_over_once_sent(&self, outbox: &mut Outbox) -> bool {
        let awaits_answer = self.is_web_socket() && self.state() == EndState::Closing;
        match outbox.all_sent(self.protocol(), awaits_answer) {
            AllSent::Open => false,
            AllSent::Over => true,
            AllSent::Waits(until) => {
                if let Some(realtime) = self.realtime.upgrade() {
                    realtime.expect(self, until);
                }
                false
            }
        }
    }

    /// Ends a client with a connection that is gone, or has to end now; the app gets [`Event::Close`].
    pub(crate) fn end(&self) {
        if self.end_now() {
            self.tell(Event::Close);
        }
    }

    /// Ends the connection, even if other processes have the socket, too. Returns false if that has happened before.
    pub(super) fn end_now(&self) -> bool {
        let is_cut = self.is_response() && {
            let outbox = self.outbox.lock();
            outbox.is_cut() || outbox.ending.is_none()
        };
        self.end_by(|transport| match is_cut {
            true => transport.cut(),
            false => _ = transport.shut_down(Shutdown::Both),
        })
    }

    /// Gives the socket up, because another process has it.
    pub(super) fn leave_socket(&self, outbox: &mut Outbox) {
        self.advance(EndState::Closed);
        outbox.frames.clear();
        if let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) {
            transport.unwatch(&realtime.worker.poller);
        }
    }

    pub(super) fn end_by(&self, how: impl FnOnce(&dyn Transport)) -> bool {
        if !self.advance(EndState::Closed) {
            return false;
        }
        let mut outbox = self.outbox.lock();
        if let Some(owner) = outbox.take_owner() {
            drop(outbox);
            owner.take_back();
            return true;
        }
        outbox.frames.clear();
        if let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) {
            if realtime.worker.is_at_home() {
                transport.unwatch(&realtime.worker.poller);
                how(&**transport);
            }
        }
        true
    }
}
