//! Budget of descriptors: the number that the engines of a process may have open for clients at a time, so that the
//! application can always open its own files and sockets.
//!
//! ```text
//!   limit of open descriptors (RLIMIT_NOFILE)
//!   ├── open when the first engine starts, and needed by the engines themselves
//!   ├── for the application: a quarter of the limit, at most 1,024
//!   └── for the server
//!        ├── connections: `max_connections`, or three quarters
//!        └── files: bodies of requests, responses that wait on disk, files that are sent, relays;
//!            the last quarter of them not for bodies, which can wait without a thread
//! ```
//! Code that opens a descriptor for a peer holds a [`Permit`] until it is closed. Descriptors that are open only for a
//! moment, on the thread that opens them, need none.

use super::budget::{self, Budget, Kind};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{getrlimit, Resource};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

/// The application gets this fraction (1/n) of the limit, up to a maximum.
const APPLICATION_PART: usize = 4;
const APPLICATION_MOST: usize = 1024;

/// Descriptors that an engine opens at its start, and that its threads have open for a moment.
const ENGINE: usize = 16;

/// Assumed number of open descriptors at the start if the system does not report it.
const OPEN_SOMEWHERE: usize = 64;

/// Stands for no limit.
const ENDLESS: usize = 1 << 30;

/// Maximum number of open descriptors, and their current number.
#[derive(Debug)]
struct Share {
    most: usize,
    used: AtomicUsize,
}

impl Share {
    fn new(most: usize) -> Share {
        Share {
            most: most.max(1),
            used: AtomicUsize::new(0),
        }
    }

    /// Counts one more if there are fewer than `most`.
    fn take_below(&self, most: usize) -> bool {
        let one_more = |used| (used < most).then_some(used + 1);
        self.used.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }
}

/// Budget of a process; all its engines share it.
#[derive(Debug)]
pub struct Descriptors {
    connections: Share,
    files: Share,
}

#[derive(Clone, Copy, Debug)]
enum PermitKind {
    Connection,
    File,
}

impl Descriptors {
    /// Makes the budget of this process. `max_connections`: 0 for as many as there are descriptors for.
    pub fn of_process(max_connections: usize) -> Arc<Descriptors> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Descriptors::with_limit(limit, max_connections)
    }

    /// The same for a process that may have `limit` descriptors.
    pub fn with_limit(limit: u64, max_connections: usize) -> Arc<Descriptors> {
        let limit = usize::try_from(limit).unwrap_or(ENDLESS).min(ENDLESS);
        let folder = ["/proc/self/fd", "/dev/fd"]
            .iter()
            .find_map(|path| std::fs::read_dir(path).ok());
        let open = folder.map_or(OPEN_SOMEWHERE, Iterator::count);
        Descriptors::of(server_part(limit, open), max_connections)
    }

    /// Divides `total` descriptors: connections get `max_connections`, or three quarters if that is 0. At least an
    /// eighth is kept for files.
    pub fn of(total: usize, max_connections: usize) -> Arc<Descriptors> {
        let connections = match max_connections {
            0 => total - total / 4,
            asked => asked.min(total - total / 8),
        };
        Descriptors::with(connections, total - connections)
    }

    /// Makes a budget with fixed numbers for connections and for files.
    pub fn with(connections: usize, files: usize) -> Arc<Descriptors> {
        Arc::new(Descriptors {
            connections: Share::new(connections),
            files: Share::new(files),
        })
    }

    /// Most connections for which there are descriptors.
    pub fn most_connections(&self) -> usize {
        self.connections.most
    }

    /// True if there is a descriptor for another connection.
    pub(crate) fn has_place(&self) -> bool {
        self.connections.used.load(SeqCst) < self.connections.most
    }

    /// Descriptors in use: for connections, and for files.
    pub fn used(&self) -> (usize, usize) {
        (self.connections.used.load(SeqCst), self.files.used.load(SeqCst))
    }

    /// Returns a permit for a connection.
    pub(crate) fn for_connection(self: &Arc<Self>) -> Option<Permit> {
        let share = &self.connections;
        share
            .take_below(share.most)
            .then(|| self.permit(PermitKind::Connection))
    }

    /// Returns a permit for a file that is sent, a response that waits on disk, or one end of a relay.
    pub(crate) fn for_file(self: &Arc<Self>) -> Option<Permit> {
        self.files
            .take_below(self.files.most)
            .then(|| self.permit(PermitKind::File))
    }

    /// Most descriptors for files.
    pub(crate) fn most_files(&self) -> usize {
        self.files.most
    }

    /// Most descriptors for bodies of requests.
    pub(crate) fn most_bodies(&self) -> usize {
        (self.files.most - self.files.most / 4).max(1)
    }

    /// Returns a permit for the body of a request.
    pub(crate) fn for_body(self: &Arc<Self>) -> Option<Permit> {
        self.files
            .take_below(self.most_bodies())
            .then(|| self.permit(PermitKind::File))
    }

    /// Returns a permit for a connection from the waiting room, with a descriptor that is open already. Each thread
    /// exceeds the share by at most one.
    pub(crate) fn for_transfer(self: &Arc<Self>) -> Permit {
        self.connections.used.fetch_add(1, SeqCst);
        self.permit(PermitKind::Connection)
    }

    /// Returns a permit for a file that came with such a connection: a body that another worker has stored, or a file that it
    /// has sent. The share may be exceeded by as many as that worker had.
    pub(crate) fn for_file_of_transfer(self: &Arc<Self>) -> Permit {
        self.files.used.fetch_add(1, SeqCst);
        self.permit(PermitKind::File)
    }

    fn permit(self: &Arc<Self>, kind: PermitKind) -> Permit {
        Permit {
            descriptors: Arc::clone(self),
            kind,
            _share: None,
        }
    }
}

/// The server's share if `open` of `limit` are open. If few are left, the application gets half of them.
fn server_part(limit: usize, open: usize) -> usize {
    let left = limit.saturating_sub(open + ENGINE);
    let application = (limit / APPLICATION_PART).min(APPLICATION_MOST).min(left / 2);
    left - application
}

/// Permission to have one descriptor open, as long as the permit exists.
#[derive(Debug)]
pub(crate) struct Permit {
    descriptors: Arc<Descriptors>,
    kind: PermitKind,
    /// The same for its HTTP/2 connection.
    _share: Option<budget::Share>,
}

impl Permit {
    /// Counts the permit for a file that is sent to a client of an HTTP/2 connection with this budget.
    pub(crate) fn with_budget(mut self, budget: Option<&Arc<Budget>>) -> Permit {
        self._share = budget.map(|budget| budget.count(Kind::Files, 1));
        self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let share = match self.kind {
            PermitKind::Connection => &self.descriptors.connections,
            PermitKind::File => &self.descriptors.files,
        };
        let before = share.used.fetch_sub(1, SeqCst);
        debug_assert!(before >= 1, "more permits were released than given");
    }
}

/// An open file or socket together with its permit, which is released after the close.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    // The order of the fields matters: the close comes first, then the release.
    open: T,
    _permit: Permit,
}

impl<T> Counted<T> {
    pub(crate) fn new(open: T, permit: Permit) -> Counted<T> {
        Counted { open, _permit: permit }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.open
    }
}

impl<T: AsFd> AsFd for Counted<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_keeps_a_quarter_of_the_limit_or_half_of_what_is_left() {
        for (limit, open, server) in [
            (1024, 20, 1024 - 20 - ENGINE - 256),
            (20_000, 20, 20_000 - 20 - ENGINE - 1024),
            (64, 20, 14),
            (40, 24, 0),
            (10, 24, 0),
        ] {
            assert_eq!(server_part(limit, open), server, "{open} of {limit} are open");
        }
    }

    #[test]
    fn connections_and_files_have_separate_shares() {
        for (total, max_connections, connections, files) in [
            (800, 0, 600, 200),
            (800, 100, 100, 700),
            (800, 900, 700, 100),
            (1, 0, 1, 1),
            (0, 0, 1, 1),
        ] {
            let descriptors = Descriptors::of(total, max_connections);
            let most = (descriptors.connections.most, descriptors.files.most);
            assert_eq!(most, (connections, files), "{total} for {max_connections} connections");
        }
    }

    #[test]
    fn a_permit_is_given_back_when_its_descriptor_is_closed() {
        let descriptors = Descriptors::with(1, 4);
        let connection = descriptors.for_connection().expect("the first");
        assert!(descriptors.for_connection().is_none());
        let socket = Counted::new((), connection);
        assert!(descriptors.for_connection().is_none());
        drop(socket);
        assert!(descriptors.for_connection().is_some());
    }

    #[test]
    fn bodies_leave_the_last_quarter_to_others() {
        let descriptors = Descriptors::with(1, 4);
        let mut bodies: Vec<Permit> = (0..3).map(|_| descriptors.for_body().expect("a permit")).collect();
        assert!(descriptors.for_body().is_none());
        let file = descriptors.for_file().expect("the last quarter");
        assert!(descriptors.for_file().is_none());
        let incoming = descriptors.for_file_of_transfer();
        drop((incoming, file));
        assert!(descriptors.for_body().is_none());
        bodies.pop();
        assert!(descriptors.for_body().is_some());
    }

    #[test]
    fn transfers_may_exceed_the_share_of_connections() {
        let descriptors = Descriptors::with(1, 1);
        let transfers = [descriptors.for_transfer(), descriptors.for_transfer()];
        assert_eq!(descriptors.used(), (2, 0));
        assert!(!descriptors.has_place() && descriptors.for_connection().is_none());
        drop(transfers);
        assert_eq!(descriptors.used(), (0, 0));
    }
}
