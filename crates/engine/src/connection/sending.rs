//! Sends responses: flushes as much as the socket takes; the file sender sends files, in turns.

use super::outgoing::Outgoing;
use super::{Connection, ConnectionState, Next, Successor, Then};
use crate::clock::Millis;
use crate::config::Config;
use crate::spool::{GivesWay, Slowness};
use crate::stream::output::{FileParts, Flush, Output};
use crate::transport::poller::Interest;
use std::time::Duration;

impl Connection {
    /// Sends the response that the app has written, and continues with the next request.
    pub(crate) fn responded(&mut self, then: Then, config: &Config, now: Millis) -> Next {
        self.respond_later(then, now);
        self.flush(config, now, FileParts::Leave)
    }

    /// As [`Connection::responded`], but the response is only sent in the connection's next turn.
    pub(crate) fn respond_later(&mut self, then: Then, now: Millis) -> Next {
        self.served += 1;
        self.forget_request();
        self.begin_flush(then, now);
        Next::Wait(Interest::Write)
    }

    /// Sends the part of a response that the app has written; its successor continues with the rest.
    pub(crate) fn send_for(&mut self, successor: Box<dyn Successor>, config: &Config, now: Millis) -> Next {
        self.successor = Some(successor);
        self.begin_flush(Then::TakeOver, now);
        self.flush(config, now, FileParts::Leave)
    }

    /// Takes the successor, which continues the response.
    pub(crate) fn take_successor(&mut self) -> Option<Box<dyn Successor>> {
        self.successor.take()
    }

    /// Lets a client send the rest of the response. Further input stays in the kernel meanwhile, so no buffers are
    /// kept.
    pub(crate) fn share_with_client(&mut self) {
        self.forget_request();
        self.stream.input.shrink_to_fit();
        drop(self.stream.output.take_buffer());
        self.place.share_with_client();
    }

    fn begin_flush(&mut self, then: Then, now: Millis) {
        self.state = ConnectionState::Flush(Outgoing::new(then, now));
    }

    /// One turn of the file sender: at most one slice of a file. `Send` asks for another turn.
    pub(crate) fn send(&mut self, config: &Config, now: Millis) -> Next {
        if self.is_late() {
            return self.flush_late(config, now, FileParts::Send);
        }
        self.flush(config, now, FileParts::Send)
    }

    /// True if the file sender has to check a client that seems to take no more.
    pub(crate) fn is_late(&self) -> bool {
        matches!(&self.state, ConnectionState::Flush(outgoing) if outgoing.is_late())
    }

    /// Sends the server's own response in the output, and discards further input.
    pub(crate) fn refused(&mut self, now: Millis) -> Next {
        self.forget_request();
        self.stream.input.clear();
        self.begin_flush(Then::Linger, now);
        match self.stream.flush(FileParts::Leave) {
            Ok(Flush::Done) => self.linger(now),
            // An error page may be larger than the socket takes at once.
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    pub(super) fn flush(&mut self, config: &Config, now: Millis, files: FileParts) -> Next {
        let before = self.stream.progress();
        let ConnectionState::Flush(outgoing) = &mut self.state else {
            return Next::Close;
        };
        let then = outgoing.then();
        let flushed = self.stream.flush(files);
        // The client is not charged for a slow disk.
        let now = if files == FileParts::Send { Millis::now() } else { now };
        match flushed {
            Ok(Flush::Done) => {}
            Ok(flushed) => {
                let taken = self.stream.progress() - before;
                if flushed == Flush::Turn && taken > 0 {
                    // The client takes everything that it is offered.
                    outgoing.restart(now);
                } else {
                    outgoing.moved(taken, now, config);
                }
                let is_for_file_sender = flushed == Flush::Turn && self.stream.output.is_at_file();
                return if is_for_file_sender {
                    Next::Send
                } else {
                    Next::Wait(Interest::Write)
                };
            }
            Err(_) => return Next::Close,
        }
        self.go_on_after_response(then, config, now)
    }

    /// The poller reports a socket as writable only when a third of its buffer is free. A slow reader may need longer
    /// for that than its timeout, so it is offered more to see if it takes anything at all.
    pub(super) fn flush_late(&mut self, config: &Config, now: Millis, files: FileParts) -> Next {
        if let ConnectionState::Flush(outgoing) = &mut self.state {
            outgoing.be_in_time();
        }
        let before = self.stream.progress();
        let next = self.flush(config, now, files);
        let stands_still = self.stream.progress() == before || self.deadline(config) <= now;
        if matches!(next, Next::Wait(Interest::Write) | Next::Send) && stands_still {
            // Otherwise the kernel would keep megabytes that the client does not read, for minutes.
            self.place.reset();
            return Next::Close;
        }
        next
    }

    /// Slowness of the client, if its response is complete and holds memory that others could use, or (with
    /// `from_disk`) space on the disk.
    pub(crate) fn slowness(&self, now: Millis, from_disk: bool) -> Option<Slowness> {
        let keeps =
            self.is_flushing() && (from_disk && self.stream.output.is_spooling() || self.stream.output.holds_memory());
        self.stream.output.slowness(now).filter(|_| keeps)
    }

    /// Decides if it gives way to others: its response is complete and waits, and its client would not have taken it
    /// within `limit`.
    pub(super) fn gives_way(&mut self, limit: Option<Duration>, now: Millis) -> GivesWay {
        let Some(limit) = limit.filter(|_| self.is_flushing()) else {
            return if self.is_flushing() {
                GivesWay::Yes
            } else {
                GivesWay::No
            };
        };
        let gives_way = |output: &Output| {
            let slowness = output.slowness(now);
            slowness.map_or(GivesWay::No, |slowness| slowness.gives_way(limit))
        };
        let verdict = gives_way(&self.stream.output);
        if verdict != GivesWay::Yes {
            return verdict;
        }
        // The poller may not have reported that it takes more.
        self.offer_more();
        gives_way(&self.stream.output)
    }

    /// Checks if a client takes more of its waiting data in memory. The next event brings the consequences.
    pub(super) fn offer_more(&mut self) {
        let has_exact_events = self.stream.transport().own_events().is_some();
        if self.is_flushing() && !has_exact_events && self.stream.output.holds_memory() {
            let _ = self.stream.flush(FileParts::Leave);
        }
    }
}
