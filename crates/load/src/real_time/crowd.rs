//! The event loop: opens sessions (`sessions`), a few at a time, and dispatches their input.

mod sessions;

use super::activity::Activity;
use super::ending::{Ending, Endings};
use super::outbox::Outbox;
use super::session::{Input, Phase, Protocol, Session, Terms};
use super::Sockets;
use crate::clock::{nanos, Clock, Nanos};
use crate::limits::allow_open_files;
use crate::options::RealTime;
use crate::poller::{Poller, Ready};
use crate::received::Trouble;
use crate::tls::{Alpn, Client, Tls};
use crate::url::Url;
use crate::websocket::deflate::Deflater;
use crate::websocket::handshake::Offer;
use memchr::memmem::Finder;
use rustix::io;
use rustix::net::SocketAddrAny;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// Interval for checking timeouts and requests to stop.
const TICK: Nanos = 50_000_000;
/// Limit for sessions that are being opened at the same time: below any server's connection queue.
const OPENING: usize = 100;

/// Sessions with the same protocol and the same target.
pub(crate) struct Group<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) url: &'a Url,
    pub(crate) count: usize,
}

/// Target of a group.
struct Target {
    protocol: Protocol,
    url: Url,
    addresses: Vec<SocketAddrAny>,
    /// The client's TLS, if the URL asks for it; it remembers no sessions.
    client: Option<Client>,
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
    /// Index of the local address to connect from: 127.0.0.1, then .2 and so on as each runs out of ports.
    source: u8,
    /// At least one socket was connected.
    reached: bool,
    unreachable: Option<String>,
    terms: Terms,
    buffer: Vec<u8>,
    /// Bytes read since all sessions are open.
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
                client: Tls::new(options.tls.as_ref(), group.url, Alpn::Http1)?.map(|tls| tls.client()),
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

    /// Opens all sessions and returns when each is live or has ended. The error is one line for the user.
    pub(crate) fn gather(&mut self, activity: &mut impl Activity) -> Result<(), String> {
        while !self.is_stopped() && (self.opening > 0 || !self.waiting.is_empty()) {
            self.turn(Nanos::MAX, activity)?;
            if let Some(why) = &self.unreachable {
                return Err(format!("cannot connect to {}: {why}", self.options.url.text));
            }
        }
        self.bytes = 0;
        Ok(())
    }

    /// Waits for events, until `until` at most, and handles them.
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

    /// Reads the clock, for a message that is sent now.
    pub(crate) fn read_clock(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Number of live sessions.
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

    /// Closes all sessions and returns the counts of the sessions in `range`.
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

    fn handle(&mut self, ready: Ready, activity: &mut impl Activity) -> io::Result<()> {
        let session = &mut self.sessions[ready.token];
        match session.phase {
            Phase::Waiting | Phase::Over => return Ok(()),
            Phase::Connecting => {
                let client = self.targets[session.group].client.as_ref();
                if let Err(trouble) = session.finish_connecting(client, &self.poller, ready.token) {
                    match trouble {
                        Trouble::System(error) => self.refused(ready.token, error, activity),
                        trouble => self.insecure(ready.token, trouble, activity),
                    }
                    return Ok(());
                }
                return self.connected(ready.token, activity);
            }
            Phase::Securing => {
                if let Err(trouble) = session.go_on_securing(&mut self.buffer, &self.poller, ready.token) {
                    self.insecure(ready.token, trouble, activity);
                    return Ok(());
                }
                return self.connected(ready.token, activity);
            }
            Phase::Shaking | Phase::Subscribing | Phase::Live => {}
        }
        if ready.readable {
            self.read(ready.token, activity);
        }
        if ready.writable || self.sessions[ready.token].has_output() {
            self.write(ready.token, activity)?;
        }
        Ok(())
    }

    /// Handles progress in connecting; once the socket is open, sends the handshake.
    fn connected(&mut self, number: usize, activity: &mut impl Activity) -> io::Result<()> {
        let session = &mut self.sessions[number];
        if session.phase == Phase::Securing {
            return Ok(());
        }
        self.reached = true;
        if session.phase == Phase::Live {
            (session.opened, session.subscribed) = (true, true);
            (self.opening, self.live) = (self.opening - 1, self.live + 1);
            activity.subscribed(number, self.now);
        }
        self.write(number, activity)
    }

    fn write(&mut self, number: usize, activity: &mut impl Activity) -> io::Result<()> {
        if let Err(ending) = self.sessions[number].write(&self.poller, number)? {
            // The reason may be unread input: a refusal or a close frame.
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
        let mut trouble = None;
        let outcome = match input {
            Ok(Input::Bytes(bytes)) => {
                self.bytes += (bytes.len() - kept) as u64;
                let digested = session.digest(number, bytes, &self.terms, activity, self.now);
                match digested {
                    Ok(()) if session.has_ended() => Err(session.end(number, activity, self.now)),
                    digested => digested,
                }
            }
            Ok(Input::End) => Err(session.end(number, activity, self.now)),
            Ok(Input::Cut) => Err(session.cut()),
            Ok(Input::Nothing) => Ok(()),
            Err(Trouble::Tls(why)) => {
                trouble = Some(Trouble::Tls(why));
                Ok(())
            }
            Err(Trouble::System(_) | Trouble::Closed) => Err(Ending::Read),
        };
        if session.phase == Phase::Live && !was_live {
            (self.opening, self.live) = (self.opening - 1, self.live + 1);
        }
        self.buffer = buffer;
        if let Some(trouble) = trouble {
            self.insecure(number, trouble, activity);
        } else if let Err(ending) = outcome {
            self.end(number, ending, activity);
        }
    }

    fn end_overdue(&mut self, activity: &mut impl Activity) {
        for number in 0..self.sessions.len() {
            let session = &self.sessions[number];
            let overdue = match session.phase {
                Phase::Connecting | Phase::Securing | Phase::Shaking | Phase::Subscribing => {
                    session.since + self.timeout <= self.now
                }
                Phase::Live => activity.is_overdue(number, self.now),
                Phase::Waiting | Phase::Over => false,
            };
            if overdue {
                self.end(number, Ending::Timeout, activity);
            }
        }
    }
}
