//! The event loop: opens sessions, a few at a time, and passes on what arrives.

use super::ending::{Ending, Endings};
use super::outbox::Outbox;
use super::session::{Input, Phase, Protocol, Session};
use super::Sockets;
use crate::dial::dial;
use crate::limits::{allow_open_files, describe};
use crate::options::RealTime;
use crate::pacing::{nanos, Clock, Nanos};
use crate::poller::{Poller, Ready};
use crate::request;
use crate::url::Url;
use crate::websocket::deflate::Deflater;
use crate::websocket::handshake::{self, Offer};
use memchr::memmem::Finder;
use rustix::io::{self, Errno};
use rustix::net::SocketAddrAny;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// How often time-outs and requests to stop are looked at.
const TICK: Nanos = 50_000_000;
/// Sessions that are being opened at the same time: fewer than any server's queue of connections holds.
const OPENING: usize = 100;

/// What is done with the sessions of a crowd.
pub(crate) trait Activity {
    /// The session is open and subscribed.
    fn subscribed(&mut self, _number: usize, _now: Nanos) {}

    /// A message came. The error ends the session.
    fn message(
        &mut self,
        number: usize,
        binary: bool,
        payload: &[u8],
        outbox: &mut Outbox,
        now: Nanos,
    ) -> Result<(), Ending>;

    /// A request was answered.
    fn answered(&mut self, _number: usize, _status: u16, _now: Nanos) -> Result<(), Ending> {
        Ok(())
    }

    /// Whether the session has waited too long for something.
    fn is_overdue(&self, _number: usize, _now: Nanos) -> bool {
        false
    }

    /// The session is over; what of it?
    fn ended(&mut self, _number: usize, _ending: Ending, _now: Nanos) -> Sequel {
        Sequel::Lost
    }
}

/// What the end of a session leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// It is counted.
    Lost,
    /// It had done its work.
    Done,
    /// It is opened again as if nothing had been.
    Reopened,
}

/// Sessions that speak the same to the same.
pub(crate) struct Group<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) url: &'a Url,
    pub(crate) count: usize,
}

/// What all handshakes have in common.
pub(crate) struct Terms {
    pub(crate) offer: Offer,
    /// Comes before `hello` may be said.
    pub(crate) welcome: Option<Finder<'static>>,
    pub(crate) hello: Option<String>,
    pub(crate) ready: Option<Finder<'static>>,
    pub(crate) deflater: Rc<RefCell<Deflater>>,
}

/// Where a group connects to.
struct Target {
    protocol: Protocol,
    url: Url,
    addresses: Vec<SocketAddrAny>,
}

pub(crate) struct Crowd<'a> {
    options: &'a RealTime,
    stop: &'a AtomicBool,
    clock: Clock,
    /// The time of the last wait or read.
    pub(crate) now: Nanos,
    timeout: Nanos,
    next_tick: Nanos,
    alarm: Option<Nanos>,
    poller: Poller,
    targets: Vec<Target>,
    sessions: Vec<Session>,
    /// Sessions to open.
    waiting: VecDeque<usize>,
    /// Sessions that are being opened.
    opening: usize,
    live: usize,
    /// Which local address to connect from: 127.0.0.1, then .2 and so on as each runs out of ports.
    source: u8,
    /// Some socket was connected.
    reached: bool,
    unreachable: Option<Errno>,
    terms: Terms,
    buffer: Vec<u8>,
    /// Read since everybody is there.
    bytes: u64,
    endings: Endings,
}

impl<'a> Crowd<'a> {
    pub(crate) fn new(options: &'a RealTime, groups: &[Group<'_>], stop: &'a AtomicBool) -> Result<Crowd<'a>, String> {
        allow_open_files(groups.iter().map(|group| group.count).sum())?;
        let random = RandomState::new();
        let nonce = |salt: usize| random.hash_one(salt);
        let (mut targets, mut sessions) = (Vec::new(), Vec::new());
        for group in groups {
            let nonces = (sessions.len()..).map(|number| [nonce(2 * number), nonce(2 * number + 1)]);
            let of_group = nonces.map(|nonce| Session::new(targets.len(), group.protocol, nonce));
            sessions.extend(of_group.take(group.count));
            targets.push(Target {
                protocol: group.protocol,
                url: group.url.clone(),
                addresses: group.url.endpoint.resolve()?,
            });
        }
        let clock = Clock::start();
        let finder = |text: &str| Finder::new(text.as_bytes()).into_owned();
        Ok(Crowd {
            options,
            stop,
            clock,
            now: clock.now(),
            timeout: nanos(options.timeout),
            next_tick: 0,
            alarm: None,
            poller: Poller::new().map_err(|error| format!("cannot run: {error}"))?,
            targets,
            waiting: (0..sessions.len()).collect(),
            sessions,
            opening: 0,
            live: 0,
            source: 1,
            reached: false,
            unreachable: None,
            terms: Terms {
                offer: Offer {
                    deflate: options.deflate,
                    protocol: options.protocol.clone(),
                },
                hello: options.hello.clone(),
                welcome: options.welcome.as_deref().map(finder),
                ready: options.ready.as_deref().map(finder),
                deflater: Rc::new(RefCell::new(Deflater::new())),
            },
            buffer: vec![0; READ_BYTES],
            bytes: 0,
            endings: Endings::default(),
        })
    }

    /// Opens all sessions and returns when each is live or over. The error is one line for the user.
    pub(crate) fn gather(&mut self, activity: &mut impl Activity) -> Result<(), String> {
        while !self.is_stopped() && (self.opening > 0 || !self.waiting.is_empty()) {
            self.turn(Nanos::MAX, activity)?;
            if let Some(error) = self.unreachable {
                let url = &self.options.url.text;
                return Err(format!("cannot connect to {url}: {}", describe(error)));
            }
        }
        self.bytes = 0;
        Ok(())
    }

    /// Waits for something to happen, until `until` at the most, and deals with it.
    pub(crate) fn turn(&mut self, until: Nanos, activity: &mut impl Activity) -> Result<(), String> {
        self.try_turn(until, activity)
            .map_err(|error| format!("cannot run: {error}"))
    }

    fn try_turn(&mut self, until: Nanos, activity: &mut impl Activity) -> io::Result<()> {
        while self.opening < OPENING && self.unreachable.is_none() {
            let Some(number) = self.waiting.pop_front() else { break };
            self.opening += 1;
            self.open(number, activity)?;
        }
        let delay = until.min(self.next_tick).saturating_sub(self.now);
        let ready = self.poller.wait(Duration::from_nanos(delay))?;
        self.now = self.clock.now();
        for event in 0..ready {
            if let Some(ready) = self.poller.ready(event) {
                self.handle(ready, activity)?;
            }
        }
        if self.now >= self.next_tick {
            self.next_tick = self.now + TICK.min(self.timeout / 4).max(1_000_000);
            self.end_overdue(activity);
        }
        Ok(())
    }

    /// Makes waits end at `time`, to the microsecond.
    pub(crate) fn wake_at(&mut self, time: Option<Nanos>) -> Result<(), String> {
        if time != self.alarm {
            self.alarm = time;
            let delay = time.map(|time| Duration::from_nanos(time.saturating_sub(self.now)));
            self.poller
                .set_alarm(delay)
                .map_err(|error| format!("cannot run: {error}"))?;
        }
        Ok(())
    }

    /// The time, for something that is sent.
    pub(crate) fn read_clock(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How many sessions are live.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn has_live(&self) -> bool {
        self.live > 0
    }

    pub(crate) fn is_live(&self, number: usize) -> bool {
        self.sessions[number].phase == Phase::Live
    }

    pub(crate) fn outbox(&mut self, number: usize) -> &mut Outbox {
        &mut self.sessions[number].outbox
    }

    /// Writes what is in the outbox of a session.
    pub(crate) fn flush(&mut self, number: usize, activity: &mut impl Activity) -> Result<(), String> {
        self.write(number, activity)
            .map_err(|error| format!("cannot run: {error}"))
    }

    /// Says goodbye to everybody and returns what became of the sessions in `range`.
    pub(crate) fn finish(mut self, range: Range<usize>) -> Sockets {
        let sessions = &self.sessions[range];
        let count = |wanted: fn(&&Session) -> bool| sessions.iter().filter(wanted).count();
        let sockets = Sockets {
            asked: sessions.len(),
            opened: count(|session| session.opened),
            subscribed: count(|session| session.subscribed),
            left: count(|session| session.phase == Phase::Live),
            endings: self.endings,
            bytes: self.bytes,
            stopped: self.stop.load(Ordering::Relaxed),
        };
        for (number, session) in self.sessions.iter_mut().enumerate() {
            session.leave(&self.poller, number);
        }
        sockets
    }

    fn open(&mut self, number: usize, activity: &mut impl Activity) -> io::Result<()> {
        let session = &mut self.sessions[number];
        let target = &self.targets[session.group];
        session.since = self.now;
        loop {
            let address = &target.addresses[session.address];
            match dial(address, source(self.source, address)) {
                Ok((socket, _)) => {
                    let handshake = handshake_request(self.options, target, session.key());
                    session.outbox.raw(&handshake);
                    return session.dialled(socket, &self.poller, number);
                }
                Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)
                    if self.source < u8::MAX && source(2, address).is_some() =>
                {
                    self.source += 1;
                }
                // The queue of a unix socket is full, or that of a busy machine.
                Err(Errno::AGAIN) => {
                    self.opening -= 1;
                    self.waiting.push_back(number);
                    return Ok(());
                }
                Err(error) => {
                    self.refused(number, error, activity);
                    return Ok(());
                }
            }
        }
    }

    /// Connecting failed: tries the next address; after the last, the session is over.
    fn refused(&mut self, number: usize, error: Errno, activity: &mut impl Activity) {
        let session = &mut self.sessions[number];
        session.address += 1;
        if session.address < self.targets[session.group].addresses.len() {
            session.close(Phase::Waiting);
            self.opening -= 1;
            self.waiting.push_front(number);
            return;
        }
        if !self.reached {
            self.unreachable = Some(error);
        }
        self.end(number, Ending::Connect, activity);
    }

    fn handle(&mut self, ready: Ready, activity: &mut impl Activity) -> io::Result<()> {
        let session = &mut self.sessions[ready.token];
        match session.phase {
            Phase::Waiting | Phase::Over => return Ok(()),
            Phase::Connecting => {
                if let Err(error) = session.finish_connecting() {
                    self.refused(ready.token, error, activity);
                    return Ok(());
                }
                self.reached = true;
                if session.phase == Phase::Live {
                    (session.opened, session.subscribed) = (true, true);
                    (self.opening, self.live) = (self.opening - 1, self.live + 1);
                    activity.subscribed(ready.token, self.now);
                }
                return self.write(ready.token, activity);
            }
            Phase::Shaking | Phase::Subscribing | Phase::Live => {}
        }
        if ready.readable {
            self.read(ready.token, activity);
        }
        if ready.writable || !self.sessions[ready.token].outbox.is_empty() {
            self.write(ready.token, activity)?;
        }
        Ok(())
    }

    fn write(&mut self, number: usize, activity: &mut impl Activity) -> io::Result<()> {
        if let Err(ending) = self.sessions[number].write(&self.poller, number)? {
            // The reason may lie unread before it: a refusal, a close frame.
            self.read(number, activity);
            self.end(number, ending, activity);
        }
        Ok(())
    }

    fn read(&mut self, number: usize, activity: &mut impl Activity) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let session = &mut self.sessions[number];
        let was_live = session.phase == Phase::Live;
        let kept = session.kept();
        let input = session.read(&mut buffer, READ_BYTES);
        self.now = self.clock.now();
        let outcome = match input {
            Ok(Input::Bytes(bytes)) => {
                self.bytes += (bytes.len() - kept) as u64;
                session.digest(number, bytes, &self.terms, activity, self.now)
            }
            Ok(Input::End) => Err(session.end(number, activity, self.now)),
            Ok(Input::Nothing) => Ok(()),
            Err(ending) => Err(ending),
        };
        if session.phase == Phase::Live && !was_live {
            (self.opening, self.live) = (self.opening - 1, self.live + 1);
        }
        self.buffer = buffer;
        if let Err(ending) = outcome {
            self.end(number, ending, activity);
        }
    }

    fn end(&mut self, number: usize, ending: Ending, activity: &mut impl Activity) {
        let session = &mut self.sessions[number];
        match session.phase {
            Phase::Over => return,
            Phase::Live => self.live -= 1,
            _ => self.opening -= 1,
        }
        // A close frame is answered with one.
        let _ = session.write(&self.poller, number);
        match activity.ended(number, ending, self.now) {
            Sequel::Lost => self.endings.add(ending),
            Sequel::Done => {}
            Sequel::Reopened => {
                session.close(Phase::Waiting);
                return self.waiting.push_back(number);
            }
        }
        session.close(Phase::Over);
    }

    fn end_overdue(&mut self, activity: &mut impl Activity) {
        for number in 0..self.sessions.len() {
            let session = &self.sessions[number];
            let overdue = match session.phase {
                Phase::Connecting | Phase::Shaking | Phase::Subscribing => session.since + self.timeout <= self.now,
                Phase::Live => activity.is_overdue(number, self.now),
                Phase::Waiting | Phase::Over => false,
            };
            if overdue {
                self.end(number, Ending::Timeout, activity);
            }
        }
    }
}

/// The local address to connect from, where there is a choice: on the loopback of IPv4, each of its addresses has
/// ports of its own.
fn source(number: u8, address: &SocketAddrAny) -> Option<Ipv4Addr> {
    let address = std::net::SocketAddr::try_from(address.clone()).ok()?;
    (number > 1 && address.is_ipv4() && address.ip().is_loopback()).then(|| Ipv4Addr::new(127, 0, 0, number))
}

/// What is sent first; nothing where no handshake is needed.
fn handshake_request(options: &RealTime, target: &Target, key: &str) -> Vec<u8> {
    let offer = || Offer {
        deflate: options.deflate,
        protocol: options.protocol.clone(),
    };
    let fields = match target.protocol {
        Protocol::Http => return Vec::new(),
        Protocol::WebSocket => handshake::fields(key, &offer()),
        Protocol::EventStream => vec![
            ("Accept", "text/event-stream".to_owned()),
            ("Cache-Control", "no-cache".to_owned()),
        ],
    };
    request::head("GET", &target.url, fields, &options.headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn only_the_loopback_of_ipv4_has_other_addresses_to_come_from() {
        let source = |number, address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            source(number, &address.into())
        };
        assert_eq!(
            source(1, "127.0.0.1:80"),
            None,
            "the system's own choice is good enough"
        );
        assert_eq!(source(2, "127.0.0.1:80"), Some(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(source(2, "192.0.2.1:80"), None);
        assert_eq!(source(2, "[::1]:80"), None);
    }
}
