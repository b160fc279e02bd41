//! References: Ruby's access to a response. The response is on the stack of the thread that runs the request, but the
//! application may keep the blocks and callables that lead to it for as long as it likes. So they have no address that
//! they could outlive.
//!
//! ```text
//!   block of each, stream, early hints ──▶ ResponseRef: one call      ──▶ Root: one response          ──▶ Response, on the stack
//!                                          emptied with the call   emptied with the response
//! ```
//!
//! A root, which is also the callable of `rack.hijack`, is emptied when its [`Response`] is dropped. The drop always
//! happens: Ruby can neither jump over the frame of [`Response::on`] nor suspend it. A reference leads to the root and not
//! to the response, because it may be made on the stack of a Fiber, and a Fiber that is never resumed never empties it.
//!
//! A reference that is used too late, or in a forked process, gives [`Stop::Finished`]. A reference that is used in time gives
//! access to the response for a moment, in which no Ruby runs and the GVL is held. `response/turn.rs` is for longer
//! work.

use super::{Response, Stop};
use crate::classes;
use fairlead_engine::{forks, Exchange};
use magnus::rb_sys::AsRawValue;
use magnus::{value::Lazy, RClass, Ruby};
use rb_sys::macros::{RTYPEDDATA_GET_DATA, RTYPEDDATA_TYPE};
use rb_sys::rbimpl_typeddata_flags::{
    RUBY_TYPED_FREE_IMMEDIATELY as FREE_IMMEDIATELY, RUBY_TYPED_WB_PROTECTED as WB_PROTECTED,
};
use rb_sys::{rb_data_type_t, rb_data_typed_object_wrap, Qnil, VALUE};
use std::ffi::{c_void, CStr};

/// The address of a response is a multiple of this; the lower bits of a root's value identify the process that made it.
pub(super) const ALIGNMENT: usize = 64;

/// A type of Ruby objects that consist of one value.
struct Type(rb_data_type_t);

// SAFETY: never changed; its pointers lead to static data.
unsafe impl Sync for Type {}

impl Type {
    const fn new(name: &'static CStr, mark: Option<unsafe extern "C" fn(*mut c_void)>) -> Type {
        // SAFETY: numbers, options and pointers, all of which may be zero.
        let mut data_type: rb_data_type_t = unsafe { std::mem::zeroed() };
        data_type.wrap_struct_name = name.as_ptr();
        data_type.function.dmark = mark;
        // The value is set when the object is new, and later only emptied: no write barrier is needed.
        data_type.flags = (FREE_IMMEDIATELY as VALUE) | (WB_PROTECTED as VALUE);
        Type(data_type)
    }

    /// Returns true if `object`, which this file has made, is of this type.
    fn has(&self, _: &Ruby, object: VALUE) -> bool {
        // SAFETY: a live object, which has a type.
        unsafe { std::ptr::eq(RTYPEDDATA_TYPE(object), &self.0) }
    }
}

/// Its value: the address of the response and a few bits of [`forks`], or 0.
static ROOT: Type = Type::new(c"fairlead/root", None);

/// Its value: the root, or 0.
static RESPONSE_REF: Type = Type::new(c"fairlead/response_ref", Some(mark_root));

unsafe extern "C" fn mark_root(root: *mut c_void) {
    // SAFETY: called by the collector with a value other than 0: a live object, which this call pins.
    unsafe { rb_sys::rb_gc_mark(root as VALUE) };
}

/// A Ruby object that leads to a response while the call lasts for which it was made.
#[derive(Clone, Copy)]
pub(crate) struct ResponseRef<'r> {
    ruby: &'r Ruby,
    object: VALUE,
}

impl<'r> ResponseRef<'r> {
    /// The reference that Ruby calls back with: an object of this file.
    pub(crate) fn of(ruby: &'r Ruby, object: VALUE) -> ResponseRef<'r> {
        ResponseRef { ruby, object }
    }

    pub(crate) fn object(self) -> VALUE {
        self.object
    }

    /// Gives `code` the response. `code` must keep the GVL and run no code of the application.
    ///
    /// # Errors
    /// When the call or the response is over.
    pub(crate) fn response<T>(self, code: impl FnOnce(&Response<'_, '_>) -> T) -> Result<T, Stop> {
        let address = address(self.ruby, self.object).ok_or(Stop::Finished)?;
        // SAFETY: the root has this address until the response is dropped, which needs the GVL; the GVL is held until
        // `code` is done. The response belongs to this process: its frame exists.
        Ok(code(unsafe { &*(address as *const Response<'_, '_>) }))
    }

    pub(crate) fn is_over(self) -> bool {
        address(self.ruby, self.object).is_none()
    }
}

/// The address of the response; `None` when the response is over.
fn address(ruby: &Ruby, object: VALUE) -> Option<usize> {
    let mut word = word(ruby, object);
    if RESPONSE_REF.has(ruby, object) {
        word = if word == 0 { 0 } else { self::word(ruby, word as VALUE) };
    }
    let is_here = word != 0 && word % ALIGNMENT == forks() as usize % ALIGNMENT;
    is_here.then_some(word - word % ALIGNMENT)
}

fn word(ruby: &Ruby, object: VALUE) -> usize {
    debug_assert!(RESPONSE_REF.has(ruby, object) || ROOT.has(ruby, object));
    // SAFETY: an object of this file, which lives as long as a reference of it does.
    unsafe { RTYPEDDATA_GET_DATA(object) as usize }
}

/// Empties a root or a reference.
#[expect(deprecated, reason = "there is a macro to read the value, and none to write it")]
fn empty(ruby: &Ruby, object: VALUE) {
    debug_assert!(RESPONSE_REF.has(ruby, object) || ROOT.has(ruby, object));
    // SAFETY: an object of this file, which is on the stack; each reader of the value has the GVL, as this thread does.
    unsafe { (*(object as *mut rb_sys::RTypedData)).data = std::ptr::null_mut() };
}

/// Empties a reference at the end of the call for which it was made. It must not be held across a call that Ruby can jump
/// out of.
pub(super) struct ResponseRefGuard<'r>(pub(super) ResponseRef<'r>);

impl Drop for ResponseRefGuard<'_> {
    fn drop(&mut self) {
        empty(self.0.ruby, self.0.object);
    }
}

impl<'r> Response<'r, '_> {
    /// The root of this response, made on first use. Inside `protect`.
    pub(crate) fn root(&self) -> VALUE {
        if self.root.get() == Qnil as VALUE {
            let address = std::ptr::from_ref(self) as usize;
            debug_assert_eq!(address % ALIGNMENT, 0);
            self.root.set(object(
                self.ruby,
                &classes::HIJACK,
                address + forks() as usize % ALIGNMENT,
                &ROOT,
            ));
        }
        self.root.get()
    }

    /// A reference for a call. Inside `protect`; a [`ResponseRefGuard`] ends it before the response ends.
    pub(crate) fn reference(&self, class: &Lazy<RClass>) -> ResponseRef<'r> {
        ResponseRef::of(self.ruby, object(self.ruby, class, self.root() as usize, &RESPONSE_REF))
    }

    /// Ends all references.
    pub(crate) fn end_loans(&self) {
        if self.root.get() != Qnil as VALUE {
            empty(self.ruby, self.root.get());
        }
    }
}

fn object(ruby: &Ruby, class: &Lazy<RClass>, word: usize, data_type: &'static Type) -> VALUE {
    let class = ruby.get_inner(class).as_raw();
    // SAFETY: a class that is kept and a type that is static; the GVL is held, the caller stops exceptions.
    unsafe { rb_data_typed_object_wrap(class, word as *mut c_void, &data_type.0) }
}

impl Drop for Response<'_, '_> {
    fn drop(&mut self) {
        self.end_loans();
    }
}

/// Access to a response: its owner always has it, a reference while it lasts.
pub(super) trait Access {
    /// Proves that this thread has the GVL.
    fn ruby(&self) -> &Ruby;

    /// See [`ResponseRef::response`].
    fn response<T>(&self, code: impl FnOnce(&Response<'_, '_>) -> T) -> Result<T, Stop>;

    /// The same with the exchange.
    fn exchange<T>(&self, code: impl FnOnce(&mut Exchange<'_>) -> T) -> Result<T, Stop> {
        self.response(|response| response.with(code))
    }
}

impl Access for Response<'_, '_> {
    fn ruby(&self) -> &Ruby {
        self.ruby
    }

    fn response<T>(&self, code: impl FnOnce(&Response<'_, '_>) -> T) -> Result<T, Stop> {
        Ok(code(self))
    }
}

impl Access for ResponseRef<'_> {
    fn ruby(&self) -> &Ruby {
        self.ruby
    }

    fn response<T>(&self, code: impl FnOnce(&Response<'_, '_>) -> T) -> Result<T, Stop> {
        ResponseRef::response(*self, code)
    }
}
