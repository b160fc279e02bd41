//! Time that the thread of a request waits for the GVL. The hook of `in_app.rs` reports when a thread wants the GVL
//! (READY) and when it gets it (RESUMED). Threads that the application starts itself are not measured.
//!
//! RESUMED comes on the thread itself; so does READY on Ruby 3.2. From 3.3 on, READY may come on the thread that wakes
//! it, by unlocking a Mutex or pushing to a Queue; the event names the woken thread. So the moment is kept in the
//! storage that Ruby has for each of its threads, where any thread may write it.

use magnus::Ruby;
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::time::Duration;

thread_local! {
    /// Nanoseconds that this thread has waited for the GVL since its request began.
    static WAITED: Cell<u64> = const { Cell::new(0) };
}

/// Stands for "watched, and does not wait". Every other number is the moment at which the wait began: nanoseconds on
/// the monotonic clock.
#[cfg_attr(not(ruby_gte_3_2), expect(dead_code, reason = "Ruby 3.1 reports no waits"))]
const HAS_IT: NonZeroUsize = NonZeroUsize::MIN;

/// Call this once, before the hook is installed.
pub(super) fn init(ruby: &Ruby) {
    moment::init(ruby);
}

/// Measures this thread from now on, until it ends.
pub(crate) fn watch_this_thread(ruby: &Ruby) {
    moment::watch_this_thread(ruby);
}

/// A request begins on this thread.
pub(crate) fn begin() {
    WAITED.set(0);
}

/// Time that this thread has waited for the GVL since [`begin`]; `None` if Ruby does not report it.
pub(crate) fn so_far() -> Option<Duration> {
    moment::is_kept().then(|| Duration::from_nanos(WAITED.get()))
}

#[cfg(ruby_gte_3_2)]
pub(super) use events::note;

#[cfg(ruby_gte_3_2)]
mod events {
    use super::{moment, NonZeroUsize, HAS_IT, WAITED};
    use rb_sys::{
        rb_internal_thread_event_data_t, RUBY_INTERNAL_THREAD_EVENT_READY, RUBY_INTERNAL_THREAD_EVENT_RESUMED,
    };
    use rustix::time::{clock_gettime, ClockId};

    /// Handles an event.
    ///
    /// # Safety
    /// Only the hook may call this, with the arguments that Ruby gave it.
    pub(in crate::gvl) unsafe fn note(event: u32, data: *const rb_internal_thread_event_data_t) {
        // SAFETY: by the caller's promise.
        let Some(since) = (unsafe { moment::of(data) }) else {
            return;
        };
        if event == RUBY_INTERNAL_THREAD_EVENT_READY as u32 {
            // SAFETY: as above.
            unsafe { moment::set(data, now()) };
        } else if event == RUBY_INTERNAL_THREAD_EVENT_RESUMED as u32 && since != HAS_IT {
            let waited = now().get().saturating_sub(since.get());
            WAITED.set(WAITED.get() + waited as u64);
            // SAFETY: as above.
            unsafe { moment::set(data, HAS_IT) };
        }
    }

    fn now() -> NonZeroUsize {
        let time = clock_gettime(ClockId::Monotonic);
        let number = time.tv_sec as usize * 1_000_000_000 + time.tv_nsec as usize;
        NonZeroUsize::new(number).unwrap_or(HAS_IT)
    }
}

/// Storage for the moment of a thread; empty for a thread that is not watched.
#[cfg(ruby_gte_3_3)]
mod moment {
    use super::{NonZeroUsize, Ruby, HAS_IT};
    use crate::gvl::thread_value::ThreadValue;
    use rb_sys::rb_internal_thread_event_data_t;

    static MOMENT: ThreadValue = ThreadValue::new();

    pub(super) fn init(ruby: &Ruby) {
        MOMENT.make(ruby);
    }

    pub(super) fn is_kept() -> bool {
        MOMENT.is_kept()
    }

    pub(super) fn watch_this_thread(ruby: &Ruby) {
        MOMENT.set_here(ruby, HAS_IT.get());
    }

    /// # Safety
    /// Only the hook may call this, with the arguments that Ruby gave it.
    pub(super) unsafe fn of(data: *const rb_internal_thread_event_data_t) -> Option<NonZeroUsize> {
        // SAFETY: by the caller's promise.
        unsafe { MOMENT.get(data) }.and_then(NonZeroUsize::new)
    }

    /// # Safety
    /// As above.
    pub(super) unsafe fn set(data: *const rb_internal_thread_event_data_t, moment: NonZeroUsize) {
        // SAFETY: as above.
        unsafe { MOMENT.set(data, moment.get()) };
    }
}

/// On Ruby 3.2 an event always comes on its own thread.
#[cfg(all(ruby_gte_3_2, not(ruby_gte_3_3)))]
mod moment {
    use super::{Cell, NonZeroUsize, Ruby, HAS_IT};
    use rb_sys::rb_internal_thread_event_data_t;

    thread_local! {
        static MOMENT: Cell<Option<NonZeroUsize>> = const { Cell::new(None) };
    }

    pub(super) fn init(_: &Ruby) {}

    pub(super) fn is_kept() -> bool {
        true
    }

    pub(super) fn watch_this_thread(_: &Ruby) {
        MOMENT.set(Some(HAS_IT));
    }

    /// # Safety
    /// None: it is unsafe only to match the versions for other Rubies.
    pub(super) unsafe fn of(_: *const rb_internal_thread_event_data_t) -> Option<NonZeroUsize> {
        MOMENT.get()
    }

    /// # Safety
    /// As above.
    pub(super) unsafe fn set(_: *const rb_internal_thread_event_data_t, moment: NonZeroUsize) {
        MOMENT.set(Some(moment));
    }
}

/// Ruby 3.1 does not report waits.
#[cfg(not(ruby_gte_3_2))]
mod moment {
    use super::Ruby;

    pub(super) fn init(_: &Ruby) {}

    pub(super) fn is_kept() -> bool {
        false
    }

    pub(super) fn watch_this_thread(_: &Ruby) {}
}
