//! Publications of this process that the dispatcher has not taken yet: in order, and bounded.
//!
//! The dispatcher sleeps in poll(2), so a publisher that finds it asleep wakes it through an eventfd.

use super::between::Job;
use super::publication::Publication;
use super::PATIENCE;
use crate::sync::{Condvar, Mutex, MutexGuard};
use fairlead_system::wake_up;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes that may wait for the dispatcher; above this limit, publishers wait.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Most publications that may wait: even short ones take time if they have many subscribers.
const MOST_WAITING: usize = 16 * 1024;

/// Most jobs that run between the same two publications.
const MOST_JOBS: usize = 64;

/// Publications without a subscriber in this process wait for others, until they are so many, or so many bytes: waking the
/// dispatcher for each would take longer than publishing it.
const FEW: usize = 64;
const FEW_BYTES: usize = 256 * 1024;

/// The time that the dispatcher pauses if the system has no memory to poll with.
const PAUSE: Duration = Duration::from_millis(1);

/// The kernel rounds timeouts.
const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Notified when there is room again, or never will be.
    room: Condvar,
    waker: OwnedFd,
}

#[derive(Default)]
struct QueueState {
    publications: VecDeque<Arrived>,
    bytes: usize,
    /// The number of publications that nobody here wants.
    unwanted: usize,
    /// Jobs run now.
    runs_jobs: bool,
    /// The jobs, and the number of publications that have to be taken before each.
    jobs: VecDeque<(u64, Job)>,
    /// Number of publications that the dispatcher has ever taken.
    taken: u64,
    phase: QueuePhase,
    /// The dispatcher is in poll(2), or about to be.
    asleep: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueuePhase {
    /// There is no dispatcher yet.
    #[default]
    New,
    Open,
    Closed,
}

/// A publication, and true if this process has subscribers that may want it.
type Arrived = (Arc<Publication>, bool);

/// The next work of the dispatcher.
pub(super) enum Taken {
    Publication(Arc<Publication>),
    /// It is not for the subscribers of this process.
    Unwanted(Arc<Publication>),
    /// Jobs that run between the same two publications.
    Jobs(Vec<Job>),
    Nothing,
}

impl Queue {
    pub(super) fn new() -> io::Result<Queue> {
        Ok(Queue {
            state: Mutex::default(),
            room: Condvar::new(),
            waker: wake_up::open()?,
        })
    }

    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        state.publications.len() - state.unwanted
    }

    /// Opens the queue for the dispatcher. Returns false if it was opened or closed before.
    pub(super) fn open(&self) -> bool {
        let mut state = self.state.lock();
        let is_new = state.phase == QueuePhase::New;
        if is_new {
            state.phase = QueuePhase::Open;
        }
        is_new
    }

    /// Closes the queue. The dispatcher ends when it has delivered all queued publications. Returns false if there is
    /// no dispatcher.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state.lock();
        let former = std::mem::replace(&mut state.phase, QueuePhase::Closed);
        self.room.notify_all();
        self.wake(state);
        former != QueuePhase::New
    }

    /// Adds a publication; waits inside of `block` while there is no room for it. Returns false if it was not taken.
    /// `is_wanted`: returns true if this process has subscribers that may want it.
    pub(super) fn push(
        &self,
        publication: &Arc<Publication>,
        is_wanted: &dyn Fn() -> bool,
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> bool {
        let state = self.state.lock();
        let is_new = state.phase == QueuePhase::New;
        if state.phase == QueuePhase::Closed || is_new && !is_wanted() {
            return !is_wanted();
        }
        if state.has_room(publication) {
            self.add(state, publication, is_wanted);
            return true;
        }
        drop(state);
        let mut added = false;
        block(&mut || added = added || self.wait_and_add(publication, is_wanted));
        added
    }

    fn wait_and_add(&self, publication: &Arc<Publication>, is_wanted: &dyn Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        let mut taken = state.taken;
        while state.phase == QueuePhase::Open && !state.has_room(publication) {
            let late = self.room.wait_for(&mut state, PATIENCE);
            if late && state.taken == taken {
                return false;
            }
            taken = state.taken;
        }
        let is_open = state.phase == QueuePhase::Open;
        if is_open {
            self.add(state, publication, is_wanted);
        }
        is_open
    }

    fn add(&self, mut state: MutexGuard<'_, QueueState>, publication: &Arc<Publication>, is_wanted: &dyn Fn() -> bool) {
        // A job may add subscribers, except a job that comes later: it runs after this publication.
        let is_wanted = state.runs_jobs || !state.jobs.is_empty() || is_wanted();
        state.bytes += weight(publication);
        state.unwanted += usize::from(!is_wanted);
        state.publications.push_back((Arc::clone(publication), is_wanted));
        if state.has_work() {
            self.wake(state);
        }
    }

    /// Wakes the dispatcher, because the history has something for it.
    pub(super) fn rouse(&self) {
        self.wake(self.state.lock());
    }

    fn wake(&self, mut state: MutexGuard<'_, QueueState>) {
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            wake_up::ring(&self.waker);
        }
    }

    /// Adds a job, which runs after the publications that are here. Returns false if there is no dispatcher.
    pub(super) fn push_job(&self, job: Job) -> bool {
        let mut state = self.state.lock();
        if state.phase != QueuePhase::Open {
            return false;
        }
        let before = state.taken + state.publications.len() as u64;
        state.jobs.push_back((before, job));
        self.wake(state);
        true
    }

    /// Takes the oldest publication, or the jobs before it.
    pub(super) fn take(&self) -> Taken {
        let mut state = self.state.lock();
        state.runs_jobs = false;
        if state.jobs.front().is_some_and(|(before, _)| *before <= state.taken) {
            let now = state.jobs.iter().take_while(|(before, _)| *before <= state.taken);
            let count = now.take(MOST_JOBS).count();
            state.runs_jobs = true;
            return Taken::Jobs(state.jobs.drain(..count).map(|(_, job)| job).collect());
        }
        let Some((publication, is_wanted)) = state.publications.pop_front() else {
            return Taken::Nothing;
        };
        state.bytes -= weight(&publication);
        state.taken += 1;
        state.unwanted -= usize::from(!is_wanted);
        // Not for every publication: a publisher that wakes up should be able to add several.
        if state.bytes <= MOST_BYTES / 2 && state.publications.len() <= MOST_WAITING / 2 {
            self.room.notify_all();
        }
        match is_wanted {
            true => Taken::Publication(publication),
            false => Taken::Unwanted(publication),
        }
    }

    /// Sleeps until there is a publication or a job here or mail in the mailbox, or this thread is roused. Returns false if the queue
    /// is closed and empty. `longest`: the time after which it wakes anyway. `has_more`: is called when this thread can be roused; true if it must not sleep.
    pub(super) fn sleep(
        &self,
        mailbox: Option<BorrowedFd<'_>>,
        longest: Option<Duration>,
        has_more: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.state.lock();
        if state.has_work() || state.phase == QueuePhase::Closed {
            return state.has_work();
        }
        state.asleep = true;
        drop(state);
        if has_more() {
            self.state.lock().asleep = false;
            return true;
        }
        let waker = self.waker.as_fd();
        let mailbox = mailbox.unwrap_or(waker);
        let mut fds = [waker, mailbox].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let longest = longest.map(|longest| longest + MILLISECOND);
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        match poll(&mut fds, longest.as_ref()) {
            Ok(_) | Err(io::Errno::INTR) => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
        if fds[0].revents().contains(PollFlags::IN) {
            wake_up::take(waker);
        }
        self.state.lock().asleep = false;
        true
    }
}

impl QueueState {
    fn has_work(&self) -> bool {
        let is_few = self.unwanted < FEW && self.bytes < FEW_BYTES && self.phase != QueuePhase::Closed;
        let can_wait = is_few && self.unwanted == self.publications.len() && self.jobs.is_empty();
        let is_empty = self.publications.is_empty() && self.jobs.is_empty();
        !can_wait && !is_empty
    }

    /// Returns true if there is room. A publication above the limit is taken if nothing else waits.
    fn has_room(&self, publication: &Publication) -> bool {
        let is_small = self.bytes + weight(publication) <= MOST_BYTES && self.publications.len() < MOST_WAITING;
        is_small || self.publications.is_empty()
    }
}

fn weight(publication: &Publication) -> usize {
    publication.channel.len() + publication.message.len()
}
