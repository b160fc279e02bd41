//! Deadlines of running requests. When the deadline comes, a native thread responds in place of the app. It does not
//! interrupt the thread of the app, which may be anywhere in the application. Whatever the app writes later is discarded.
//!
//! ```text
//!             begin               settle: the response begins, or the app returns
//!   Nothing ─────────▶ Running ───────────────────────────────────────────────────▶ Nothing
//!                        │ expire: 504                                                ▲
//!                        ▼                                                            │ end: the app returns
//!                     Expired ── stuck_after: counts as stuck ───────────────────────┘
//! ```
//! One lock guards the state of a thread, also while the 504 is sent, so either the app or the native thread responds.

use super::Services;
use crate::clock::{AtomicMillis, Millis, Nanos};
use crate::config::Config;
use crate::http::refusal::Refusal;
use crate::observe::access_log::escaped;
use crate::observe::excess::About;
use crate::stream::Stream;
use crate::sync::{Mutex, MutexGuard};
use crate::transport::{AfterResponse, Link, Shutdown};
use fairlead_system::wake_up;
use rustix::fd::OwnedFd;
use rustix::io::{self, fcntl_dupfd_cloexec, Errno};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The status of the response at the deadline (RFC 9110 §15.6.5).
pub(super) const GATEWAY_TIMEOUT: u16 = 504;

/// Pause until the client is offered the rest of the response again.
const RETRY: Duration = Duration::from_millis(10);

/// The deadline of the request that one thread runs.
#[derive(Debug, Default)]
pub struct Deadline(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    Running(Running),
    Expired(Expired),
}

#[derive(Debug)]
struct Running {
    at: Nanos,
    timeout: Duration,
    transport: Link,
    is_head_request: bool,
    /// True if the client has got only a part of an interim response.
    is_interrupted: bool,
    /// The method and the path, for the log.
    text: String,
}

#[derive(Debug)]
struct Expired {
    at: Nanos,
    transport: Link,
    /// Bytes of the response that the client has not taken yet.
    unsent: Vec<u8>,
    /// True if [`Deadline::take_expired`] has returned it.
    is_told: bool,
}

/// See [`Deadline::hold`].
pub(super) struct Hold<'a>(MutexGuard<'a, State>);

impl Hold<'_> {
    /// Notes after an interim response if a part of it is still to be sent: no other response can follow that.
    pub(super) fn note_unsent(mut self, is_unsent: bool) {
        if let State::Running(running) = &mut *self.0 {
            running.is_interrupted = is_unsent;
        }
    }
}

/// The deadlines of all threads of an engine.
#[derive(Debug)]
pub(crate) struct Deadlines {
    threads: Mutex<Vec<Weak<Deadline>>>,
    /// Time of the next [`Deadlines::check`] that changes something.
    next: AtomicMillis,
    /// An eventfd for the language, which may then look for expired requests.
    signal: OnceLock<OwnedFd>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines {
            threads: Mutex::default(),
            next: AtomicMillis::new(Millis::NEVER),
            signal: OnceLock::new(),
        }
    }
}

impl Deadline {
    /// Sets the deadline of the running request. Returns false if an earlier one has expired.
    fn begin(&self, stream: &Stream, now: Nanos, timeout: Duration) -> bool {
        let mut state = self.0.lock();
        if matches!(*state, State::Expired(_)) {
            return false;
        }
        let request = &stream.request;
        *state = State::Running(Running {
            at: now + timeout,
            timeout,
            transport: Arc::clone(stream.transport()),
            is_head_request: request.is_head(),
            is_interrupted: false,
            text: format!("{} {}", escaped(request.method()), escaped(request.path())),
        });
        true
    }

    /// The response of the app begins, or there is no deadline any more. Returns false if the client has got its
    /// response already.
    pub(super) fn settle(&self) -> bool {
        let mut state = self.0.lock();
        if matches!(*state, State::Expired(_)) {
            return false;
        }
        *state = State::Nothing;
        true
    }

    /// Prevents a response at the deadline while the guard lives, so that the app can send an interim response. `None` if
    /// the deadline has expired.
    pub(super) fn hold(&self) -> Option<Hold<'_>> {
        let state = self.0.lock();
        (!matches!(*state, State::Expired(_))).then_some(Hold(state))
    }

    /// The app has returned. Returns the unsent bytes of the response if the deadline had expired.
    fn end(&self) -> Option<Vec<u8>> {
        match std::mem::take(&mut *self.0.lock()) {
            State::Expired(expired) => Some(expired.unsent),
            _ => None,
        }
    }

    /// Time of the deadline, since the start of the monotonic clock; `None` if there is none.
    pub fn at(&self) -> Option<Duration> {
        match &*self.0.lock() {
            State::Running(running) => Some(Duration::from_nanos(running.at.to_number())),
            _ => None,
        }
    }

    /// Returns true once for a request that still runs after its deadline.
    pub fn take_expired(&self) -> bool {
        match &mut *self.0.lock() {
            State::Expired(expired) => !std::mem::replace(&mut expired.is_told, true),
            _ => false,
        }
    }

    /// Responds if the deadline has come. Returns the time of the next change, and true if the request is stuck.
    fn check(&self, services: &Services, now: Nanos) -> (Millis, bool) {
        let mut state = self.0.lock();
        if let State::Running(running) = &*state {
            if now < running.at {
                return (running.at.rounded_up(), false);
            }
            *state = State::Expired(running.expire(services, now));
        }
        let State::Expired(expired) = &mut *state else {
            return (Millis::NEVER, false);
        };
        let again = match expired.send(services.config(), now) {
            true => Millis::NEVER,
            false => now.rounded_up() + RETRY,
        };
        let stuck_after = services.config().stuck_after;
        let stuck_at = expired.at + stuck_after;
        match stuck_after.is_zero() {
            false if now >= stuck_at => (again, true),
            false => (again.min(stuck_at.rounded_up()), false),
            true => (again, false),
        }
    }
}

impl Running {
    /// Makes the response, and logs the request.
    fn expire(&self, services: &Services, now: Nanos) -> Expired {
        self.log(services);
        let mut unsent = Vec::new();
        if self.is_interrupted {
            self.transport.cut();
        } else {
            services.write_closing(GATEWAY_TIMEOUT, self.is_head_request, &mut unsent);
        }
        Expired {
            at: now,
            transport: Arc::clone(&self.transport),
            unsent,
            is_told: false,
        }
    }

    fn log(&self, services: &Services) {
        services.worker.counters().timed_out_requests.fetch_add(1, Relaxed);
        services.worker.count_refusal(Refusal::RequestTimeout);
        services.worker.log.about_peer(
            About::LateResponse,
            None,
            format_args!(
                "{} has not responded within {} s: responding with 504; it still runs",
                self.text,
                self.timeout.as_secs_f64()
            ),
        );
    }
}

impl Expired {
    /// Sends as much as the client takes, and ends the connection after the last byte. Returns true if nothing is left.
    fn send(&mut self, config: &Config, now: Nanos) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        let transport = &*self.transport;
        match transport.send_most(&self.unsent, false) {
            Ok(sent) => _ = self.unsent.drain(..sent),
            Err(_) => return self.give_up(),
        }
        if self.unsent.is_empty() {
            transport.give_back(AfterResponse::Close);
            let _ = transport.shut_down(Shutdown::Write);
            return true;
        }
        now - self.at > config.write_timeout && self.give_up()
    }

    /// Ends the connection in the middle of the response. Returns true: nothing is left.
    fn give_up(&mut self) -> bool {
        self.transport.cut();
        self.unsent.clear();
        true
    }
}

impl Deadlines {
    /// Sets the deadline of the request that a thread runs. `own`: the deadline of this thread, made on first use.
    /// Returns the time of the deadline; `None` if an earlier one has expired.
    pub(super) fn begin(
        &self,
        own: &mut Option<Arc<Deadline>>,
        stream: &Stream,
        now: Nanos,
        timeout: Duration,
    ) -> Option<Nanos> {
        let deadline = own.get_or_insert_with(|| {
            let deadline = Arc::default();
            self.threads.lock().push(Arc::downgrade(&deadline));
            deadline
        });
        if !deadline.begin(stream, now, timeout) {
            return None;
        }
        self.next.fetch_min((now + timeout).rounded_up(), SeqCst);
        Some(now + timeout)
    }

    /// Returns a descriptor that is readable when a deadline has expired since it was last read.
    pub(crate) fn signal(&self) -> io::Result<OwnedFd> {
        if self.signal.get().is_none() {
            let _ = self.signal.set(wake_up::open()?);
        }
        let signal = self.signal.get().ok_or(Errno::BADF)?;
        fcntl_dupfd_cloexec(signal, 0)
    }

    /// The app has returned from a request. Returns the unsent bytes of the response if its deadline had expired.
    pub(super) fn end(&self, deadline: &Deadline) -> Option<Vec<u8>> {
        let unsent = deadline.end()?;
        // It may have counted as stuck.
        self.next.store(Millis::LONG_AGO, SeqCst);
        Some(unsent)
    }

    /// Responds to the requests with deadlines that have come. Called every millisecond while a request runs; usually
    /// costs one load. Returns the number of stuck requests, if it may have changed.
    pub(crate) fn check(&self, services: &Services) -> Option<u32> {
        let now = Nanos::now();
        if now < Nanos::from(self.next.load(Relaxed)) {
            return None;
        }
        // A deadline that is set from here on lowers it again.
        self.next.store(Millis::NEVER, SeqCst);
        let (mut next, mut stuck) = (Millis::NEVER, 0);
        self.threads.lock().retain(|thread| {
            let Some(deadline) = thread.upgrade() else { return false };
            let (at, is_stuck) = deadline.check(services, now);
            next = next.min(at);
            stuck += u32::from(is_stuck);
            true
        });
        self.next.fetch_min(next, SeqCst);
        if let Some(signal) = self.signal.get() {
            wake_up::ring(signal);
        }
        Some(stuck)
    }
}
