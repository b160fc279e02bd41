//! A Fiber for one request: entries of `Thread.current[…]` belong to the Fiber and end with it.

use crate::protect::{protect, Jump};
use magnus::Ruby;
use rb_sys::{rb_fiber_new, rb_fiber_resume, rb_jump_tag, rb_set_errinfo, Qnil, VALUE};
use std::any::Any;
use std::ffi::c_int;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// The work of the Fiber.
struct Call<'a> {
    /// Returns the exception that ends the Fiber.
    code: &'a mut dyn FnMut() -> Option<Jump>,
    panic: Option<Box<dyn Any + Send>>,
    has_begun: bool,
    has_ended: bool,
}

impl Call<'_> {
    fn run(&mut self) -> Option<Jump> {
        self.has_begun = true;
        let ended = catch_unwind(AssertUnwindSafe(|| (self.code)()));
        self.has_ended = true;
        ended.unwrap_or_else(|panic| {
            self.panic = Some(panic);
            None
        })
    }
}

/// Runs `code` in a new Fiber of this thread, or without one if there is no memory for its stack. If `code` returns an
/// exception that it has stopped, the Fiber ends with this exception, and this function returns it: Ruby keeps an
/// exception for each Fiber.
pub(super) fn in_fiber(ruby: &Ruby, mut code: impl FnMut() -> Option<Jump>) -> Option<Jump> {
    unsafe extern "C" fn trampoline(_: VALUE, call: VALUE, _: c_int, _: *const VALUE, _: VALUE) -> VALUE {
        // SAFETY: `call` is the address of the `Call` below, marked as a number; it outlives the Fiber, which only this
        // function runs, and has no other user meanwhile.
        let jump = unsafe { &mut *((call & !1) as *mut Call<'_>) }.run();
        if let Some(jump) = jump {
            // SAFETY: the exception came from rb_protect in this Fiber, and nothing with a destructor is left in this
            // frame.
            unsafe { rb_jump_tag(jump.0) };
        }
        Qnil as VALUE
    }

    let mut call = Call {
        code: &mut code,
        panic: None,
        has_begun: false,
        has_ended: false,
    };
    let address = std::ptr::from_mut(&mut call);
    let ended = protect(ruby, || {
        // SAFETY: the GVL is held; the function has the signature of a block, and an exception is stopped. The address
        // is even and then marked, so the collector takes it for a small number. It is read here between two moments in
        // which the Fiber runs.
        unsafe {
            let fiber = rb_fiber_new(Some(trampoline), address as VALUE | 1);
            // If the application yields from the Fiber, this resumes it at once: no other code may resume it later.
            loop {
                rb_fiber_resume(fiber, 0, std::ptr::null());
                if (*address).has_ended {
                    break;
                }
            }
        }
    });
    if let Some(panic) = call.panic {
        resume_unwind(panic);
    }
    match ended {
        Err(_) if !call.has_begun => {
            // SAFETY: the GVL is held.
            unsafe { rb_set_errinfo(Qnil as VALUE) };
            (call.code)()
        }
        Err(jump) => Some(jump),
        Ok(()) => None,
    }
}
