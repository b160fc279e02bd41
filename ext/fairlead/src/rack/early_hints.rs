//! `rack.early_hints`: called with header fields, sends them ahead as a 103 response. Good while the app is called, in the
//! thread that calls it; it has no effect in another thread or once the response has begun.

use super::loan::{Lent, Way};
use super::response::write_hints;
use super::{Loan, Response, Stop};
use crate::protect::protect;
use crate::strings::keep;
use magnus::rb_sys::AsRawValue;
use magnus::{method, prelude::*, Error, RModule, Ruby, Value};
use rb_sys::VALUE;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `Fairlead::Native::EarlyHints`, a loan.
static CLASS: AtomicUsize = AtomicUsize::new(0);

/// Defines the class.
pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("EarlyHints", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("call", method!(call, 1))?;
    keep(ruby, class.as_raw());
    CLASS.store(class.as_raw() as usize, Relaxed);
    Ok(())
}

/// Makes the callable for a response. Inside `protect`.
pub(crate) fn make(response: &Response<'_, '_>) -> VALUE {
    response.loan(Some(CLASS.load(Relaxed) as VALUE)).object()
}

/// Sends the fields; without effect when the response has begun. Raises when it is over.
fn call(ruby: &Ruby, this: Value, headers: Value) -> Result<(), Error> {
    send(ruby, Loan::of(ruby, this.as_raw()), headers.as_raw()).map_err(|stop| stop.into_error(ruby))
}

fn send(ruby: &Ruby, hints: Loan<'_>, headers: VALUE) -> Result<(), Stop> {
    // SAFETY: the GVL is held.
    let this = unsafe { rb_sys::rb_thread_current() };
    let has_begun =
        hints.response(|response| response.is_of(this) && response.with(|exchange| exchange.start_early_hints()))?;
    if !has_begun {
        return Ok(());
    }
    let mut made = Err(Stop::Finished);
    protect(ruby, || made = hints.response(|response| response.loan(None).object())).map_err(Stop::Jump)?;
    let lent = Lent(Loan::of(ruby, made?));
    let written = protect(ruby, || write_hints(lent.0, headers)).map_err(Stop::Jump);
    drop(lent);
    hints.exchange(|exchange| {
        if written.is_ok() {
            exchange.end_early_hints();
        } else {
            exchange.cancel_early_hints();
        }
    })?;
    written
}
