//! The listeners of a control server.

use super::poller::{Interest, Key, Poller};
use fairlead_system::sockets;
use rustix::io::{ioctl_fionbio, Errno};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Pause when descriptors or memory are short.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections.
#[derive(Debug)]
pub(super) struct Listeners {
    all: Vec<(Key, OwnedFd)>,
    /// The time to accept again, while descriptors are short.
    paused_until: Option<Instant>,
    /// True if the last attempt has failed and was reported.
    failing: bool,
}

/// The reason why connections cannot be accepted.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: io::Error,
    /// True for the first failure in a row.
    pub(super) is_first: bool,
}

impl Listeners {
    /// Begins to accept.
    pub(super) fn new(listeners: Vec<OwnedFd>, poller: &mut Poller) -> io::Result<Listeners> {
        let mut all = Listeners {
            all: Vec::new(),
            paused_until: None,
            failing: false,
        };
        for listener in listeners {
            ioctl_fionbio(&listener, true)?;
            let key = poller.key();
            poller.add(&listener, key, Interest::Read)?;
            all.all.push((key, listener));
        }
        Ok(all)
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.all.iter().any(|(one, _)| *one == key)
    }

    /// Accepts a connection; `None` if there is none. Pauses after a failure, so that descriptors become free.
    pub(super) fn accept(&mut self, key: Key, now: Instant, poller: &Poller) -> Result<Option<OwnedFd>, Failure> {
        let Some((_, listener)) = self.all.iter().find(|(one, _)| *one == key) else {
            return Ok(None);
        };
        match sockets::accept(listener) {
            Ok((socket, _)) => Ok(Some(socket)),
            // The next turn continues if a connection has come and gone, or a signal has interrupted the call.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {
                self.failing = false;
                Ok(None)
            }
            // It has been shut down, since another configuration is in force.
            Err(Errno::INVAL) => {
                self.forget(key, poller);
                Ok(None)
            }
            Err(error) => Err(self.fail(error, now, poller)),
        }
    }

    /// The time to accept again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Accepts again if the pause is over.
    pub(super) fn expire(&mut self, now: Instant, poller: &Poller) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            self.watch(Interest::Read, poller);
        }
    }

    /// Stops listening.
    pub(super) fn close(&mut self, poller: &Poller) {
        self.paused_until = None;
        for (_, listener) in self.all.drain(..) {
            poller.remove(&listener);
        }
    }

    fn forget(&mut self, key: Key, poller: &Poller) {
        if let Some(index) = self.all.iter().position(|(one, _)| *one == key) {
            let (_, listener) = self.all.swap_remove(index);
            poller.remove(&listener);
        }
    }

    fn fail(&mut self, error: Errno, now: Instant, poller: &Poller) -> Failure {
        self.paused_until = Some(now + PAUSE);
        self.watch(Interest::HangUp, poller);
        Failure {
            error: error.into(),
            is_first: !std::mem::replace(&mut self.failing, true),
        }
    }

    fn watch(&self, interest: Interest, poller: &Poller) {
        for (key, listener) in &self.all {
            // It is polled already, so this cannot fail.
            let _ = poller.change(listener, *key, interest);
        }
    }
}
