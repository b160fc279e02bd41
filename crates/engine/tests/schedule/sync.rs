//! The primitives of the model checker, with the interface of `src/sync.rs`.

use shuttle::rand::{thread_rng, Rng};
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

pub(crate) struct Guard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard(Some(self.0.lock().expect("no panic")))
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.0.try_lock().ok().map(|guard| Guard(Some(guard)))
    }
}

#[derive(Default)]
pub(crate) struct TryLock<T> {
    is_held: AtomicBool,
    value: Mutex<T>,
}

pub(crate) struct TryGuard<'a, T> {
    is_held: &'a AtomicBool,
    _value: Guard<'a, T>,
}

impl<T> TryLock<T> {
    pub(crate) fn try_lock(&self) -> Option<TryGuard<'_, T>> {
        let is_ours = !self.is_held.swap(true, Ordering::SeqCst);
        is_ours.then(|| TryGuard {
            is_held: &self.is_held,
            _value: self.value.lock(),
        })
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }
}

impl<T> Drop for TryGuard<'_, T> {
    fn drop(&mut self) {
        self.is_held.store(false, Ordering::SeqCst);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("not waiting")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("not waiting")
    }
}

#[derive(Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar::default()
    }

    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        let inner = guard.0.take().expect("not waiting");
        guard.0 = Some(self.0.wait(inner).expect("no panic"));
    }

    /// A timeout of a second or more may pass at once. A shorter one never passes in the model: a thread that needs it is stuck, and
    /// reported.
    pub(crate) fn wait_for<T>(&self, guard: &mut Guard<'_, T>, time: Duration) -> bool {
        if time >= Duration::from_secs(1) && thread_rng().gen_bool(0.5) {
            return true;
        }
        self.wait(guard);
        false
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
