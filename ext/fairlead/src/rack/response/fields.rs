//! Header fields: a Hash, or any object that yields pairs from `each`. A value may be an Array of Strings, or any
//! object with `to_s`; with Rack 2 also a String with several values, one in each line. A field that could split the
//! response is left out and logged.

use super::Response;
use crate::classes::RESPONSE_REF;
use crate::protect::protect;
use crate::rack::response_ref::{Access, ResponseRef, ResponseRefGuard};
use crate::rack::stop::{called_back, Stop};
use crate::strings::{bytes, ids};
use fairlead_engine::{Exchange, FieldError};
use magnus::Ruby;
use rb_sys::{
    rb_block_call, rb_hash_foreach, rb_obj_as_string, ruby_value_type::*, Qnil, RARRAY_LEN, RB_TYPE_P, VALUE,
};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True if each line of a String is a value, as in the SPEC of Rack 2. With Rack 3 a line feed is an error.
static HAS_LISTS: AtomicBool = AtomicBool::new(false);

/// Chooses the convention of the loaded Rack version.
pub(crate) fn set_lists(has_lists: bool) {
    HAS_LISTS.store(has_lists, Relaxed);
}

/// Writes all fields, and notes the values of `rack.hijack` and `rack.protocol`. Inside `protect`.
pub(crate) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    let headers = response.headers.get();
    // SAFETY: a live object on the stack.
    if unsafe { RB_TYPE_P(headers, RUBY_T_HASH) } {
        // The application gets no block that it could keep, so the root is safe to use.
        write_hash(ResponseRef::of(response.ruby, response.root()), headers);
        return Ok(());
    }
    let reference = response.reference(&RESPONSE_REF);
    let guard = ResponseRefGuard(reference);
    let written = protect(response.ruby, || write_each(reference, headers));
    drop(guard);
    written.map_err(Stop::Jump)
}

/// Writes the fields of an interim response while the reference lasts. Exceptions of the headers pass through.
pub(crate) fn write_hints(reference: ResponseRef<'_>, headers: VALUE) {
    // SAFETY: as above.
    if unsafe { RB_TYPE_P(headers, RUBY_T_HASH) } {
        write_hash(reference, headers);
    } else {
        write_each(reference, headers);
    }
}

fn write_hash(reference: ResponseRef<'_>, headers: VALUE) {
    // SAFETY: live objects, the GVL is held, the caller stops exceptions.
    unsafe { rb_hash_foreach(headers, Some(pair), reference.object()) };
}

fn write_each(reference: ResponseRef<'_>, headers: VALUE) {
    // SAFETY: as above. The block keeps the reference alive.
    unsafe {
        rb_block_call(
            headers,
            ids().each,
            0,
            std::ptr::null(),
            Some(yielded),
            reference.object(),
        )
    };
}

unsafe extern "C" fn pair(name: VALUE, value: VALUE, reference: VALUE) -> c_int {
    // SAFETY: Ruby calls this.
    unsafe { called_back(|ruby| field(ruby, ResponseRef::of(ruby, reference), name, value)) };
    rb_sys::st_retval::ST_CONTINUE as c_int
}

/// The block that `each` of the headers gets.
unsafe extern "C" fn yielded(first: VALUE, reference: VALUE, count: c_int, arguments: *const VALUE, _: VALUE) -> VALUE {
    let write = |ruby: &Ruby| {
        // SAFETY: `arguments` holds `count` values.
        let (name, value) = unsafe {
            if count >= 2 {
                (*arguments, *arguments.add(1))
            } else if RB_TYPE_P(first, RUBY_T_ARRAY) {
                (rb_sys::rb_ary_entry(first, 0), rb_sys::rb_ary_entry(first, 1))
            } else {
                return Err(Stop::Type(c"the headers must yield pairs of name and value"));
            }
        };
        field(ruby, ResponseRef::of(ruby, reference), name, value)
    };
    // SAFETY: as above.
    unsafe { called_back(write) }
}

fn field(ruby: &Ruby, reference: ResponseRef<'_>, name: VALUE, value: VALUE) -> Result<(), Stop> {
    if reference.is_over() {
        return Err(Stop::Finished);
    }
    let name = string(ruby, name);
    // SAFETY: the Strings stay on the stack, and no Ruby runs while their bytes are used.
    unsafe {
        if is_for_the_server(bytes(ruby, name)) || value == Qnil as VALUE {
            return reference.response(|response| match bytes(ruby, name) {
                name if name.eq_ignore_ascii_case(b"rack.hijack") => response.hijacker.set(value),
                name if name.eq_ignore_ascii_case(b"rack.protocol") => response.protocol.set(value),
                _ => {}
            });
        }
        if !RB_TYPE_P(value, RUBY_T_ARRAY) {
            return write_lines(ruby, reference, name, string(ruby, value));
        }
        let mut index = 0;
        while index < RARRAY_LEN(value) {
            write_lines(
                ruby,
                reference,
                name,
                string(ruby, rb_sys::rb_ary_entry(value, index as _)),
            )?;
            index += 1;
        }
    }
    Ok(())
}

/// Returns a String, or an object converted to one. Runs Ruby.
fn string(_: &Ruby, value: VALUE) -> VALUE {
    // SAFETY: a live object on the stack, the GVL is held, the caller stops exceptions.
    unsafe {
        if RB_TYPE_P(value, RUBY_T_STRING) {
            value
        } else {
            rb_obj_as_string(value)
        }
    }
}

/// Writes the lines of one value. No Ruby runs any more.
fn write_lines(ruby: &Ruby, reference: ResponseRef<'_>, name: VALUE, value: VALUE) -> Result<(), Stop> {
    reference.exchange(|exchange| {
        // A Fiber may be resumed after the head has ended.
        if !exchange.takes_fields() {
            return Err(Stop::Finished);
        }
        // SAFETY: Strings on the stack; no Ruby runs while their bytes are used.
        unsafe { lines(exchange, bytes(ruby, name), bytes(ruby, value)) };
        Ok(())
    })?
}

/// Returns true for a field that is meant for the server: `rack.*`, and `status`, a convention of CGI.
fn is_for_the_server(name: &[u8]) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack.")) || name.eq_ignore_ascii_case(b"status")
}

/// Writes each line of a value as a field. Writes none of them if the Rack version has no lines as values, or if a line
/// has another control character that some parsers take for the end of a line. In early hints, lines are values with
/// every Rack version: Rails joins its links this way.
fn lines(exchange: &mut Exchange<'_>, name: &[u8], value: &[u8]) {
    let are_values = || HAS_LISTS.load(Relaxed) || exchange.is_hinting();
    let sent = if !value.contains(&b'\n') {
        exchange.field(name, value)
    } else if are_values() && !value.iter().any(|byte| matches!(byte, 0 | b'\r')) {
        let mut lines = value.split(|byte| *byte == b'\n');
        lines.try_for_each(|line| exchange.field(name, line))
    } else {
        Err(FieldError::Splitting)
    };
    if let Err(error) = sent {
        exchange.blame(error.fault());
    }
}
