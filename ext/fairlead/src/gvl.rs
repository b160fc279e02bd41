//! The global VM lock: giving it up, calling Ruby so that an exception cannot jump over Rust, and the hook that tells the
//! engine when a thread that runs the app stops using it.

use fairlead_engine::Engine;
use rb_sys::{
    rb_errinfo, rb_nogvl, rb_protect, rb_set_errinfo, rb_unblock_function_t, ruby_value_type::RUBY_T_IMEMO, Qnil,
    RB_NOGVL_INTR_FAIL, RB_TYPE_P, VALUE,
};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Ruby wants to leave the protected code: an exception, `throw`, or the end of the thread. The number is what
/// `rb_jump_tag` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump(pub(crate) c_int);

impl Jump {
    /// Whether it is an exception: TAG_RAISE of Ruby, which no header names.
    pub(crate) fn is_exception(self) -> bool {
        self.0 == 6
    }
}

/// Calls `code`, which may call Ruby, and stops what it raises. Only with the GVL.
///
/// Values that `code` owns and that have destructors are leaked when Ruby raises, so it must own none at such a moment.
pub(crate) fn protect(mut code: impl FnMut()) -> Result<(), Jump> {
    struct Call<'a> {
        code: &'a mut dyn FnMut(),
        panic: Option<Box<dyn std::any::Any + Send>>,
    }

    extern "C" fn trampoline(call: VALUE) -> VALUE {
        // SAFETY: `call` is the address of the `Call` below, which outlives rb_protect and is used by nobody else.
        let call = unsafe { &mut *(call as *mut Call<'_>) };
        call.panic = catch_unwind(AssertUnwindSafe(|| (call.code)())).err();
        Qnil as VALUE
    }

    let mut call = Call {
        code: &mut code,
        panic: None,
    };
    let mut state = 0;
    // SAFETY: the caller holds the GVL; the trampoline has the signature that rb_protect asks for, and no panic leaves it.
    unsafe { rb_protect(Some(trampoline), &mut call as *mut Call<'_> as VALUE, &mut state) };
    if let Some(panic) = call.panic {
        resume_unwind(panic);
    }
    if state == 0 {
        Ok(())
    } else {
        Err(Jump(state))
    }
}

/// What other threads want of this one, which may be its end: for a method of Ruby to return.
pub(crate) fn check_interrupts() -> Result<(), magnus::Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: the GVL is held; what is raised is stopped here and goes on as magnus' error.
        unsafe { rb_sys::rb_thread_check_ints() };
        Qnil as VALUE
    })
    .map(|_| ())
}

/// The exception of a class that `protect` has just stopped, which is thereby dealt with; `None` when it was another one, or
/// no exception, such as the end of the thread.
pub(crate) fn take_error(class: VALUE) -> Option<VALUE> {
    // SAFETY: the GVL is held. rb_errinfo is a number when a thread is being killed, with which is_a copes, and of an internal
    // type, which has no class, for a `throw`.
    unsafe {
        let error = rb_errinfo();
        let is_one = error != Qnil as VALUE && !RB_TYPE_P(error, RUBY_T_IMEMO) && crate::response::is_a(error, class);
        if is_one {
            rb_set_errinfo(Qnil as VALUE);
        }
        is_one.then_some(error)
    }
}

/// Runs `code` without the GVL. [`Engine::interrupt`] is called from another thread when Ruby wants this one back; it must
/// make `code` return soon. If Ruby wants it back already, `code` is not run.
pub(crate) fn without_gvl(code: &mut dyn FnMut(), engine: &Engine) {
    unsafe extern "C" fn unblock(engine: *mut c_void) {
        // SAFETY: `engine` is the reference below, which outlives rb_nogvl; Engine may be used from any thread.
        unsafe { &*engine.cast::<Engine>() }.interrupt();
    }

    call_without_gvl(code, Some(unblock), (engine as *const Engine).cast_mut().cast());
}

/// The same for `code` that waits in the kernel for a bounded time: a signal ends the wait when Ruby wants this thread back.
pub(crate) fn wait_without_gvl(code: &mut dyn FnMut()) {
    // SAFETY: RUBY_UBF_IO is this number, which Ruby compares and never calls.
    let unblock = unsafe { std::mem::transmute::<isize, rb_unblock_function_t>(-1) };
    call_without_gvl(code, unblock, std::ptr::null_mut());
}

fn call_without_gvl(code: &mut dyn FnMut(), unblock: rb_unblock_function_t, argument: *mut c_void) {
    struct Call<'a> {
        code: &'a mut dyn FnMut(),
        panic: Option<Box<dyn std::any::Any + Send>>,
    }

    unsafe extern "C" fn trampoline(call: *mut c_void) -> *mut c_void {
        // SAFETY: `call` is the address of the `Call` below, which outlives rb_nogvl and is used by nobody else.
        let call = unsafe { &mut *call.cast::<Call<'_>>() };
        call.panic = catch_unwind(AssertUnwindSafe(|| (call.code)())).err();
        std::ptr::null_mut()
    }

    let mut call = Call { code, panic: None };
    // SAFETY: the caller holds the GVL; both functions have the signatures asked for, and no panic leaves the first.
    // With INTR_FAIL Ruby raises nothing here: it only returns early.
    unsafe {
        rb_nogvl(
            Some(trampoline),
            (&mut call as *mut Call<'_>).cast(),
            unblock,
            argument,
            RB_NOGVL_INTR_FAIL as c_int,
        );
    }
    if let Some(panic) = call.panic {
        resume_unwind(panic);
    }
}

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
pub(crate) fn init() {
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
        // SAFETY: called once, with the GVL, by the extension's initialiser; the hook lives as long as the process and calls
        // no Ruby.
        unsafe { rb_internal_thread_add_event_hook(Some(told), events as u32, std::ptr::null_mut()) };
    }
}
