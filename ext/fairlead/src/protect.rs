//! Calls Ruby so that no exception jumps over Rust frames.

use crate::objects::is_a;
use magnus::Ruby;
use rb_sys::{
    rb_eStandardError, rb_errinfo, rb_protect, rb_raise, rb_set_errinfo, rb_thread_check_ints, rb_thread_current,
    rb_thread_interrupted, rb_thread_wakeup_alive, ruby_value_type::RUBY_T_IMEMO, Qnil, RB_TYPE_P, VALUE,
};
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
    heard(ruby, || protect(ruby, || unsafe { rb_thread_check_ints() }))
}

/// Does the same even if there are no requests, so that later ones are handled. A collection may have made the thread deaf, see
/// [`is_deaf`].
pub(crate) fn check_interrupts_after_collection(ruby: &Ruby) -> Result<(), Jump> {
    // SAFETY: the GVL is held. A thread that runs is only interrupted.
    unsafe { rb_thread_wakeup_alive(rb_thread_current()) };
    check_interrupts(ruby)
}

/// Returns true if a check for interrupts, which has just returned, has handled none. Ruby makes none while it notes that the stack of the
/// thread has overflowed: no exception of another thread, timeout, end or time slice. It forgets that when the application
/// rescues the SystemStackError. But before, it has run finalizers, at the end of the full stack, and each that overflows the stack
/// again renews the note.
fn is_deaf(_: &Ruby) -> bool {
    // SAFETY: the GVL is held.
    unsafe { rb_thread_interrupted(rb_thread_current()) != 0 }
}

/// Makes Ruby forget the overflow, which every raised exception does.
fn hear_again(ruby: &Ruby) {
    // SAFETY: the GVL is held, the exception is stopped and forgotten, and its message has no directives.
    unsafe {
        let _ = protect(ruby, || {
            rb_raise(rb_eStandardError, c"the stack is free again".as_ptr())
        });
        rb_set_errinfo(Qnil as VALUE);
    }
}

/// Does the same for a method of Ruby, which has to return the error.
pub(crate) fn check_interrupts_of_method(ruby: &Ruby) -> Result<(), magnus::Error> {
    heard(ruby, || {
        let check = magnus::rb_sys::protect(|| {
            // SAFETY: the GVL is held; an exception is stopped here and returned as magnus' error.
            unsafe { rb_thread_check_ints() };
            Qnil as VALUE
        });
        check.map(|_| ())
    })
}

/// Makes a check for interrupts, and another one if the thread was deaf.
fn heard<E>(ruby: &Ruby, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
    check()?;
    if is_deaf(ruby) {
        hear_again(ruby);
        check()?;
    }
    Ok(())
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
