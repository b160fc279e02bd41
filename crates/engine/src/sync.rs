//! Locks. They wrap the locks of std, which have all their state in themselves: a process that was forked while other
//! threads held or awaited locks can use all locks that it makes itself. Poison is ignored, because the engine
//! continues after a panic that [`Worker::guard`](crate::worker::Worker::guard) has caught.
//!
//! `scheduler/states/` and `http2/signal.rs` use only these primitives. Their model check (`tests/schedule`) replaces
//! them with the primitives of the checker, which tries one interleaving after another.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// Number of times that a thread yields before it waits for a lock.
const YIELDS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// Holds a [`Mutex`]. It is without the guard of std only while [`Condvar`] waits, which borrows it mutably.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T>(Option<std::sync::MutexGuard<'a, T>>);

/// A lock that threads only try, and that reports if a thread holds it. The flag is the lock. The mutex inside only
/// proves this to the compiler; a thread waits for it at most while the previous holder drops its guard.
#[derive(Debug, Default)]
pub(crate) struct TryLock<T> {
    is_held: AtomicBool,
    value: Mutex<T>,
}

/// Holds a [`TryLock`].
pub(crate) struct TryGuard<'a, T> {
    is_held: &'a AtomicBool,
    value: MutexGuard<'a, T>,
}

#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Locks it. Yields a few times before it waits. The holder, which may be in a system call, then need not wake this
    /// thread, and continues with its next piece of work.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.lock_contended())
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let mut tries = (0..YIELDS).map(|_| {
            std::thread::yield_now();
            self.try_lock()
        });
        tries
            .find_map(std::convert::identity)
            .unwrap_or_else(|| MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    /// `None` if another thread, or this one, holds it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(TryLockError::Poisoned(poison)) => Some(MutexGuard(Some(poison.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("not waiting")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("not waiting")
    }
}

impl<T> TryLock<T> {
    pub(crate) const fn new(value: T) -> TryLock<T> {
        TryLock {
            is_held: AtomicBool::new(false),
            value: Mutex::new(value),
        }
    }

    /// `None` if another thread, or this one, holds it.
    pub(crate) fn try_lock(&self) -> Option<TryGuard<'_, T>> {
        let is_ours = !self.is_held.swap(true, Ordering::SeqCst);
        is_ours.then(|| TryGuard {
            is_held: &self.is_held,
            value: self.value.lock(),
        })
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }
}

impl<T> Deref for TryGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for TryGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for TryGuard<'_, T> {
    fn drop(&mut self) {
        self.is_held.store(false, Ordering::SeqCst);
    }
}

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condvar {
    pub(crate) const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Waits until it is notified; may also return spuriously.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("not waiting");
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits as [`Condvar::wait`] does, for at most `time`. Returns true if the time has passed.
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        let held = guard.0.take().expect("not waiting");
        let (held, result) = self.0.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        result.timed_out()
    }

    /// Waits while `condition` is true, for at most `time`. Returns true if it is still true then.
    pub(crate) fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        time: Duration,
    ) -> bool {
        let held = guard.0.take().expect("not waiting");
        let waited = self.0.wait_timeout_while(held, time, condition);
        let (held, result) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        result.timed_out()
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
