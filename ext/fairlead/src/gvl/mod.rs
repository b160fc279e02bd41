//! The global VM lock: giving it up, and telling the engine when a thread that runs the app does (`in_app.rs`).

mod in_app;

pub(crate) use in_app::{init, InApp, HANDS_OVER};

use fairlead_engine::Engine;
use rb_sys::{rb_nogvl, rb_unblock_function_t, RB_NOGVL_INTR_FAIL};
use std::ffi::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

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
