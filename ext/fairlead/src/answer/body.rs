//! Every kind of body, in the order that the SPEC asks for: an Array, something that becomes one, a file on disk,
//! something that yields Strings, and something that is called with a stream. Before all of them comes a file that a field of
//! the answer names.

use super::{compressed, raise, stream, Answer};
use crate::strings::{bytes, ids};
use fairlead_engine::Until;
use rb_sys::{
    rb_block_call, rb_cArray, rb_check_array_type, rb_funcallv, rb_respond_to, ruby_value_type::*, Qnil, RARRAY_LEN,
    RB_TYPE_P, VALUE,
};
use std::ffi::{c_int, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Ends the head and writes the body. Inside `protect`.
pub(super) fn write(answer: &mut Answer<'_, '_>) {
    if answer.hijacker != Qnil as VALUE {
        return give_away(answer);
    }
    if answer.exchange.names_a_file() {
        return answer.exchange.send_named_file();
    }
    let body = answer.body;
    let responds = |id| {
        // SAFETY: a live object, the GVL is held; `respond_to?` of the app may run and raise.
        unsafe { rb_respond_to(body, id) != 0 }
    };
    if is_plain_array(body) {
        answer.body = Qnil as VALUE;
        return write_array(answer, body);
    }
    if !responds(ids().each) && !responds(ids().to_ary) {
        if responds(ids().call) {
            answer.exchange.end_head(None);
            return stream::run(answer, body);
        }
        raise(c"the body must respond to each or call");
    }
    if responds(ids().to_path) && write_file(answer, body) {
        return;
    }
    if responds(ids().to_ary) {
        // SAFETY: as above.
        let array = unsafe { rb_check_array_type(rb_funcallv(body, ids().to_ary, 0, std::ptr::null())) };
        if array != Qnil as VALUE {
            return write_array(answer, array);
        }
    }
    write_each(answer, body);
}

/// Writes what the body yields, as soon as it does.
fn write_each(answer: &mut Answer<'_, '_>, body: VALUE) {
    // Whether an error page has to stand in shows only when nothing is yielded.
    let may_stand_in = answer.exchange.wants_error_page();
    if !may_stand_in {
        end_head_of_each(answer);
    }
    if may_stand_in || answer.exchange.wants_body() {
        let address = answer as *mut Answer<'_, '_> as VALUE;
        // SAFETY: the answer outlives the call and is used by nobody else during it.
        unsafe { rb_block_call(body, ids().each, 0, std::ptr::null(), Some(yielded), address) };
        if !answer.exchange.write_error_page() && answer.exchange.is_coded() {
            compressed::finish(answer);
        }
    }
}

fn end_head_of_each(answer: &mut Answer<'_, '_>) {
    match answer.exchange.choose_coding(None) {
        Some(coding) => {
            answer.exchange.start_coding(coding);
            answer.exchange.end_head_coded(false);
        }
        None => answer.exchange.end_head(None),
    }
}

/// Gives the socket to what the answer says, once the head is on its way (Rack SPEC, partial hijack).
fn give_away(answer: &mut Answer<'_, '_>) {
    answer.exchange.end_head_for_hijack();
    while !answer.exchange.is_flushed() {
        if !stream::wait_for_client(answer.exchange) {
            return;
        }
    }
    let Ok(socket) = crate::hijack::take(answer.exchange) else {
        raise(c"the socket cannot be given away");
    };
    let io = socket.object();
    answer.hijacked_io = io;
    // SAFETY: live objects, the GVL is held, exceptions are stopped by the caller.
    unsafe { rb_funcallv(answer.hijacker, ids().call, 1, &io) };
}

/// Whether `body` is an Array without methods of its own: it needs no closing and no question what it responds to.
fn is_plain_array(body: VALUE) -> bool {
    // SAFETY: a live object; an Array is no immediate, so that it has a class.
    unsafe { RB_TYPE_P(body, RUBY_T_ARRAY) && (*(body as *const rb_sys::RBasic)).klass == rb_cArray }
}

fn write_array(answer: &mut Answer<'_, '_>, array: VALUE) {
    let mut total = 0;
    // SAFETY: inside `protect`; the Strings are in the Array, which is on the stack, and no Ruby runs between the check
    // and the use of a String.
    unsafe {
        for index in 0..RARRAY_LEN(array) {
            let part = rb_sys::rb_ary_entry(array, index as _);
            if !RB_TYPE_P(part, RUBY_T_STRING) {
                raise(c"the body must yield Strings");
            }
            total += bytes(part).len() as u64;
        }
        if total == 0 && answer.exchange.write_error_page() {
            return;
        }
        if let Some(coding) = answer.exchange.choose_coding(Some(total)) {
            return compressed::write_array(answer, array, total, coding);
        }
        // Middleware takes the body from an answer to HEAD, and with it what is known of its length.
        let is_taken = total == 0 && answer.exchange.is_head_request();
        answer.exchange.end_head((!is_taken).then_some(total));
        if !answer.exchange.wants_body() {
            return;
        }
        for index in 0..RARRAY_LEN(array) {
            let part = rb_sys::rb_ary_entry(array, index as _);
            if !put(answer, part) {
                return;
            }
        }
    }
}

/// Sends the file that `to_path` names. False when `each` has the right bytes; see [`fairlead_engine::Exchange::send_path`].
fn write_file(answer: &mut Answer<'_, '_>, body: VALUE) -> bool {
    // SAFETY: inside `protect`; the String is on the stack while its bytes are used, and nothing calls Ruby meanwhile.
    let path = unsafe {
        let path = rb_funcallv(body, ids().to_path, 0, std::ptr::null());
        if !RB_TYPE_P(path, RUBY_T_STRING) {
            return false;
        }
        OsStr::from_bytes(bytes(path))
    };
    answer.exchange.send_path(Path::new(path))
}

unsafe extern "C" fn yielded(part: VALUE, answer: VALUE, _: c_int, _: *const VALUE, _: VALUE) -> VALUE {
    // SAFETY: the address that `write` passed on.
    let answer = unsafe { &mut *(answer as *mut Answer<'_, '_>) };
    // SAFETY: `part` is a live object on the stack.
    unsafe {
        if part == Qnil as VALUE {
            return Qnil as VALUE;
        }
        if !RB_TYPE_P(part, RUBY_T_STRING) {
            raise(c"the body must yield Strings");
        }
    }
    // SAFETY: as above.
    let is_empty = unsafe { bytes(part) }.is_empty();
    if answer.exchange.wants_error_page() {
        if is_empty {
            return Qnil as VALUE;
        }
        end_head_of_each(answer);
    }
    // Even an empty String sends what is ready: the head, before an application that begins with it waits for something.
    let written = if is_empty {
        true
    } else if answer.exchange.is_coded() {
        compressed::put(answer, part, Until::Flushed)
    } else {
        put(answer, part)
    };
    if !written || !answer.exchange.flush() {
        stream::raise_closed();
    }
    Qnil as VALUE
}

/// The bytes of a String; none of anything else.
///
/// # Safety
/// As for [`bytes`].
pub(super) unsafe fn string_bytes<'a>(value: VALUE) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        if RB_TYPE_P(value, RUBY_T_STRING) {
            bytes(value)
        } else {
            &[]
        }
    }
}

/// Writes one String, waiting for the client where it must. False when the client is gone.
pub(super) fn put(answer: &mut Answer<'_, '_>, string: VALUE) -> bool {
    let mut done = 0;
    loop {
        // SAFETY: the String is on the stack; no Ruby runs while its bytes are used. They are looked up again after each
        // wait, in which another thread may have changed the String.
        let rest = unsafe { bytes(string) }.get(done..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        match answer.exchange.write(rest) {
            Ok(taken) => done += taken,
            Err(_) => return false,
        }
        // SAFETY: as above.
        if done >= unsafe { bytes(string) }.len() {
            return true;
        }
        if !stream::wait_for_client(answer.exchange) {
            return false;
        }
    }
}

/// Closes the body, once. Inside `protect`.
pub(crate) fn close(answer: &mut Answer<'_, '_>) {
    let body = std::mem::replace(&mut answer.body, Qnil as VALUE);
    // SAFETY: a live object, the GVL is held.
    unsafe {
        if body != Qnil as VALUE && rb_respond_to(body, ids().close) != 0 {
            rb_funcallv(body, ids().close, 0, std::ptr::null());
        }
    }
}
