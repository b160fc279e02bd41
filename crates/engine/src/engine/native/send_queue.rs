//! Turns of the file sender: one connection at a time, in order, as long as the disk responds.
//!
//! A thread that takes long for one slice waits for a disk. Then another thread continues with the other connections,
//! but one thread is kept for files on other disks: an unresponsive disk does not stop the files of another disk.

use crate::clock::Millis;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::work_queue::{Item, LOOK};
use std::collections::VecDeque;
use std::time::Duration;

/// Native threads that send.
pub(super) const THREADS: usize = 4;

/// Most threads that wait for one disk.
const MOST_OF_DISK: usize = THREADS - 1;

/// A slice that takes longer than this waits for its disk.
const LONG: Duration = Duration::from_millis(100);

/// Disk with the next bytes of a connection: the device, or `None` for the temporary folder.
pub(super) type Disk = Option<u64>;

pub(super) struct SendQueue<T> {
    state: Mutex<SendQueueState<T>>,
    /// Wakes the thread that works next.
    work: Condvar,
    /// Wakes the watcher.
    watch: Condvar,
    /// Wakes a resting thread.
    rest: Condvar,
}

struct SendQueueState<T> {
    disks: Vec<Line<T>>,
    /// Number of the next item.
    next: u64,
    /// Disks of the slices being sent, with the times at which they began.
    running: Vec<(Disk, Millis)>,
    /// True if a thread waits for work, and has not been woken: at most one, so that the same thread works, with warm
    /// caches.
    is_ready: bool,
    /// Threads that only replace others.
    resting: usize,
    watcher: Watcher,
    is_stopped: bool,
}

/// State of the idle thread that checks if the working thread waits for its disk. The other threads stay asleep, so a
/// slice costs at most one wake-up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watcher {
    None,
    /// Nothing is queued.
    Resting,
    /// Checks after [`LONG`].
    Looking,
}

/// Items with their next bytes on one disk, each with its number.
struct Line<T> {
    disk: Disk,
    items: VecDeque<(u64, T)>,
}

impl<T> Default for SendQueue<T> {
    fn default() -> Self {
        SendQueue {
            state: Mutex::new(SendQueueState {
                disks: Vec::new(),
                next: 0,
                running: Vec::new(),
                is_ready: false,
                resting: 0,
                watcher: Watcher::None,
                is_stopped: false,
            }),
            work: Condvar::new(),
            watch: Condvar::new(),
            rest: Condvar::new(),
        }
    }
}

impl<T> SendQueueState<T> {
    /// True if a thread sends, and is not known to wait for its disk.
    fn is_working(&self, now: Millis) -> bool {
        self.running.iter().any(|(_, since)| now - *since < LONG)
    }

    /// Takes the oldest item that a thread may send now.
    fn take(&mut self, now: Millis) -> Option<(Disk, T)> {
        if self.is_working(now) {
            return None;
        }
        let running = &self.running;
        let is_free = |disk: Disk| running.iter().filter(|(other, _)| *other == disk).count() < MOST_OF_DISK;
        let lines = self.disks.iter_mut().filter(|line| is_free(line.disk));
        let line = lines.min_by_key(|line| line.items.front().map_or(u64::MAX, |(number, _)| *number))?;
        let (_, item) = line.items.pop_front()?;
        let disk = line.disk;
        self.running.push((disk, now));
        self.disks.retain(|line| !line.items.is_empty());
        Some((disk, item))
    }
}

impl<T> SendQueue<T> {
    /// Adds an item at the end. Returns it if the queue was stopped.
    pub(super) fn push(&self, disk: Disk, item: T) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.is_stopped {
            return Err(item);
        }
        let number = state.next;
        state.next += 1;
        match state.disks.iter_mut().find(|line| line.disk == disk) {
            Some(line) => line.items.push_back((number, item)),
            None => state.disks.push(Line {
                disk,
                items: [(number, item)].into(),
            }),
        }
        self.wake(&mut state);
        Ok(())
    }

    /// Wakes a thread for the queued items, or to watch the thread that takes the next one.
    fn wake(&self, state: &mut SendQueueState<T>) {
        let is_working = state.is_working(Millis::now());
        let needs_watcher = is_working && state.watcher == Watcher::None;
        if needs_watcher && state.resting > 0 {
            self.rest.notify_one();
        } else if (needs_watcher || !is_working) && std::mem::take(&mut state.is_ready) {
            self.work.notify_one();
        } else if state.watcher == Watcher::Resting || !is_working && state.watcher == Watcher::Looking {
            self.watch.notify_one();
        }
    }

    /// Returns the next item; waits for one. [`SendQueue::ended`] must follow.
    pub(super) fn next(&self) -> Item<(Disk, T)> {
        let mut state = self.state.lock();
        let mut next = state.take(Millis::now());
        if next.is_none() && !state.is_stopped {
            self.wait(&mut state);
            next = state.take(Millis::now());
        }
        match next {
            Some(item) => {
                if !state.disks.is_empty() {
                    self.wake(&mut state);
                }
                Item::Next(item)
            }
            None if state.is_stopped => Item::Stopped,
            None => Item::Idle,
        }
    }

    fn wait(&self, state: &mut MutexGuard<'_, SendQueueState<T>>) {
        let needs_watcher = state.is_working(Millis::now()) && state.watcher == Watcher::None;
        if !state.is_ready && !needs_watcher {
            state.is_ready = true;
            self.work.wait_for(state, LOOK);
            // Usually the thread that woke this one has set it already.
            state.is_ready = false;
        } else if state.watcher == Watcher::None {
            let (watcher, time) = match state.disks.is_empty() {
                true => (Watcher::Resting, LOOK),
                false => (Watcher::Looking, LONG),
            };
            state.watcher = watcher;
            self.watch.wait_for(state, time);
            state.watcher = Watcher::None;
        } else {
            state.resting += 1;
            self.rest.wait_for(state, LOOK);
            state.resting -= 1;
        }
    }

    /// A thread has sent a slice from `disk`.
    pub(super) fn ended(&self, disk: Disk) {
        let mut state = self.state.lock();
        // The threads of one disk need not be distinguished: the entry that began last is removed.
        if let Some(index) = state.running.iter().rposition(|(other, _)| *other == disk) {
            state.running.remove(index);
        }
    }

    /// Ends the threads as soon as their current slices are over; returns the remaining items.
    pub(super) fn stop(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.is_stopped = true;
        self.work.notify_all();
        self.watch.notify_all();
        self.rest.notify_all();
        let lines = std::mem::take(&mut state.disks);
        lines
            .into_iter()
            .flat_map(|line| line.items)
            .map(|(_, item)| item)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Disk = Some(1);
    const THERE: Disk = Some(2);

    fn queue(items: &[(Disk, u32)]) -> SendQueue<u32> {
        let queue = SendQueue::default();
        assert!(items.iter().all(|(disk, item)| queue.push(*disk, *item).is_ok()));
        queue
    }

    /// Starts the items that may run after `time`, each of which then waits for its disk.
    fn start(queue: &SendQueue<u32>, turns: u32) -> Vec<u32> {
        let later = |turn| Millis::now() + LONG * (turn + 1);
        let mut state = queue.state.lock();
        (0..turns)
            .filter_map(|turn| state.take(later(turn)))
            .map(|(_, item)| item)
            .collect()
    }

    #[test]
    fn one_is_sent_at_a_time_in_order() {
        let queue = queue(&[(HERE, 1), (THERE, 2), (HERE, 3)]);
        let now = Millis::now();
        for expected in [1, 2, 3] {
            let (disk, item) = queue.state.lock().take(now).expect("an item");
            assert_eq!(item, expected);
            assert!(queue.state.lock().take(now).is_none(), "one at a time");
            queue.ended(disk);
        }
    }

    #[test]
    fn another_thread_goes_on_while_one_waits_for_its_disk() {
        let queue = queue(&[(HERE, 1), (HERE, 2), (None, 3)]);
        assert_eq!(start(&queue, 3), [1, 2, 3]);
    }

    #[test]
    fn the_threads_go_on_one_after_the_other_without_being_told() {
        let queue = queue(&[(HERE, 1), (HERE, 2), (None, 3), (THERE, 4)]);
        std::thread::scope(|scope| {
            let (taken_tx, taken) = std::sync::mpsc::channel();
            for _ in 0..THREADS {
                let (queue, taken_tx) = (&queue, taken_tx.clone());
                scope.spawn(move || loop {
                    match queue.next() {
                        // It never comes back.
                        Item::Next((_, item)) => return taken_tx.send(item).expect("the test waits"),
                        Item::Idle => {}
                        Item::Stopped => return,
                    }
                });
            }
            let items: Vec<u32> = (0..4)
                .map_while(|_| taken.recv_timeout(Duration::from_secs(20)).ok())
                .collect();
            queue.stop();
            assert_eq!(items, [1, 2, 3, 4]);
        });
    }

    #[test]
    fn one_thread_is_left_for_other_disks() {
        let queue = queue(&[(HERE, 1), (HERE, 2), (HERE, 3), (HERE, 4), (THERE, 5)]);
        assert_eq!(start(&queue, 5), [1, 2, 3, 5]);
        queue.ended(HERE);
        queue.ended(THERE);
        assert_eq!(start(&queue, 9).len(), 1);
    }

    #[test]
    fn what_is_left_at_the_end_is_returned() {
        let queue = queue(&[(HERE, 1), (None, 2)]);
        assert_eq!(queue.stop(), [1, 2]);
        assert_eq!(queue.push(HERE, 3), Err(3));
        assert!(matches!(queue.next(), Item::Stopped));
    }
}
