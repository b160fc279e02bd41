//! The processes of the server: their links, their ids, and their ends.

use crate::hot_restart_state::{Luggage, Package, Program};
use crate::link::{Link, Message, Received};
use crate::machine::{End, FirstSpawner, Generation, Moment, ProcessId};
use crate::start::Resident;
use fairlead_system::processes::{self, Status};
use rustix::process::{getpid, kill_process, Pid, Signal};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most messages of one process that are read in one turn of the loop.
const TURN: usize = 64;

/// Longest time for the report of a parent.
const REPORT: Duration = Duration::from_secs(1);

/// The index and the slot of a worker.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its number among the workers. A replacement has the same number.
    pub index: usize,
    /// Its slot of the scoreboard.
    pub slot: usize,
}

/// A process: a spawner, a worker, or both (a sole process, which has a name as each).
#[derive(Debug)]
pub struct Child {
    /// Its name as a spawner.
    pub spawner: Option<ProcessId>,
    /// Its name as a worker.
    pub worker: Option<ProcessId>,
    /// Its generation.
    pub generation: Generation,
    /// Its index and slot as a worker.
    pub place: Option<Place>,
    /// The generation for which it becomes the spawner.
    pub promotion: Option<Generation>,
    /// True once it serves, or forks workers.
    pub ready: bool,
    /// Listeners that it has sent, for the settings in a later message.
    pub listeners: Vec<OwnedFd>,
    /// The last heartbeat in its slot; 0 before the first.
    pub beat: u64,
    /// Its start, for `/status`.
    pub began_at: SystemTime,
    /// True once it was asked to end.
    pub is_ending: bool,
    /// The moment at which it became ready.
    pub since: Moment,
    /// The program that can supervise it, if it has another version.
    pub other: Option<Program>,
    /// Its report for that program alone: settings first, then shared memory.
    pub report: Vec<OwnedFd>,
    /// True if another version has started it, and shares its memory.
    pub is_foreign: bool,
    link: Option<Link>,
    pid: Option<Pid>,
    pidfd: Option<OwnedFd>,
    /// The end that its parent has reported, where that is not the supervisor.
    pub reported: Option<End>,
    /// The moment at which it was found gone, without its end.
    gone: Option<Instant>,
    /// A signal for a process with an unknown id.
    signal: Option<Signal>,
    /// Set if this is the process of the supervisor itself.
    resident: Option<Resident>,
    /// True until its process is known, or cannot be made.
    starting: bool,
    ended: bool,
}

impl Child {
    fn new(link: Link, generation: Generation) -> Child {
        Child {
            spawner: None,
            worker: None,
            generation,
            place: None,
            promotion: None,
            ready: false,
            is_ending: false,
            listeners: Vec::new(),
            beat: 0,
            began_at: SystemTime::now(),
            since: Moment::ZERO,
            other: None,
            report: Vec::new(),
            is_foreign: false,
            link: Some(link),
            pid: None,
            pidfd: None,
            reported: None,
            gone: None,
            signal: None,
            resident: None,
            starting: false,
            ended: false,
        }
    }

    /// A spawner, or a sole process, that is being started.
    pub fn spawner(name: ProcessId, generation: Generation, link: Link) -> Child {
        Child {
            spawner: Some(name),
            starting: true,
            ..Child::new(link, generation)
        }
    }

    /// The spawner, or the sole process, of a starting server. `resident`: set if it is this process.
    pub fn first(pid: Pid, link: Link, resident: Option<Resident>) -> Child {
        let mut first = Child::spawner(FirstSpawner::ID, FirstSpawner::GENERATION, link);
        first.resident = resident;
        match resident {
            Some(_) => (first.pid, first.starting) = (Some(getpid()), false),
            None => first.is_process(pid, None),
        }
        first
    }

    /// A worker that a spawner is about to fork.
    pub fn worker(name: ProcessId, place: Place, generation: Generation, link: Link) -> Child {
        Child {
            worker: Some(name),
            place: Some(place),
            ..Child::new(link, generation)
        }
    }

    /// Its process id, if it is known.
    pub fn pid(&self) -> Option<i32> {
        self.pid.map(|pid| pid.as_raw_nonzero().get())
    }

    /// Stores its process. `pidfd`: opened here, if it is missing.
    pub fn is_process(&mut self, pid: Pid, pidfd: Option<OwnedFd>) {
        self.pid = Some(pid);
        self.starting = false;
        self.pidfd = pidfd.or_else(|| processes::descriptor(pid));
        if let Some(signal) = self.signal.take() {
            self.signal(signal);
        }
    }

    /// Returns true if it is this process.
    pub fn is_resident(&self) -> bool {
        self.resident.is_some()
    }

    /// Sends a signal, now or when the process id is known. A resident only gets messages.
    pub fn signal(&mut self, signal: Signal) {
        if self.is_resident() {
            return;
        }
        match (&self.pidfd, self.pid) {
            (Some(pidfd), Some(pid)) => processes::signal(pidfd, pid, signal),
            // A child keeps its id until its status is taken.
            (None, Some(pid)) => drop(kill_process(pid, signal)),
            (_, None) => self.signal = Some(signal),
        }
    }

    /// Sends a message. Returns false if the process does not accept it.
    pub fn send(&self, kind: &str, fields: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> bool {
        self.link
            .as_ref()
            .is_some_and(|link| link.send(kind, fields, descriptors))
    }

    /// Another descriptor of its link.
    pub fn link_copy(&self) -> Option<Link> {
        self.link.as_ref().and_then(Link::copy)
    }

    /// Kills the process. A process with an unknown id loses its link, and ends as soon as it exists. A resident stops
    /// serving, and counts as ended.
    pub fn kill(&mut self) {
        if let Some(resident) = self.resident {
            (resident.stop)();
            self.link.iter().for_each(Link::shut_down); // there may be copies
        }
        if self.pid.is_none() || self.is_resident() {
            self.link = None;
            self.starting = false;
        }
        self.signal(Signal::KILL);
    }

    /// The messages that have arrived, at most [`TURN`].
    pub fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let (Some(link), true) = (&self.link, messages.len() < TURN) {
            match link.receive() {
                Received::Message(message) => messages.push(message),
                Received::Nothing => break,
                Received::Gone => self.link = None,
            }
        }
        messages
    }

    /// The descriptors to poll.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let link = self.link.as_ref().map(AsFd::as_fd);
        let process = self.pidfd.as_ref().filter(|_| self.gone.is_none());
        link.into_iter().chain(process.map(AsFd::as_fd))
    }

    /// Returns the end of the process; `None` while it runs.
    fn end(&mut self) -> Option<End> {
        if self.is_resident() {
            return self.link.is_none().then_some(End::Exited(0));
        }
        let status = match (&self.pidfd, self.pid) {
            (Some(pidfd), Some(pid)) => processes::status(pidfd, pid),
            (_, Some(pid)) => processes::status_of_child(pid),
            (_, None) => return (self.link.is_none() && !self.starting).then_some(End::Unknown),
        };
        match status {
            Status::Ended(Some(status), _) => Some(End::Exited(status)),
            Status::Ended(_, Some(signal)) => Some(End::Killed(signal)),
            Status::Ended(..) | Status::Runs => None,
            // Not yet a child, if the process that has forked it still runs; or other code has taken its status.
            Status::NotOurs => self.link.is_none().then_some(End::Unknown),
            Status::Gone => self.reported_end(),
        }
    }

    /// The end that the parent of the process reports; unknown if it does not.
    fn reported_end(&mut self) -> Option<End> {
        let gone = *self.gone.get_or_insert_with(Instant::now);
        let reported = self.reported.take();
        reported.or_else(|| (gone.elapsed() > REPORT).then_some(End::Unknown))
    }
}

/// A process, for another supervisor program. Its format is frozen, like [`HotRestartState`](crate::hot_restart_state::HotRestartState), which
/// contains it.
#[derive(Debug, Deserialize, Serialize)]
pub struct SavedChild {
    spawner: Option<ProcessId>,
    worker: Option<ProcessId>,
    generation: Generation,
    place: Option<Place>,
    ready: bool,
    is_ending: bool,
    /// Seconds since 1970.
    began_at: f64,
    link: Option<usize>,
    pid: Option<i32>,
    /// The number of a signal to send when the process id is known.
    signal: Option<i32>,
}

impl Child {
    /// Describes the process. Adds its descriptors to `luggage`.
    ///
    /// # Errors
    /// If descriptors are short.
    pub fn save(&self, luggage: &mut Luggage) -> io::Result<SavedChild> {
        let link = self.link.as_ref().map(|link| luggage.add(link.as_fd()));
        let began_at = self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(SavedChild {
            spawner: self.spawner,
            worker: self.worker,
            generation: self.generation,
            place: self.place,
            ready: self.ready,
            is_ending: self.is_ending,
            began_at: began_at.as_secs_f64(),
            link: link.transpose()?,
            pid: self.pid(),
            signal: self.signal.map(Signal::as_raw),
        })
    }
}

impl SavedChild {
    /// Its names.
    pub fn names(&self) -> impl Iterator<Item = ProcessId> {
        self.worker.into_iter().chain(self.spawner)
    }

    /// Restores the process. `now`: the current moment.
    ///
    /// # Errors
    /// If descriptors are short: a sentence.
    pub fn restore(&self, package: &Package, now: Moment) -> Result<Child, String> {
        let link = self.link.map(|index| package.descriptor(index)).transpose()?;
        let mut child = Child {
            spawner: self.spawner,
            worker: self.worker,
            generation: self.generation,
            place: self.place,
            promotion: None,
            ready: self.ready,
            is_ending: self.is_ending,
            listeners: Vec::new(),
            beat: 0,
            began_at: UNIX_EPOCH + Duration::try_from_secs_f64(self.began_at).unwrap_or_default(),
            since: now,
            other: None,
            report: Vec::new(),
            is_foreign: false,
            link: link.map(Link::new),
            pid: None,
            pidfd: None,
            reported: None,
            gone: None,
            signal: self.signal.and_then(Signal::from_named_raw),
            resident: None,
            starting: false,
            ended: false,
        };
        if let Some(pid) = self.pid.and_then(Pid::from_raw) {
            child.is_process(pid, None);
        }
        Ok(child)
    }
}

/// All processes of the server.
#[derive(Debug, Default)]
pub struct Children {
    all: Vec<Child>,
}

impl Drop for Children {
    /// Kills a resident: a supervisor that fails must not leave behind a resident that nothing can end.
    fn drop(&mut self) {
        let residents = self.all.iter().filter(|child| child.is_resident());
        residents
            .filter_map(|child| child.link.as_ref())
            .for_each(Link::shut_down);
    }
}

impl Children {
    /// Adds a process.
    pub fn add(&mut self, child: Child) {
        self.all.push(child);
    }

    /// The process with this name, as a spawner or as a worker.
    pub fn get(&mut self, name: ProcessId) -> Option<&mut Child> {
        self.all.iter_mut().find(|child| child.is_named(name))
    }

    /// The process with this name, read-only.
    pub fn find(&self, name: ProcessId) -> Option<&Child> {
        self.all.iter().find(|child| child.is_named(name))
    }

    /// Forgets a child that never became a process.
    pub fn forget(&mut self, name: ProcessId) {
        self.all.retain(|child| !child.is_named(name));
    }

    /// All processes.
    pub fn iter(&self) -> impl Iterator<Item = &Child> {
        self.all.iter()
    }

    /// All processes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.all.iter_mut()
    }

    /// The processes that have ended since the last call. Their last messages must be read now.
    pub fn note_ends(&mut self) -> Vec<(ProcessId, End)> {
        let mut ends = Vec::new();
        for child in &mut self.all {
            if let (false, Some(end)) = (child.ended, child.end()) {
                child.ended = true;
                ends.extend(child.names().next().map(|name| (name, end)));
            }
        }
        ends
    }

    /// Removes the processes that have ended. Returns true if there were any.
    pub fn remove_ended(&mut self) -> bool {
        let before = self.all.len();
        self.all.retain(|child| !child.ended);
        self.all.len() < before
    }
}

impl Child {
    fn is_named(&self, name: ProcessId) -> bool {
        self.spawner == Some(name) || self.worker == Some(name)
    }

    /// Its names, the worker's first.
    pub fn names(&self) -> impl Iterator<Item = ProcessId> {
        self.worker.into_iter().chain(self.spawner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{shutdown, Shutdown};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    static STOPS: AtomicUsize = AtomicUsize::new(0);

    fn resident() -> (Child, Link) {
        let (ours, theirs) = Link::pair().expect("a pair");
        let stop = || _ = STOPS.fetch_add(1, Relaxed);
        (Child::first(getpid(), ours, Some(Resident { stop })), theirs)
    }

    #[test]
    fn a_resident_that_is_killed_only_stops_serving() {
        let (mut child, theirs) = resident();
        let log = child.link_copy();
        child.signal(Signal::KILL);
        assert_eq!((child.end(), STOPS.load(Relaxed)), (None, 0));
        child.kill();
        assert_eq!((child.end(), STOPS.load(Relaxed)), (Some(End::Exited(0)), 1));
        assert!(matches!(theirs.receive(), Received::Gone));
        drop(log);
    }

    #[test]
    fn a_resident_ends_when_it_shuts_its_link_down_though_a_fork_has_it_open() {
        let (mut child, theirs) = resident();
        let fork = theirs.copy();
        assert!(child.messages().is_empty());
        assert_eq!(child.end(), None);
        shutdown(&theirs, Shutdown::Both).expect("a socket");
        assert!(child.messages().is_empty());
        assert_eq!(child.end(), Some(End::Exited(0)));
        drop(fork);
    }
}
