//! The open connections of a control server. If there are too many, the connection that has been silent longest is
//! closed. A probe that sends its request at once is never that connection.

use super::connection::Connection;
use super::poller::{Interest, Key, Poller};
use super::request::Request;
use super::response::Response;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{getrlimit, Resource};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most open connections; more than there may be commands.
const LIMIT: usize = 64;

/// Descriptors that connections leave free, for the processes that the supervisor starts.
const RESERVE: u64 = 32;

/// The connections, by their names.
#[derive(Debug)]
pub(super) struct Connections {
    all: BTreeMap<Key, Watched>,
    patience: Duration,
}

#[derive(Debug)]
struct Watched {
    connection: Connection,
    /// Events for which the poller watches it.
    interest: Option<Interest>,
}

impl Connections {
    /// `patience`: the time for a request, and again for the response.
    pub(super) fn new(patience: Duration) -> Connections {
        let all = BTreeMap::new();
        Connections { all, patience }
    }

    /// Makes room for the socket. Returns its name; `None` if there is no room, and the socket is closed.
    pub(super) fn add(&mut self, socket: OwnedFd, now: Instant, poller: &mut Poller) -> Option<Key> {
        if self.all.len() >= LIMIT && !self.drop_silent(poller) {
            return None;
        }
        let socket = self.place(socket, poller)?;
        let key = poller.key();
        let connection = Connection::new(socket, self.patience, now);
        self.all.insert(
            key,
            Watched {
                connection,
                interest: None,
            },
        );
        Some(key)
    }

    /// The kernel assigns the lowest free number. A socket in the reserve replaces another one below it, so the reserve
    /// stays free; but one connection is always allowed.
    fn place(&mut self, socket: OwnedFd, poller: &Poller) -> Option<OwnedFd> {
        if self.all.is_empty() || !is_in_reserve(&socket) {
            return Some(socket);
        }
        let has_place = self.drop_silent(poller) || self.drop_viewer(poller);
        has_place.then(|| fcntl_dupfd_cloexec(&socket, 0).ok()).flatten()
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.all.contains_key(&key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Continues with a ready connection. Returns its request when that is complete.
    pub(super) fn advance(&mut self, key: Key, now: Instant, poller: &Poller) -> Option<Request> {
        let request = self.all.get_mut(&key)?.connection.advance(now);
        self.settle(key, poller);
        request
    }

    /// Sends the response to the request of a connection.
    pub(super) fn answer(&mut self, key: Key, response: &Response, now: Instant, poller: &Poller) {
        if let Some(watched) = self.all.get_mut(&key) {
            watched.connection.answer(response, now);
            self.settle(key, poller);
        }
    }

    /// Begins a stream of events with these events.
    pub(super) fn stream(&mut self, key: Key, events: &Arc<[u8]>, now: Instant, poller: &Poller) {
        if let Some(watched) = self.all.get_mut(&key) {
            watched.connection.stream(events, now);
            self.settle(key, poller);
        }
    }

    /// Sends an event to all streams.
    pub(super) fn send_event(&mut self, event: &Arc<[u8]>, now: Instant, poller: &Poller) {
        for key in self.select(Connection::is_streaming) {
            if let Some(watched) = self.all.get_mut(&key) {
                watched.connection.send_event(event, now);
            }
            self.settle(key, poller);
        }
    }

    /// The number of streams.
    pub(super) fn viewers(&self) -> usize {
        self.all
            .values()
            .filter(|watched| watched.connection.is_streaming())
            .count()
    }

    /// Closes the connection that has been silent longest. Returns false if all connections have a running command, or a
    /// stream.
    pub(super) fn drop_silent(&mut self, poller: &Poller) -> bool {
        let is_busy = |connection: &Connection| connection.is_running() || connection.is_streaming();
        let idle = self.all.iter().filter(|(_, watched)| !is_busy(&watched.connection));
        let silent = idle
            .min_by_key(|(_, watched)| watched.connection.active_at())
            .map(|(key, _)| *key);
        silent.inspect(|key| self.close(*key, poller)).is_some()
    }

    /// Closes a stream, because commands and probes are more important. Returns false if there is none.
    fn drop_viewer(&mut self, poller: &Poller) -> bool {
        let viewer = self.select(Connection::is_streaming).first().copied();
        viewer.inspect(|key| self.close(*key, poller)).is_some()
    }

    /// Closes the connections that have not sent a request, and the streams.
    pub(super) fn drop_unanswered(&mut self, poller: &Poller) {
        for key in self.select(|connection| connection.is_reading() || connection.is_streaming()) {
            self.close(key, poller);
        }
    }

    /// Closes all.
    pub(super) fn clear(&mut self, poller: &Poller) {
        for key in self.select(|_| true) {
            self.close(key, poller);
        }
    }

    /// The next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.all
            .values()
            .filter_map(|watched| watched.connection.deadline())
            .min()
    }

    /// Ends connections past their deadline.
    pub(super) fn expire(&mut self, now: Instant, poller: &Poller) {
        let is_late = |connection: &Connection| connection.deadline().is_some_and(|deadline| deadline <= now);
        for key in self.select(is_late) {
            if let Some(watched) = self.all.get_mut(&key) {
                watched.connection.expire(now);
            }
            self.settle(key, poller);
        }
    }

    fn select(&self, wanted: impl Fn(&Connection) -> bool) -> Vec<Key> {
        let wanted = self.all.iter().filter(|(_, watched)| wanted(&watched.connection));
        wanted.map(|(key, _)| *key).collect()
    }

    fn close(&mut self, key: Key, poller: &Poller) {
        if let Some(watched) = self.all.get_mut(&key) {
            watched.connection.close();
        }
        self.settle(key, poller);
    }

    /// Drops a closed connection, and updates the polled events of an open one.
    fn settle(&mut self, key: Key, poller: &Poller) {
        let Some(watched) = self.all.get_mut(&key) else {
            return;
        };
        if watched.watch(key, poller).is_err() || watched.connection.is_closed() {
            poller.remove(&watched.connection);
            self.all.remove(&key);
        }
    }
}

impl Watched {
    fn watch(&mut self, key: Key, poller: &Poller) -> std::io::Result<()> {
        let wanted = self.connection.interest();
        match (self.interest, wanted) {
            (before, now) if before == now => {}
            (None, Some(interest)) => poller.add(&self.connection, key, interest)?,
            (Some(_), Some(interest)) => poller.change(&self.connection, key, interest)?,
            (_, None) => poller.remove(&self.connection),
        }
        self.interest = wanted;
        Ok(())
    }
}

fn is_in_reserve(socket: &OwnedFd) -> bool {
    let number = u64::try_from(socket.as_raw_fd()).unwrap_or(0);
    getrlimit(Resource::Nofile)
        .current
        .is_some_and(|limit| number + RESERVE >= limit)
}
