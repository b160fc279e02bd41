//! The hook that Ruby calls when a thread gives up the GVL, wants it and gets it. It tells the engine when a thread
//! that runs the app gives up the GVL and when it wants it back, and counts the waiting threads (`contention.rs`).

#[cfg(ruby_gte_3_2)]
use super::{contention, lock_wait};
use fairlead_engine::Engine;
use magnus::Ruby;
use std::cell::Cell;
#[cfg(ruby_gte_3_2)]
use std::ffi::c_void;

/// State that the hook keeps of its thread.
#[derive(Clone, Copy)]
struct InAppState {
    /// The engine of the app that the thread runs; null if it runs none.
    engine: *const Engine,
    /// True if the thread has given up the GVL.
    is_suspended: bool,
}

const OUTSIDE: InAppState = InAppState {
    engine: std::ptr::null(),
    is_suspended: false,
};

thread_local! {
    static STATE: Cell<InAppState> = const { Cell::new(OUTSIDE) };
}

/// Marks this thread as one that runs the app, while the guard lives.
pub(crate) struct InApp(InAppState);

impl InApp {
    pub(crate) fn enter(engine: &Engine) -> InApp {
        InApp(STATE.replace(InAppState {
            engine,
            is_suspended: false,
        }))
    }
}

impl Drop for InApp {
    fn drop(&mut self) {
        let state = STATE.replace(self.0);
        if state.is_suspended {
            // SAFETY: set by `InApp::enter`, and the caller of `enter` still has the engine.
            unsafe { &*state.engine }.resume();
        }
    }
}

/// If this thread runs the app, wakes another thread if there is a job for it.
pub(super) fn hand_over() {
    // SAFETY: set by `InApp::enter` on this very thread, and reset before the engine can go.
    if let Some(engine) = unsafe { STATE.get().engine.as_ref() } {
        engine.wake_next();
    }
}

/// This is the child of a fork that was made on this thread: the thread's engine belongs to the parent.
pub(super) fn forget() {
    STATE.set(OUTSIDE);
}

/// True if this version of Ruby has such a hook.
pub(super) const HANDS_OVER: bool = cfg!(ruby_gte_3_2);

/// Installs the hook.
pub(crate) fn init(_: &Ruby) {
    #[cfg(ruby_gte_3_2)]
    {
        use rb_sys::{
            rb_internal_thread_add_event_hook, rb_internal_thread_event_data_t, RUBY_INTERNAL_THREAD_EVENT_READY,
            RUBY_INTERNAL_THREAD_EVENT_RESUMED, RUBY_INTERNAL_THREAD_EVENT_SUSPENDED,
        };

        unsafe extern "C" fn notice(event: u32, data: *const rb_internal_thread_event_data_t, _: *mut c_void) {
            if event == RUBY_INTERNAL_THREAD_EVENT_READY as u32 {
                // SAFETY: the arguments of this call.
                unsafe { contention::wants(data) };
            } else if event == RUBY_INTERNAL_THREAD_EVENT_RESUMED as u32 {
                let me = STATE.with(|state| std::ptr::from_ref(state) as usize);
                // SAFETY: as above.
                unsafe { contention::has(me, data) };
            }
            // SAFETY: as above.
            unsafe { lock_wait::note(event, data) };
            let state = STATE.get();
            let is_suspended = event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as u32;
            // READY may come on a thread that wakes this one. That thread runs, and is not marked as suspended.
            if state.engine.is_null() || state.is_suspended == is_suspended {
                return;
            }
            STATE.set(InAppState { is_suspended, ..state });
            // SAFETY: set by `InApp::enter` on this very thread, and reset before the engine can go.
            let engine = unsafe { &*state.engine };
            if is_suspended {
                engine.suspend();
            } else {
                engine.resume();
            }
        }
        let events = RUBY_INTERNAL_THREAD_EVENT_READY
            | RUBY_INTERNAL_THREAD_EVENT_RESUMED
            | RUBY_INTERNAL_THREAD_EVENT_SUSPENDED;
        // SAFETY: the GVL is held; called once, by the extension's initialiser. The hook lives as long as the process
        // and calls no Ruby.
        unsafe { rb_internal_thread_add_event_hook(Some(notice), events as u32, std::ptr::null_mut()) };
    }
}
