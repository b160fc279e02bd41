//! Header fields: a Hash, or anything whose `each` yields pairs. A value may be a String with one line per field line
//! (Rack 2), an Array of Strings (Rack 3), or anything with `to_s`. What could split the answer is left out and logged.

use super::Answer;
use crate::strings::{bytes, ids};
use fairlead_engine::{Exchange, FieldError};
use rb_sys::{
    rb_block_call, rb_hash_foreach, rb_obj_as_string, ruby_value_type::*, Qnil, RARRAY_LEN, RB_TYPE_P, VALUE,
};
use std::ffi::c_int;

/// Writes all fields, and finds what the socket is to be given to. Inside `protect`.
pub(super) fn write(answer: &mut Answer<'_, '_>) {
    let mut hijacker = Qnil as VALUE;
    write_into(answer.exchange, answer.headers, &mut hijacker);
    answer.hijacker = hijacker;
}

/// Writes the fields of `headers`. Raises what they raise.
pub(super) fn write_all(exchange: &mut Exchange<'_>, headers: VALUE) {
    write_into(exchange, headers, &mut (Qnil as VALUE));
}

struct Writing<'a, 'e> {
    exchange: &'a mut Exchange<'e>,
    /// The value of `rack.hijack`, which is no field.
    hijacker: &'a mut VALUE,
}

fn write_into(exchange: &mut Exchange<'_>, headers: VALUE, hijacker: &mut VALUE) {
    let mut writing = Writing { exchange, hijacker };
    let address = &mut writing as *mut Writing<'_, '_> as VALUE;
    // SAFETY: the GVL is held; what is pointed to outlives the calls and is used by nobody else during them.
    unsafe {
        if RB_TYPE_P(headers, RUBY_T_HASH) {
            rb_hash_foreach(headers, Some(pair), address);
        } else {
            rb_block_call(headers, ids().each, 0, std::ptr::null(), Some(yielded), address);
        }
    }
}

unsafe extern "C" fn pair(name: VALUE, value: VALUE, writing: VALUE) -> c_int {
    // SAFETY: the address that `write_into` passed on.
    field(unsafe { &mut *(writing as *mut Writing<'_, '_>) }, name, value);
    rb_sys::st_retval::ST_CONTINUE as c_int
}

unsafe extern "C" fn yielded(
    first: VALUE,
    writing: VALUE,
    count: c_int,
    arguments: *const VALUE,
    _block: VALUE,
) -> VALUE {
    // SAFETY: `arguments` holds `count` values; the address is the one that `write_into` passed on.
    unsafe {
        let (name, value) = if count >= 2 {
            (*arguments, *arguments.add(1))
        } else if RB_TYPE_P(first, RUBY_T_ARRAY) {
            (rb_sys::rb_ary_entry(first, 0), rb_sys::rb_ary_entry(first, 1))
        } else {
            super::raise(c"the headers must yield pairs of name and value")
        };
        field(&mut *(writing as *mut Writing<'_, '_>), name, value);
    }
    Qnil as VALUE
}

fn field(writing: &mut Writing<'_, '_>, name: VALUE, value: VALUE) {
    // SAFETY: inside `protect`; the Strings stay on the stack, and no Ruby runs while their bytes are used.
    unsafe {
        let name = if RB_TYPE_P(name, RUBY_T_STRING) {
            name
        } else {
            rb_obj_as_string(name)
        };
        if is_for_the_server(bytes(name)) || value == Qnil as VALUE {
            if bytes(name).eq_ignore_ascii_case(b"rack.hijack") {
                *writing.hijacker = value;
            }
            return;
        }
        let exchange = &mut *writing.exchange;
        if RB_TYPE_P(value, RUBY_T_ARRAY) {
            for index in 0..RARRAY_LEN(value) {
                let element = rb_obj_as_string(rb_sys::rb_ary_entry(value, index as _));
                lines(exchange, bytes(name), bytes(element));
            }
        } else {
            let value = if RB_TYPE_P(value, RUBY_T_STRING) {
                value
            } else {
                rb_obj_as_string(value)
            };
            lines(exchange, bytes(name), bytes(value));
        }
    }
}

/// `rack.*` is never sent, and `status` was a CGI custom.
fn is_for_the_server(name: &[u8]) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack.")) || name.eq_ignore_ascii_case(b"status")
}

/// Sends each line of a value; none of them if one has what ends lines elsewhere, as in a value that a client made up.
fn lines(exchange: &mut Exchange<'_>, name: &[u8], value: &[u8]) {
    let has_lines = value.contains(&b'\n');
    let sent = if has_lines && value.iter().any(|byte| matches!(byte, 0 | b'\r')) {
        Err(FieldError::Splitting)
    } else {
        value
            .split(|byte| *byte == b'\n')
            .try_for_each(|line| exchange.field(name, line))
    };
    if let Err(error) = sent {
        exchange.blame(error.fault());
    }
}
