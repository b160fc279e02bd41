//! Reasons why a response cannot continue, and the Ruby exception for each reason.

use crate::classes::{CLOSED_ERROR, FINISHED_ERROR};
use crate::objects::is_a;
use crate::protect::Jump;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby};
use rb_sys::{Qnil, VALUE};
use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Reason why a response cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ruby wants to leave the running code.
    Jump(Jump),
    /// The client has closed the connection.
    Gone,
    /// The call for which a reference was made is over.
    Finished,
    /// This thread is already writing to the response (a trap or a finalizer interrupts it), or another thread is at
    /// work that this one cannot wait for.
    Busy,
    /// The application has broken the SPEC.
    Type(&'static CStr),
    /// The system or the client prevents what the application wants.
    Io(&'static CStr),
}

impl Stop {
    /// Raises the exception. Inside `protect`, or called from Ruby, and with no destructor pending on the stack.
    pub(crate) fn raise(self, ruby: &Ruby) -> ! {
        let (class, message) = match self {
            // SAFETY: the GVL is held and Ruby may jump from here; the jump was stopped by `protect` on this thread.
            Stop::Jump(jump) => unsafe { rb_sys::rb_jump_tag(jump.0) },
            Stop::Gone => (
                ruby.get_inner(&CLOSED_ERROR).as_raw(),
                c"the stream has ended: it was closed, or the client is gone",
            ),
            Stop::Finished => (
                ruby.get_inner(&FINISHED_ERROR).as_raw(),
                c"the response of this object has ended; use the object only before that",
            ),
            // SAFETY: constants of Ruby.
            Stop::Busy => unsafe {
                (
                    rb_sys::rb_eThreadError,
                    c"another call for this response is running; wait until it has returned",
                )
            },
            // SAFETY: as above.
            Stop::Type(message) => unsafe { (rb_sys::rb_eTypeError, message) },
            // SAFETY: as above.
            Stop::Io(message) => unsafe { (rb_sys::rb_eIOError, message) },
        };
        // SAFETY: the GVL is held, Ruby may jump from here, and the format has no directives.
        unsafe { rb_sys::rb_raise(class, message.as_ptr()) }
    }

    /// Does the same for a method of Ruby, which has to return the error.
    pub(crate) fn into_error(self, ruby: &Ruby) -> Error {
        magnus::rb_sys::protect(|| self.raise(ruby))
            .err()
            .unwrap_or_else(|| Error::new(ruby.exception_fatal(), "nothing was raised"))
    }
}

/// Returns true if the exception says that the client has closed the connection, which is no error of the application.
pub(crate) fn is_closed_error(ruby: &Ruby, error: VALUE) -> bool {
    is_a(ruby, error, ruby.get_inner(&CLOSED_ERROR).as_raw())
}

/// Runs the code of a block and raises its exception. A panic becomes an exception, too.
///
/// # Safety
/// Only in a function that Ruby calls, because this thread has the GVL there. The function must own nothing with a
/// destructor: Ruby jumps over it.
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
