//! Why a response goes no further, and how Ruby hears of it: each reason becomes an exception where Ruby has called.

use crate::classes::{CLOSED_ERROR, FINISHED_ERROR};
use crate::protect::{is_a, Jump};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby};
use rb_sys::{Qnil, VALUE};
use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Why a response goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ruby wants to leave.
    Jump(Jump),
    /// The client is gone.
    Gone,
    /// The call that a loan was made for is over.
    Finished,
    /// This very thread is in the middle of it already (a trap or a finalizer has come in between), or another one is and
    /// cannot be waited for.
    Busy,
    /// The application has broken the SPEC.
    Type(&'static CStr),
}

impl Stop {
    /// Raises it. Only where Ruby may jump, with nothing on the stack that has a destructor.
    pub(crate) fn raise(self, ruby: &Ruby) -> ! {
        let (class, message) = match self {
            // SAFETY: as the comment above says; the jump was stopped by `protect` on this thread.
            Stop::Jump(jump) => unsafe { rb_sys::rb_jump_tag(jump.0) },
            Stop::Gone => (ruby.get_inner(&CLOSED_ERROR).as_raw(), c"the client is gone"),
            Stop::Finished => (
                ruby.get_inner(&FINISHED_ERROR).as_raw(),
                c"what belongs to an answer was used after its time",
            ),
            // SAFETY: constants of Ruby.
            Stop::Busy => unsafe {
                (
                    rb_sys::rb_eThreadError,
                    c"another call for the same answer has not ended",
                )
            },
            // SAFETY: as above.
            Stop::Type(message) => unsafe { (rb_sys::rb_eTypeError, message) },
        };
        // SAFETY: as the comment above says; the format has no directives.
        unsafe { rb_sys::rb_raise(class, message.as_ptr()) }
    }

    /// The same for a method of Ruby, which has to return the error.
    pub(crate) fn into_error(self, ruby: &Ruby) -> Error {
        magnus::rb_sys::protect(|| self.raise(ruby))
            .err()
            .unwrap_or_else(|| Error::new(ruby.exception_fatal(), "nothing was raised"))
    }
}

/// Whether an exception only says that the client is gone.
pub(crate) fn is_closed_error(ruby: &Ruby, error: VALUE) -> bool {
    is_a(ruby, error, ruby.get_inner(&CLOSED_ERROR).as_raw())
}

/// Runs the code of a block: what stops it is raised, and so is a panic, which must not reach Ruby.
///
/// # Safety
/// Only in a function that Ruby calls, which means that this thread has the GVL, and as all that it does: Ruby jumps over it.
pub(super) unsafe fn called_back(code: impl FnOnce(&Ruby) -> Result<(), Stop>) -> VALUE {
    // SAFETY: by the caller's promise.
    let ruby = unsafe { Ruby::get_unchecked() };
    let ended = catch_unwind(AssertUnwindSafe(|| code(&ruby))).map_err(drop);
    match ended {
        Ok(Ok(())) => Qnil as VALUE,
        Ok(Err(stop)) => stop.raise(&ruby),
        // SAFETY: called by Ruby; the format has no directives, and nothing here has a destructor any more.
        Err(()) => unsafe { rb_sys::rb_raise(rb_sys::rb_eRuntimeError, c"[BUG] the server panicked".as_ptr()) },
    }
}
