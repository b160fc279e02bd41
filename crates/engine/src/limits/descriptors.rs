//! The budget of descriptors: what the engines of a process may have open at a time for those whom they serve, so that the
//! application can always open files and sockets of its own.
//!
//! ```text
//!   what the process may open (RLIMIT_NOFILE)
//!   ├── what is open when the first engine starts, and what engines need for themselves
//!   ├── the application's: a quarter of the limit, at most 1,024
//!   └── the server's
//!        ├── connections: `max_connections`, or three quarters
//!        └── files: bodies of requests, responses that wait on disk, files that are sent, relays;
//!            the last quarter of them not for bodies, which can wait without a thread
//! ```
//! Whoever opens a descriptor for a peer holds a [`Permit`] until it is closed. What is open for a moment only, on the thread
//! that opens it, needs none.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{getrlimit, Resource};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

/// The application gets this part of the limit, but no more than so many.
const APPLICATION_PART: usize = 4;
const APPLICATION_MOST: usize = 1024;

/// What an engine opens at its start, and what its threads have open for a moment.
const ENGINE: usize = 16;

/// Taken to be open at the start where the system does not tell.
const OPEN_SOMEWHERE: usize = 64;

/// Taken for no limit at all.
const ENDLESS: usize = 1 << 30;

/// What may be open, and what is.
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

/// The descriptors of a process; all its engines draw from them.
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
    /// What this process may use from now on. `max_connections`: 0 for as many as there are descriptors for.
    pub fn of_process(max_connections: usize) -> Arc<Descriptors> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = usize::try_from(limit).unwrap_or(ENDLESS).min(ENDLESS);
        let folder = ["/proc/self/fd", "/dev/fd"]
            .iter()
            .find_map(|path| std::fs::read_dir(path).ok());
        let open = folder.map_or(OPEN_SOMEWHERE, Iterator::count);
        Descriptors::of(server_part(limit, open), max_connections)
    }

    /// `total` of them, of which connections get what `max_connections` asks for, or three quarters; an eighth stays for files.
    pub fn of(total: usize, max_connections: usize) -> Arc<Descriptors> {
        let connections = match max_connections {
            0 => total - total / 4,
            asked => asked.min(total - total / 8),
        };
        Descriptors::with(connections, total - connections)
    }

    /// So many for connections, so many for files.
    pub fn with(connections: usize, files: usize) -> Arc<Descriptors> {
        Arc::new(Descriptors {
            connections: Share::new(connections),
            files: Share::new(files),
        })
    }

    /// How many connections there are descriptors for.
    pub fn most_connections(&self) -> usize {
        self.connections.most
    }

    /// Whether there is one for another connection.
    pub(crate) fn has_place(&self) -> bool {
        self.connections.used.load(SeqCst) < self.connections.most
    }

    /// How many are in use: for connections, and for files.
    pub fn used(&self) -> (usize, usize) {
        (self.connections.used.load(SeqCst), self.files.used.load(SeqCst))
    }

    /// For a connection.
    pub(crate) fn for_connection(self: &Arc<Self>) -> Option<Permit> {
        let share = &self.connections;
        share
            .take_below(share.most)
            .then(|| self.permit(PermitKind::Connection))
    }

    /// For a file that is sent, a response that waits on disk, or one end of a relay.
    pub(crate) fn for_file(self: &Arc<Self>) -> Option<Permit> {
        self.files
            .take_below(self.files.most)
            .then(|| self.permit(PermitKind::File))
    }

    /// For the body of a request.
    pub(crate) fn for_body(self: &Arc<Self>) -> Option<Permit> {
        let most = (self.files.most - self.files.most / 4).max(1);
        self.files.take_below(most).then(|| self.permit(PermitKind::File))
    }

    /// For a connection from the waiting room: it is open here already. At the most, each thread takes the share over by one.
    pub(crate) fn for_transfer(self: &Arc<Self>) -> Permit {
        self.connections.used.fetch_add(1, SeqCst);
        self.permit(PermitKind::Connection)
    }

    /// For its body, which another worker has stored and a thread is about to read: the same.
    pub(crate) fn for_body_of_transfer(self: &Arc<Self>) -> Permit {
        self.files.used.fetch_add(1, SeqCst);
        self.permit(PermitKind::File)
    }

    fn permit(self: &Arc<Self>, kind: PermitKind) -> Permit {
        Permit {
            descriptors: Arc::clone(self),
            kind,
        }
    }
}

/// What the server may use where `open` of `limit` are open. Where little is left, the application gets half of that.
fn server_part(limit: usize, open: usize) -> usize {
    let left = limit.saturating_sub(open + ENGINE);
    let application = (limit / APPLICATION_PART).min(APPLICATION_MOST).min(left / 2);
    left - application
}

/// One descriptor may be open for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Permit {
    descriptors: Arc<Descriptors>,
    kind: PermitKind,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let share = match self.kind {
            PermitKind::Connection => &self.descriptors.connections,
            PermitKind::File => &self.descriptors.files,
        };
        share.used.fetch_sub(1, SeqCst);
    }
}

/// An open file or socket together with its permit, which it gives back once it is closed.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    // The order counts: closed first, then given back.
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
    fn connections_and_files_have_shares_of_their_own() {
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
    fn a_permit_comes_back_when_what_it_is_for_is_closed() {
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
        let transfer = descriptors.for_body_of_transfer();
        drop((transfer, file));
        assert!(descriptors.for_body().is_none());
        bodies.pop();
        assert!(descriptors.for_body().is_some());
    }

    #[test]
    fn who_comes_from_the_waiting_room_is_not_turned_away_for_the_share() {
        let descriptors = Descriptors::with(1, 1);
        let transfers = [descriptors.for_transfer(), descriptors.for_transfer()];
        assert_eq!(descriptors.used(), (2, 0));
        assert!(!descriptors.has_place() && descriptors.for_connection().is_none());
        drop(transfers);
        assert_eq!(descriptors.used(), (0, 0));
    }
}
