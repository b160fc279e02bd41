//! Work queue of a native thread: each item gets a turn, in order; the thread sleeps while there is none.

use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::Duration;

/// Interval at which an idle thread checks that its engine still exists, in case it was dropped without being stopped.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

/// Queue of one thread, to which any thread adds.
#[derive(Debug)]
pub(crate) struct WorkQueue<T, L = VecDeque<T>> {
    state: Mutex<WorkQueueState<L>>,
    wake: Condvar,
    items: PhantomData<fn(T) -> T>,
}

/// Order in which items get their turns.
pub(crate) trait Line<T> {
    fn push(&mut self, item: T);
    fn pop(&mut self) -> Option<T>;
    fn is_empty(&self) -> bool;
}

impl<T> Line<T> for VecDeque<T> {
    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }

    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

#[derive(Debug)]
struct WorkQueueState<L> {
    turns: L,
    is_stopped: bool,
    is_asleep: bool,
}

/// Result of [`WorkQueue::next`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<T> {
    Next(T),
    /// No item came in time.
    Idle,
    /// The queue was stopped.
    Stopped,
}

impl<T, L: Default> Default for WorkQueue<T, L> {
    fn default() -> Self {
        WorkQueue {
            state: Mutex::new(WorkQueueState {
                turns: L::default(),
                is_stopped: false,
                is_asleep: false,
            }),
            wake: Condvar::new(),
            items: PhantomData,
        }
    }
}

impl<T> WorkQueue<T> {
    /// Adds an item at the front. Returns it if the queue was stopped.
    pub(crate) fn push_front(&self, item: T) -> Result<(), T> {
        self.add(item, VecDeque::push_front)
    }
}

impl<T, L: Line<T>> WorkQueue<T, L> {
    /// Adds an item behind the others. Returns it if the queue was stopped.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.add(item, L::push)
    }

    fn add(&self, item: T, place: fn(&mut L, T)) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.is_stopped {
            return Err(item);
        }
        place(&mut state.turns, item);
        if state.is_asleep {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Ends the thread's work; returns the remaining items.
    pub(crate) fn stop(&self) -> VecDeque<T> {
        let mut state = self.state.lock();
        state.is_stopped = true;
        self.wake.notify_one();
        std::iter::from_fn(|| state.turns.pop()).collect()
    }

    /// Returns the next item; waits for one, for at most `time`. Only for the thread that owns the queue.
    pub(crate) fn next(&self, time: Duration) -> Item<T> {
        let mut state = self.state.lock();
        if state.turns.is_empty() && !state.is_stopped {
            state.is_asleep = true;
            self.wake.wait_for(&mut state, time);
            state.is_asleep = false;
        }
        match state.turns.pop() {
            Some(item) => Item::Next(item),
            None if state.is_stopped => Item::Stopped,
            None => Item::Idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{mpsc, Arc};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn items_get_their_turns_in_order() {
        let queue = WorkQueue::default();
        assert_eq!(
            (queue.push(1), queue.push(2), queue.push_front(0)),
            (Ok(()), Ok(()), Ok(()))
        );
        let turns = [queue.next(LONG), queue.next(LONG), queue.next(LONG)];
        assert_eq!(turns, [Item::Next(0), Item::Next(1), Item::Next(2)]);
        assert_eq!(queue.next(Duration::ZERO), Item::Idle);
    }

    #[test]
    fn an_item_added_after_the_end_is_returned() {
        let queue = WorkQueue::default();
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(queue.stop(), [1]);
        assert_eq!((queue.push(2), queue.push_front(3)), (Err(2), Err(3)));
        assert_eq!(queue.next(LONG), Item::Stopped);
    }

    #[test]
    fn a_sleeping_thread_is_woken_by_work_and_by_the_end() {
        let queue: Arc<WorkQueue<_>> = Arc::default();
        let worker = Arc::clone(&queue);
        let (turns_tx, turns) = mpsc::channel();
        std::thread::spawn(move || while turns_tx.send(worker.next(LONG)).is_ok() {});
        let wait_until_asleep = || while !queue.state.lock().is_asleep {};
        wait_until_asleep();
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(turns.recv_timeout(LONG), Ok(Item::Next(1)));
        wait_until_asleep();
        queue.stop();
        assert_eq!(turns.recv_timeout(LONG), Ok(Item::Stopped));
    }
}
