//! `rack.early_hints`: called with header fields, sends them ahead as a 103 answer. Good while the app is called, in the
//! thread that calls it.

use super::fields;
use fairlead_engine::Exchange;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{function, method, prelude::*, Error, RModule, Ruby, TryConvert, Value};
use rb_sys::VALUE;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::ThreadId;

/// `Fairlead::Native::EarlyHints`. Holds the address of the exchange while the app is called, 0 afterwards, and the thread
/// that owns it.
#[magnus::wrap(class = "Fairlead::Native::EarlyHints", free_immediately, size)]
#[derive(Default)]
struct EarlyHints(Cell<usize>, Cell<Option<ThreadId>>);

// SAFETY: used under the GVL only; the address is dereferenced only while the app is called.
unsafe impl Send for EarlyHints {}

static CLASS: AtomicUsize = AtomicUsize::new(0);

/// Defines the class.
pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("EarlyHints", ruby.class_object())?;
    class.define_singleton_method("new", function!(EarlyHints::default, 0))?;
    class.define_method("call", method!(EarlyHints::call, 1))?;
    crate::strings::keep(class.as_raw());
    CLASS.store(class.as_raw() as usize, Relaxed);
    Ok(())
}

/// Makes the callable for an exchange. Inside `protect`; [`detach`] must follow before the exchange ends.
pub(crate) fn attach(exchange: &mut Exchange<'_>) -> VALUE {
    // SAFETY: the class is a constant; the new object is on the stack.
    let value = unsafe {
        rb_sys::rb_funcallv(
            CLASS.load(Relaxed) as VALUE,
            crate::strings::ids().new,
            0,
            std::ptr::null(),
        )
    };
    set(value, exchange as *mut Exchange<'_> as usize);
    value
}

/// Takes the exchange away from the callable.
pub(crate) fn detach(value: VALUE) {
    set(value, 0);
}

fn set(value: VALUE, address: usize) {
    // SAFETY: a live object on the caller's stack.
    let value = unsafe { Value::from_raw(value) };
    if let Ok(hints) = <&EarlyHints>::try_convert(value) {
        hints.0.set(address);
        hints.1.set(Some(std::thread::current().id()));
    }
}

impl EarlyHints {
    /// Sends the fields; without effect when it is too late for them.
    fn call(&self, headers: Value) {
        let address = self.0.get();
        if address == 0 || self.1.get() != Some(std::thread::current().id()) {
            return;
        }
        // SAFETY: set only while the app is called with this exchange, on the thread that owns it, which is this one: it does
        // not touch the exchange, and the exchange does not end, before this returns.
        let exchange = unsafe { &mut *(address as *mut Exchange<'_>) };
        if !exchange.start_early_hints() {
            return;
        }
        match crate::gvl::protect(|| fields::write_all(exchange, headers.as_raw())) {
            Ok(()) => exchange.end_early_hints(),
            Err(jump) => {
                exchange.cancel_early_hints();
                // SAFETY: called by Ruby, and nothing here has a destructor.
                unsafe { rb_sys::rb_jump_tag(jump.0) };
            }
        }
    }
}
