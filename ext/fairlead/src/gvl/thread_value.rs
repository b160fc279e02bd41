//! A value that Ruby stores for each of its threads. The hook uses it for the thread to which an event belongs. From
//! Ruby 3.3 on, READY may come on the thread that wakes another one, so a thread-local would belong to the wrong
//! thread.

use magnus::Ruby;
use rb_sys::{
    rb_internal_thread_event_data_t, rb_internal_thread_specific_get, rb_internal_thread_specific_key_create,
    rb_internal_thread_specific_key_t, rb_internal_thread_specific_set, rb_thread_current, Qnil,
    RB_INTERNAL_THREAD_SPECIFIC_KEY_MAX, VALUE,
};
use std::sync::OnceLock;

/// 0 at first. Empty if other libraries have taken all of the few keys.
pub(super) struct ThreadValue(OnceLock<rb_internal_thread_specific_key_t>);

impl ThreadValue {
    pub(super) const fn new() -> ThreadValue {
        ThreadValue(OnceLock::new())
    }

    /// Call this once, before the hook is installed.
    pub(super) fn make(&self, _: &Ruby) {
        let mut key = None;
        // It raises if there are several Ractors or if no key is left. Some versions return one key too many instead.
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

    /// Sets the value of the calling thread.
    pub(super) fn set_here(&self, _: &Ruby, value: usize) {
        if let Some(key) = self.0.get() {
            // SAFETY: the GVL is held, and the key was made above. The pointer is a number that is never dereferenced.
            unsafe { rb_internal_thread_specific_set(rb_thread_current(), *key, value as *mut _) };
        }
    }

    /// Returns the value of the thread to which an event belongs; `None` if there is no key.
    ///
    /// # Safety
    /// Only the hook may call this, with the arguments that Ruby gave it.
    pub(super) unsafe fn get(&self, data: *const rb_internal_thread_event_data_t) -> Option<usize> {
        let key = self.0.get()?;
        // SAFETY: the hook gets a live thread, the key was made above, and this needs no GVL.
        Some(unsafe { rb_internal_thread_specific_get((*data).thread, *key) } as usize)
    }

    /// Sets the value of the thread to which an event belongs.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn set(&self, data: *const rb_internal_thread_event_data_t, value: usize) {
        if let Some(key) = self.0.get() {
            // SAFETY: as above. The lock of Ruby's scheduler orders the events of a thread.
            unsafe { rb_internal_thread_specific_set((*data).thread, *key, value as *mut _) };
        }
    }
}
