//! Calls Ruby so that no exception jumps over Rust frames.

use crate::objects::is_a;
use magnus::Ruby;
use rb_sys::{rb_errinfo, rb_protect, rb_set_errinfo, ruby_value_type::RUBY_T_IMEMO, Qnil, RB_TYPE_P, VALUE};
use std::ffi::c_int;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Ruby wants to leave the protected code: an exception, `throw`, or the end of the thread. The number is the argument
/// of `rb_jump_tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump(pub(crate) c_int);

impl Jump {
    /// Returns true for an exception: TAG_RAISE of Ruby, which no header defines.
    pub(crate) fn is_exception(self) -> bool {
        self.0 == 6
    }
}

/// Calls `code`, which may call Ruby, and stops its exceptions.
///
/// If Ruby raises, values with destructors that `code` owns are leaked, so it must own none at such a moment.
pub(crate) fn protect(_: &Ruby, mut code: impl FnMut()) -> Result<(), Jump> {
    struct Call<'a> {
        code: &'a mut dyn FnMut(),
        panic: Option<Box<dyn std::any::Any + Send>>,
    }

    extern "C" fn trampoline(call: VALUE) -> VALUE {
        // SAFETY: `call` is the address of the `Call` below, which outlives rb_protect and has no other user.
        let call = unsafe { &mut *(call as *mut Call<'_>) };
        call.panic = catch_unwind(AssertUnwindSafe(|| (call.code)())).err();
        Qnil as VALUE
    }

    let mut call = Call {
        code: &mut code,
        panic: None,
    };
    let mut state = 0;
    // SAFETY: the GVL is held; the trampoline has the signature that rb_protect asks for, and no panic leaves it.
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

/// Handles requests of other threads to this one, for example to end.
pub(crate) fn check_interrupts(ruby: &Ruby) -> Result<(), Jump> {
    // SAFETY: the GVL is held, and an exception is stopped.
    protect(ruby, || unsafe { rb_sys::rb_thread_check_ints() })
}

/// Does the same for a method of Ruby, which has to return the error.
pub(crate) fn check_interrupts_of_method(_: &Ruby) -> Result<(), magnus::Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: the GVL is held; an exception is stopped here and returned as magnus' error.
        unsafe { rb_sys::rb_thread_check_ints() };
        Qnil as VALUE
    })
    .map(|_| ())
}

/// Takes the exception that `protect` has just stopped, if it has this class: Ruby forgets it. `None` if it has another
/// class, or if it is no exception, such as the end of the thread.
pub(crate) fn take_error(ruby: &Ruby, class: VALUE) -> Option<VALUE> {
    // SAFETY: the GVL is held. rb_errinfo is a number while a thread is being killed, which is_a accepts, and an
    // internal object, which has no class, for a `throw`.
    unsafe {
        let error = rb_errinfo();
        let is_one = error != Qnil as VALUE && !RB_TYPE_P(error, RUBY_T_IMEMO) && is_a(ruby, error, class);
        if is_one {
            rb_set_errinfo(Qnil as VALUE);
        }
        is_one.then_some(error)
    }
}
