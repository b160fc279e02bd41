//! The hook that tells the engine when a thread that runs the app gives the GVL up, and when it wants it back.

use fairlead_engine::Engine;
use magnus::Ruby;
use std::cell::Cell;
#[cfg(ruby_gte_3_2)]
use std::ffi::c_void;

/// A thread that runs the app, as the hook sees it.
#[derive(Clone, Copy)]
struct Place {
    /// The engine whose app it runs; null when it runs none.
    engine: *const Engine,
    /// Whether it has given the GVL up.
    is_suspended: bool,
}

const OUTSIDE: Place = Place {
    engine: std::ptr::null(),
    is_suspended: false,
};

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(OUTSIDE) };
}

/// Marks this thread as one that runs the app, for as long as the guard lives.
pub(crate) struct InApp(Place);

impl InApp {
    pub(crate) fn enter(engine: &Engine) -> InApp {
        InApp(PLACE.replace(Place {
            engine,
            is_suspended: false,
        }))
    }
}

impl Drop for InApp {
    fn drop(&mut self) {
        let place = PLACE.replace(self.0);
        if place.is_suspended {
            // SAFETY: set by `InApp::enter`, whose caller still has the engine.
            unsafe { &*place.engine }.resume();
        }
    }
}

/// Whether this Ruby tells when a thread gives the GVL up.
pub(crate) const HANDS_OVER: bool = cfg!(ruby_gte_3_2);

/// Asks Ruby to tell when a thread gives the GVL up, and when it wants it back.
pub(crate) fn init(_: &Ruby) {
    #[cfg(ruby_gte_3_2)]
    {
        use rb_sys::{
            rb_internal_thread_add_event_hook, rb_internal_thread_event_data_t, RUBY_INTERNAL_THREAD_EVENT_READY,
            RUBY_INTERNAL_THREAD_EVENT_RESUMED, RUBY_INTERNAL_THREAD_EVENT_SUSPENDED,
        };

        unsafe extern "C" fn told(event: u32, _: *const rb_internal_thread_event_data_t, _: *mut c_void) {
            let place = PLACE.get();
            let is_suspended = event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as u32;
            // A thread is told to be ready and to be resumed; which comes, and whether both do, depends on the Ruby.
            if place.engine.is_null() || place.is_suspended == is_suspended {
                return;
            }
            PLACE.set(Place { is_suspended, ..place });
            // SAFETY: set by `InApp::enter` on this very thread, and reset before the engine can go.
            let engine = unsafe { &*place.engine };
            if is_suspended {
                engine.suspend();
            } else {
                engine.resume();
            }
        }
        let events = RUBY_INTERNAL_THREAD_EVENT_READY
            | RUBY_INTERNAL_THREAD_EVENT_RESUMED
            | RUBY_INTERNAL_THREAD_EVENT_SUSPENDED;
        // SAFETY: the GVL is held; called once, by the extension's initialiser. The hook lives as long as the process and
        // calls no Ruby.
        unsafe { rb_internal_thread_add_event_hook(Some(told), events as u32, std::ptr::null_mut()) };
    }
}
