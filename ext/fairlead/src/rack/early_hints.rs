//! `rack.early_hints`: a callable that sends header fields early, in a response with status 103. It works while the
//! application is called, in the calling thread. It has no effect in another thread, or once the response has begun.

use super::response::write_hints;
use super::response_ref::{Access, ResponseRefGuard};
use super::{Response, ResponseRef, Stop};
use crate::classes::{EARLY_HINTS, RESPONSE_REF};
use crate::protect::protect;
use magnus::rb_sys::AsRawValue;
use magnus::{method, prelude::*, Error, Ruby, Value};
use rb_sys::VALUE;

/// Defines the methods of `Fairlead::Native::EarlyHints`, a reference.
pub(super) fn init(ruby: &Ruby) -> Result<(), Error> {
    ruby.get_inner(&EARLY_HINTS).define_method("call", method!(call, 1))
}

/// Makes the callable for a response. Inside `protect`.
pub(crate) fn make(response: &Response<'_, '_>) -> VALUE {
    response.reference(&EARLY_HINTS).object()
}

/// Sends the fields, unless the response has begun. Raises if the response is over.
fn call(ruby: &Ruby, this: Value, headers: Value) -> Result<(), Error> {
    send(ruby, ResponseRef::of(ruby, this.as_raw()), headers.as_raw()).map_err(|stop| stop.into_error(ruby))
}

fn send(ruby: &Ruby, hints: ResponseRef<'_>, headers: VALUE) -> Result<(), Stop> {
    // SAFETY: the GVL is held.
    let this = unsafe { rb_sys::rb_thread_current() };
    let has_begun =
        hints.response(|response| response.is_of(this) && response.with(|exchange| exchange.start_early_hints()))?;
    if !has_begun {
        return Ok(());
    }
    let mut made = Err(Stop::Finished);
    protect(ruby, || {
        made = hints.response(|response| response.reference(&RESPONSE_REF).object())
    })
    .map_err(Stop::Jump)?;
    let guard = ResponseRefGuard(ResponseRef::of(ruby, made?));
    let written = protect(ruby, || write_hints(guard.0, headers)).map_err(Stop::Jump);
    drop(guard);
    hints.exchange(|exchange| {
        if written.is_ok() {
            exchange.end_early_hints();
        } else {
            exchange.cancel_early_hints();
        }
    })?;
    written
}
