//! Ruby objects as `VALUE`s: calls their methods, checks their classes, and reads and writes entries of Hashes.
//!
//! Magnus has its own types for them, which check more. These functions are for the hot path of a request. The
//! collector knows each `VALUE` in the extension: it is on the stack, or an object marks it.

use magnus::Ruby;
use rb_sys::{Qnil, Qtrue, ID, VALUE};

/// Calls a method. Inside `protect`.
#[inline]
pub(crate) fn call(_: &Ruby, receiver: VALUE, method: ID, arguments: &[VALUE]) -> VALUE {
    // SAFETY: the GVL is held; live objects; number and address of the arguments belong together. `protect` stops an
    // exception of the method.
    unsafe { rb_sys::rb_funcallv(receiver, method, arguments.len() as _, arguments.as_ptr()) }
}

/// Returns true if the object has the method. Inside `protect`: its `respond_to?` may run.
pub(crate) fn responds(_: &Ruby, object: VALUE, method: ID) -> bool {
    // SAFETY: as above.
    unsafe { rb_sys::rb_respond_to(object, method) != 0 }
}

/// Returns true if the object is an instance of the class or of a subclass.
pub(crate) fn is_a(_: &Ruby, object: VALUE, class: VALUE) -> bool {
    // SAFETY: the GVL is held; live objects. It calls no Ruby code.
    unsafe { rb_sys::rb_obj_is_kind_of(object, class) == Qtrue as VALUE }
}

/// Sets an entry of a Hash. Inside `protect`.
#[inline]
pub(crate) fn set(_: &Ruby, hash: VALUE, key: VALUE, value: VALUE) {
    // SAFETY: the GVL is held; live objects. `protect` stops an exception of the application's key or of a frozen Hash.
    unsafe { rb_sys::rb_hash_aset(hash, key, value) };
}

/// An entry of a Hash; `None` if it is nil or missing. With Strings and Integers as keys this calls no code of the
/// application.
#[inline]
pub(crate) fn get(_: &Ruby, hash: VALUE, key: VALUE) -> Option<VALUE> {
    // SAFETY: the GVL is held; live objects.
    let value = unsafe { rb_sys::rb_hash_lookup(hash, key) };
    (value != Qnil as VALUE).then_some(value)
}

/// The number of entries of a Hash.
pub(crate) fn size(_: &Ruby, hash: VALUE) -> usize {
    // SAFETY: the GVL is held; a live Hash.
    unsafe { rb_sys::rb_hash_size_num(hash) as usize }
}

/// A copy of a Hash. Inside `protect`.
pub(crate) fn copy(_: &Ruby, hash: VALUE) -> VALUE {
    // SAFETY: the GVL is held; a live Hash.
    unsafe { rb_sys::rb_hash_dup(hash) }
}

/// A new Hash. Inside `protect`.
pub(crate) fn new_hash(_: &Ruby) -> VALUE {
    // SAFETY: the GVL is held.
    unsafe { rb_sys::rb_hash_new() }
}

/// Sets all entries of `other` in a Hash, after its own. Inside `protect`.
pub(crate) fn update(_: &Ruby, hash: VALUE, other: VALUE) {
    // SAFETY: the GVL is held; live Hashes.
    unsafe { rb_sys::rb_hash_update_by(hash, other, None) };
}

/// A new Float. Inside `protect`.
pub(crate) fn float(_: &Ruby, number: f64) -> VALUE {
    // SAFETY: the GVL is held.
    unsafe { rb_sys::rb_float_new(number) }
}

/// A new Array. Inside `protect`.
pub(crate) fn new_array(_: &Ruby) -> VALUE {
    // SAFETY: the GVL is held.
    unsafe { rb_sys::rb_ary_new() }
}
