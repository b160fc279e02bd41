//! A connection with a request that runs in another worker: the response from there is relayed to the peer, as fast as
//! the peer takes it. See `transport/relayed.rs`.

use super::{Connection, ConnectionState, Next, Then};
use crate::clock::Millis;
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::limits::meter::Meter;
use crate::stream::output::{FileParts, Flush};
use crate::transport::poller::{Interest, Key};
use crate::transport::{AfterResponse, ByteStream, Link, RelayOwner, Shutdown, READ_TURN};
use crate::worker::Worker;
use rustix::io::{self, Errno};
use std::sync::Arc;

/// Response of another worker.
#[derive(Debug)]
pub(crate) struct RelayedResponse {
    owner: Watched,
    next: Option<AfterResponse>,
    /// True if a part of it has come.
    has_begun: bool,
    /// Measures how fast the client takes the received part.
    meter: Meter,
}

/// Socket watched by the poller. When dropped, it is no longer watched, and the other worker sees the end, even if
/// other processes have descriptors of the socket, too.
struct Watched {
    owner: RelayOwner,
    worker: Arc<Worker>,
    key: Key,
    is_read: bool,
    /// True if another owner continues with the socket.
    is_given: bool,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.owner.fmt(formatter)
    }
}

impl Watched {
    fn new(owner: RelayOwner, worker: &Arc<Worker>, key: Key) -> io::Result<Watched> {
        // Made first, so that the relay ends even if the poller cannot watch it.
        let watched = Watched {
            owner,
            worker: Arc::clone(worker),
            key,
            is_read: true,
            is_given: false,
        };
        worker.poller.add(&watched.owner.socket, key, Interest::Read)?;
        worker.poller.add(watched.owner.back_channel(), key, Interest::Read)?;
        Ok(watched)
    }

    /// Sets if the poller watches for more of the response.
    fn read(&mut self, reads: bool) -> io::Result<()> {
        if self.is_read != reads {
            let interest = if reads { Interest::Read } else { Interest::Nothing };
            self.worker.poller.change(&self.owner.socket, self.key, interest)?;
            self.is_read = reads;
        }
        Ok(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.worker.is_at_home() {
            self.worker.poller.remove(&self.owner.socket);
            self.worker.poller.remove(self.owner.back_channel());
            if !self.is_given {
                let _ = self.owner.socket.shut_down(Shutdown::Both);
            }
        }
    }
}

impl RelayedResponse {
    /// Response through `owner` for the connection with that key.
    ///
    /// # Errors
    /// If the poller cannot watch it.
    pub(crate) fn of(owner: RelayOwner, worker: &Arc<Worker>, key: Key, now: Millis) -> io::Result<RelayedResponse> {
        Ok(RelayedResponse {
            owner: Watched::new(owner, worker, key)?,
            next: None,
            has_begun: false,
            meter: Meter::begin(now),
        })
    }

    /// Time at which the client has taken too little for too long, if there is something to take.
    pub(super) fn deadline(&self, config: &Config) -> Millis {
        match self.owner.is_read {
            true => Millis::NEVER,
            false => self.meter.deadline(config.write_rate()),
        }
    }

    /// Notes the step after the response, once it is known. Returns true if the request has begun since the last call.
    fn hear(&mut self) -> bool {
        if self.next.is_some() {
            return false;
        }
        let heard = self.owner.owner.heard();
        self.next = heard.next;
        heard.begun
    }

    /// Socket to the other worker, for another owner to continue with.
    fn give_socket(&mut self) -> Link {
        self.owner.is_given = true;
        Arc::clone(&self.owner.owner.socket) as Link
    }
}

impl Connection {
    /// Relays the response from now on, because another worker has the request. Until the response is complete, any end
    /// of the connection resets it.
    pub(crate) fn await_relayed(&mut self, response: RelayedResponse) {
        self.forget_request();
        self.place.reset();
        self.state = ConnectionState::Relayed(Box::new(response));
    }

    /// True if a response is relayed.
    pub(crate) fn is_relayed(&self) -> bool {
        matches!(self.state, ConnectionState::Relayed(_))
    }

    /// Socket to the worker that made the response, for another owner to continue with.
    pub(crate) fn give_socket(&mut self) -> Option<Link> {
        match &mut self.state {
            ConnectionState::Relayed(response) => Some(response.give_socket()),
            _ => None,
        }
    }

    /// Called before the connection is parked: the poller watches for more of the response, or for room.
    ///
    /// # Errors
    /// If the poller fails.
    pub(crate) fn watch_answer(&mut self, reads: bool) -> io::Result<()> {
        match &mut self.state {
            ConnectionState::Relayed(response) => response.owner.read(reads),
            _ => Ok(()),
        }
    }

    /// One turn: relays the received part of the response. The message about the next step is read even if the client
    /// takes nothing: otherwise the poller would report it again and again.
    pub(super) fn relay(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        let ConnectionState::Relayed(response) = &mut self.state else {
            return Next::Close;
        };
        if response.owner.is_read {
            // So far there was nothing for the client to take.
            response.meter = Meter::begin(now);
        }
        let mut turn = 0;
        loop {
            let is_sent = self.pass_on(config, now);
            let ConnectionState::Relayed(response) = &mut self.state else {
                return Next::Close;
            };
            if response.hear() {
                self.turn = None;
            }
            match is_sent {
                Ok(true) if turn >= READ_TURN => return Next::AwaitAnswer,
                Ok(true) => {}
                Ok(false) if self.is_given_away() => return Next::GiveAway,
                Ok(false) => return Next::Wait(Interest::Write),
                Err(_) => return Next::Close,
            }
            let ConnectionState::Relayed(response) = &mut self.state else {
                return Next::Close;
            };
            let received = response.owner.owner.socket.receive(scratch);
            response.has_begun |= matches!(received, Ok(count) if count > 0);
            if response.hear() {
                self.turn = None;
            }
            match received {
                Ok(0) => return self.relayed_all(config, now),
                Ok(count) => {
                    turn += count;
                    self.stream.output.buffer().extend_from_slice(&scratch[..count]);
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) if self.is_given_away() => {}
                Err(Errno::AGAIN) => return self.unless_gone(Next::AwaitAnswer),
                Err(_) => return self.relayed_all(config, now),
            }
            if self.is_given_away() {
                return Next::GiveAway;
            }
        }
    }

    /// True if bytes are forwarded in both directions from now on. A stream of HTTP/2 then has only the direction of
    /// the response.
    fn is_given_away(&self) -> bool {
        let is_alone = self.stream.transport().own_events().is_none();
        matches!(&self.state, ConnectionState::Relayed(response) if response.next == Some(AfterResponse::GivenAway) && is_alone)
    }

    /// Sends the received part, as far as the client takes it, and measures this; returns true if that is everything.
    fn pass_on(&mut self, config: &Config, now: Millis) -> io::Result<bool> {
        let before = (self.stream.progress(), self.stream.output.pending());
        let flushed = self.stream.flush(FileParts::Leave)?;
        let is_sent = flushed == Flush::Done;
        let taken = match is_sent {
            true => before.1,
            false => self.stream.progress() - before.0,
        };
        if let ConnectionState::Relayed(response) = &mut self.state {
            response.meter.moved(taken, now, config.write_rate());
        }
        Ok(is_sent)
    }

    /// The client seems to have taken too little. Offers more, because the poller may not have reported a little room:
    /// see [`Connection::flush_late`].
    pub(super) fn relay_late(&mut self, config: &Config, now: Millis) -> Next {
        let before = self.stream.progress();
        match self.pass_on(config, now) {
            Ok(true) => Next::AwaitAnswer,
            Ok(false) if self.stream.progress() > before && self.deadline(config) > now => Next::Wait(Interest::Write),
            _ => Next::Close,
        }
    }

    /// `next`, unless the peer has gone.
    fn unless_gone(&self, next: Next) -> Next {
        match self.stream.transport().has_received() {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => next,
            Err(_) => Next::Close,
        }
    }

    /// Continues after the other worker has closed its end.
    fn relayed_all(&mut self, config: &Config, now: Millis) -> Next {
        let ConnectionState::Relayed(response) = &self.state else {
            return Next::Close;
        };
        let then = match response.next {
            Some(AfterResponse::NextRequest) => Then::NextRequest,
            Some(_) => Then::Close,
            None => return self.lose_response(response.has_begun),
        };
        self.place.close();
        self.served += 1;
        self.go_on_after_response(then, config, now)
    }

    /// Ends a response after the other worker has died, or has given up the request. The peer is told, or sees that its
    /// response is incomplete.
    fn lose_response(&mut self, has_begun: bool) -> Next {
        if !has_begun {
            self.place.close();
            return Next::Refuse(Refusal::WorkerLost);
        }
        // A stream is reset in any case, and the reason should be an error of this server.
        if self.stream.transport().own_events().is_some() {
            self.place.cut();
        }
        Next::Close
    }
}
