//! The hook that Ruby calls when a thread gives the GVL up, wants it and has it. It tells the engine when a thread that
//! runs the app gives the GVL up and when it wants it back, and counts who waits for it (`contention.rs`).

#[cfg(ruby_gte_3_2)]
use super::{contention, lock_wait};
use fairlead_engine::Engine;
use magnus::Ruby;
use std::cell::Cell;
#[cfg(ruby_gte_3_2)]
use std::ffi::c_void;

/// What the hook knows of its thread.
#[derive(Clone, Copy)]
struct InAppState {
    /// The engine whose app it runs; null when it runs none.
    engine: *const Engine,
    /// Whether it has given the GVL up.
    is_suspended: bool,
}

const OUTSIDE: InAppState = InAppState {
    engine: std::ptr::null(),
    is_suspended: false,
};

thread_local! {
    static STATE: Cell<InAppState> = const { Cell::new(OUTSIDE) };
}

/// Marks this thread as one that runs the app, for as long as the guard lives.
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
            // SAFETY: set by `InApp::enter`, whose caller still has the engine.
            unsafe { &*state.engine }.resume();
        }
    }
}

/// If this thread runs the app, wakes another one that has something to do.
pub(super) fn hand_over() {
    // SAFETY: set by `InApp::enter` on this very thread, and reset before the engine can go.
    if let Some(engine) = unsafe { STATE.get().engine.as_ref() } {
        engine.wake_next();
    }
}

/// This is the child of a fork, made on this thread: the engine that it knows is the parent's.
pub(super) fn forget() {
    STATE.set(OUTSIDE);
}

/// Whether this version of Ruby has such a hook.
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
            // READY may come on the thread that wakes this one, which runs and is not marked as suspended.
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
