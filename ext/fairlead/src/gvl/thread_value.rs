//! A word that Ruby keeps for each of its threads, for what the hook notes of the thread that an event is of. From Ruby 3.3
//! on, READY may come on the thread that wakes another one, so a thread-local would be the wrong thread's.

use magnus::Ruby;
use rb_sys::{
    rb_internal_thread_event_data_t, rb_internal_thread_specific_get, rb_internal_thread_specific_key_create,
    rb_internal_thread_specific_key_t, rb_internal_thread_specific_set, rb_thread_current, Qnil,
    RB_INTERNAL_THREAD_SPECIFIC_KEY_MAX, VALUE,
};
use std::sync::OnceLock;

/// 0 at first. Empty if other libraries have taken the few keys that there are.
pub(super) struct ThreadValue(OnceLock<rb_internal_thread_specific_key_t>);

impl ThreadValue {
    pub(super) const fn new() -> ThreadValue {
        ThreadValue(OnceLock::new())
    }

    /// To be called once, before the hook is installed.
    pub(super) fn make(&self, _: &Ruby) {
        let mut key = None;
        // It raises if there are several Ractors or no key is left. Some versions return one too many instead.
        let made = magnus::rb_sys::protect(|| {
            // SAFETY: the GVL is held, and the closure owns nothing.
            key = Some(unsafe { rb_internal_thread_specific_key_create() });
            Qnil as VALUE
        });
        let is_one = |key: &rb_internal_thread_specific_key_t| (*key as u32) < RB_INTERNAL_THREAD_SPECIFIC_KEY_MAX;
        if let Some(key) = key.filter(is_one).filter(|_| made.is_ok()) {
            let _ = self.0.set(key);
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.0.get().is_some()
    }

    /// Sets the word of the calling thread.
    pub(super) fn set_here(&self, _: &Ruby, value: usize) {
        if let Some(key) = self.0.get() {
            // SAFETY: the GVL is held, and the key was made above. The pointer is a number that nobody follows.
            unsafe { rb_internal_thread_specific_set(rb_thread_current(), *key, value as *mut _) };
        }
    }

    /// The word of the thread of an event; `None` if words are not kept.
    ///
    /// # Safety
    /// To be called by the hook, with what Ruby has called it with.
    pub(super) unsafe fn get(&self, data: *const rb_internal_thread_event_data_t) -> Option<usize> {
        let key = self.0.get()?;
        // SAFETY: the hook gets a live thread, the key was made above, and this needs no GVL.
        Some(unsafe { rb_internal_thread_specific_get((*data).thread, *key) } as usize)
    }

    /// Sets that word.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn set(&self, data: *const rb_internal_thread_event_data_t, value: usize) {
        if let Some(key) = self.0.get() {
            // SAFETY: as above. Ruby orders the events of a thread by the lock of its scheduler.
            unsafe { rb_internal_thread_specific_set((*data).thread, *key, value as *mut _) };
        }
    }
}
