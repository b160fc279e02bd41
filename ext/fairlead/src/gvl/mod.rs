//! The global VM lock: gives it up, tells the engine when a thread that runs the app does (`in_app.rs`), counts the
//! threads that want it (`contention.rs`), measures their waits (`lock_wait.rs`), and takes it from a thread that has
//! had it for a time slice (`slice.rs`, with `postponed.rs` and `aside.rs`). `word.rs` stores a value of the hook for
//! each thread.
//!
//! A `&Ruby` proves that this thread has the GVL: magnus passes one to each method that Ruby calls, `called_back` makes
//! one for each block, and each function that calls Ruby takes one, or a value that contains one. It cannot get into
//! code without the GVL: such code is `Send`, and a `&Ruby` is not.

mod aside;
mod contention;
mod in_app;
pub(crate) mod lock_wait;
mod postponed;
mod slice;
#[cfg(ruby_gte_3_3)]
mod thread_value;

pub(crate) use in_app::InApp;
pub(crate) use slice::Gvl;

use crate::protect::check_interrupts_of_method;
use fairlead_engine::Engine;
use in_app::HANDS_OVER;
use magnus::{Error, Ruby};
use rb_sys::{rb_nogvl, rb_unblock_function_t, RB_NOGVL_INTR_FAIL};
use std::ffi::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Installs the hook.
pub(crate) fn init(ruby: &Ruby) {
    lock_wait::init(ruby);
    #[cfg(ruby_gte_3_2)]
    contention::init(ruby);
    in_app::init(ruby);
}

/// This process is the child of a fork: only the calling thread exists.
pub(crate) fn forget_others() {
    contention::forget_others();
    in_app::forget();
    slice::forget();
}

/// Runs `code` without the GVL. Another thread calls [`Engine::interrupt`] when Ruby wants this thread back; it must
/// make `code` return soon. If Ruby already wants the thread back, `code` does not run.
pub(crate) fn without_gvl(ruby: &Ruby, engine: &Engine, mut code: impl FnMut() + Send) {
    unsafe extern "C" fn unblock(engine: *mut c_void) {
        // SAFETY: `engine` is the reference below, which outlives rb_nogvl; an Engine may be used from any thread.
        unsafe { &*engine.cast::<Engine>() }.interrupt();
    }

    let engine = std::ptr::from_ref(engine).cast_mut().cast();
    call_without_gvl(ruby, &mut code, Some(unblock), engine);
}

/// Does the same for `code` that waits in the kernel for a bounded time: a signal ends the wait when Ruby wants this
/// thread back.
pub(crate) fn wait_without_gvl(ruby: &Ruby, mut code: impl FnMut() + Send) {
    // SAFETY: RUBY_UBF_IO is this number, which Ruby compares and never calls.
    let unblock = unsafe { std::mem::transmute::<isize, rb_unblock_function_t>(-1) };
    call_without_gvl(ruby, &mut code, unblock, std::ptr::null_mut());
}

/// Does the same for `code` that only computes: nothing interrupts it. It always runs, unless an exception for this
/// thread comes first.
pub(crate) fn compute_without_gvl<T: Send>(ruby: &Ruby, code: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let mut code = Some(code);
    let mut result = None;
    loop {
        let mut run = || result = code.take().map(|code| code());
        call_without_gvl(ruby, &mut run, None, std::ptr::null_mut());
        if let Some(result) = result {
            return Ok(result);
        }
        check_interrupts_of_method(ruby)?;
    }
}

/// Code that the engine wants to run without the GVL.
pub(crate) struct EngineCode<'a>(pub(crate) &'a mut dyn FnMut());

// SAFETY: it never leaves its thread. Code without the GVL must be `Send` only to keep a `&Ruby` out of it, and the
// engine, which does not know Ruby, has none.
unsafe impl Send for EngineCode<'_> {}

impl EngineCode<'_> {
    pub(crate) fn run(&mut self) {
        (self.0)();
    }
}

fn call_without_gvl(_: &Ruby, code: &mut dyn FnMut(), unblock: rb_unblock_function_t, argument: *mut c_void) {
    struct Call<'a> {
        code: &'a mut dyn FnMut(),
        panic: Option<Box<dyn std::any::Any + Send>>,
    }

    unsafe extern "C" fn trampoline(call: *mut c_void) -> *mut c_void {
        // SAFETY: `call` is the address of the `Call` below, which outlives rb_nogvl and has no other user.
        let call = unsafe { &mut *call.cast::<Call<'_>>() };
        call.panic = catch_unwind(AssertUnwindSafe(|| (call.code)())).err();
        std::ptr::null_mut()
    }

    let mut call = Call { code, panic: None };
    // SAFETY: the GVL is held now, and again when this returns; both functions have the required signatures, and no
    // panic leaves the first. With INTR_FAIL Ruby raises nothing here: it only returns early.
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
