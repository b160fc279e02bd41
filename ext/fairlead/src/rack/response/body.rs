//! Every kind of body, in the order of the SPEC: an Array, an object that converts to one, a file on disk, an object
//! that yields Strings, and an object that is called with a stream. A file that a header field of the response names
//! comes before all of them.

use super::turn::{end_loan, flush, wait_with, write_apart, Turn};
use super::{compressed, stream, switch, Response};
use crate::classes::RESPONSE_REF;
use crate::gvl::wait_without_gvl;
use crate::objects::{call, responds};
use crate::protect::{check_interrupts, protect, take_error};
use crate::rack::response_ref::{Access, ResponseRef, ResponseRefGuard};
use crate::rack::stop::{called_back, Stop};
use crate::strings::{bytes, ids};
use fairlead_engine::{Exchange, Gone, Search, Until, LONG_BYTES};
use magnus::Ruby;
use rb_sys::{
    rb_block_call, rb_cArray, rb_check_array_type, rb_eStandardError, rb_get_path, ruby_value_type::*, Qnil,
    RARRAY_LEN, RB_TYPE_P, VALUE,
};
use std::ffi::c_int;

const NO_STRINGS: Stop = Stop::Type(c"the body must yield Strings");

/// Ends the head and writes the body. Inside `protect`.
pub(super) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    if response.hijacker.get() != Qnil as VALUE {
        switch::may_give_away(response)?;
        response.with(|exchange| exchange.end_head_for_hijack());
        return switch::give_away(response, response.hijacker.get());
    }
    if let Some(search) = response.with(|exchange| exchange.search_named()) {
        let found = search_apart(response, search)?;
        response.with(|exchange| exchange.send_found(found));
        return Ok(());
    }
    let body = response.body.get();
    if is_plain_array(response.ruby, body) {
        response.body.set(Qnil as VALUE);
        return write_array(response, body);
    }
    if !responds(response.ruby, body, ids().each) && !responds(response.ruby, body, ids().to_ary) {
        if responds(response.ruby, body, ids().call) {
            response.with(|exchange| exchange.end_head(None));
            return stream::run(response, body);
        }
        return Err(Stop::Type(c"the body must respond to each or call"));
    }
    if responds(response.ruby, body, ids().to_path) && write_file(response, body)? {
        return Ok(());
    }
    match as_array(response, body)? {
        Some(array) => write_array(response, array),
        None => write_each(response, body),
    }
}

/// The body as an Array, if it is to be written as a whole.
fn as_array(response: &Response<'_, '_>, body: VALUE) -> Result<Option<VALUE>, Stop> {
    // If the head already says how the body is framed, the whole body is not needed; and a body that is made while it
    // is sent (a range of a file, a streamed template) may have no such Array.
    let is_framed = response.with(|exchange| exchange.announced_length().is_some() || exchange.has_own_framing());
    // SAFETY: a live object.
    let is_array = unsafe { RB_TYPE_P(body, RUBY_T_ARRAY) };
    if (is_framed && !is_array) || !responds(response.ruby, body, ids().to_ary) {
        return Ok(None);
    }
    let mut array = Qnil as VALUE;
    let is_converted = unless_raised(response.ruby, || {
        let converted = call(response.ruby, body, ids().to_ary, &[]);
        // SAFETY: a live object, the GVL is held, exceptions are stopped.
        array = unsafe { rb_check_array_type(converted) };
    })?;
    Ok((is_converted && array != Qnil as VALUE).then_some(array))
}

/// Returns true if `code`, which belongs to the application, has succeeded. Ignores a StandardError; passes on
/// everything else.
fn unless_raised(ruby: &Ruby, code: impl FnMut()) -> Result<bool, Stop> {
    match protect(ruby, code) {
        Ok(()) => Ok(true),
        // SAFETY: a constant of Ruby.
        Err(_) if take_error(ruby, unsafe { rb_eStandardError }).is_some() => Ok(false),
        Err(jump) => Err(Stop::Jump(jump)),
    }
}

/// Writes each String as soon as the body yields it.
fn write_each(response: &Response<'_, '_>, body: VALUE) -> Result<(), Stop> {
    // An error page replaces a body that yields nothing.
    let may_have_page = response.with(|exchange| exchange.wants_error_page());
    if !may_have_page {
        response.with(end_head_of_each);
    }
    if !may_have_page && !response.with(|exchange| exchange.wants_body()) {
        return Ok(());
    }
    let reference = response.reference(&RESPONSE_REF);
    let guard = ResponseRefGuard(reference);
    let ended = protect(response.ruby, || {
        // SAFETY: live objects, the GVL is held, exceptions are stopped. The block keeps the reference alive.
        unsafe { rb_block_call(body, ids().each, 0, std::ptr::null(), Some(yielded), reference.object()) };
    });
    // Another thread may still be writing a String.
    let last = ended.map_err(Stop::Jump).and_then(|()| Turn::take_last(response));
    drop(guard);
    let _turn = last?;
    end_loan(response).or_else(unless_gone)?;
    let is_page = response.with(|exchange| exchange.write_error_page());
    if !is_page && response.with(|exchange| exchange.is_coded()) {
        return compressed::finish(response).or_else(unless_gone);
    }
    Ok(())
}

fn end_head_of_each(exchange: &mut Exchange<'_>) {
    match exchange.choose_coding(None) {
        Some(coding) => {
            exchange.start_coding(coding);
            exchange.end_head_coded(false);
        }
        None => exchange.end_head(None),
    }
}

/// A client that has closed the connection ends the response; this is no error of the application.
pub(super) fn unless_gone(stop: Stop) -> Result<(), Stop> {
    if stop == Stop::Gone {
        return Ok(());
    }
    Err(stop)
}

/// Returns true if `body` is an Array without methods of its own: it has no `close`, and its methods are known.
fn is_plain_array(_: &Ruby, body: VALUE) -> bool {
    // SAFETY: a live object; an Array is no immediate, so it has a class.
    unsafe { RB_TYPE_P(body, RUBY_T_ARRAY) && (*(body as *const rb_sys::RBasic)).klass == rb_cArray }
}

fn write_array(response: &Response<'_, '_>, array: VALUE) -> Result<(), Stop> {
    let total = total(response.ruby, array)?;
    if total == 0 && response.with(|exchange| exchange.write_error_page()) {
        return Ok(());
    }
    let coding = response.with(|exchange| exchange.choose_coding(Some(total)));
    if let Some(coding) = coding {
        return compressed::write_array(response, array, total, coding).or_else(unless_gone);
    }
    let wants_body = response.with(|exchange| {
        // Middleware removes the body of a response to HEAD, so its length is unknown then.
        let is_removed = total == 0 && exchange.request().is_head();
        exchange.end_head((!is_removed).then_some(total));
        exchange.wants_body()
    });
    if !wants_body {
        return Ok(());
    }
    each_part(response.ruby, array, |part| put(response, part)).or_else(unless_gone)
}

/// The number of bytes in all Strings of an Array.
fn total(ruby: &Ruby, array: VALUE) -> Result<u64, Stop> {
    let mut total = 0;
    each_part(ruby, array, |part| {
        // SAFETY: the part is on the stack, and no Ruby runs between the check and the use.
        unsafe {
            if !RB_TYPE_P(part, RUBY_T_STRING) {
                return Err(NO_STRINGS);
            }
            total += bytes(ruby, part).len() as u64;
        }
        Ok(())
    })?;
    Ok(total)
}

/// Calls `code` with each element of an Array, which may change meanwhile: the loop reads the length each time.
pub(super) fn each_part(_: &Ruby, array: VALUE, mut code: impl FnMut(VALUE) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut index = 0;
    // SAFETY: a live Array on the stack.
    while index < unsafe { RARRAY_LEN(array) } {
        // SAFETY: as above; a removed element is nil.
        code(unsafe { rb_sys::rb_ary_entry(array, index as _) })?;
        index += 1;
    }
    Ok(())
}

/// Sends the file that `to_path` names, with any object that Ruby takes for a path. False if the bytes must come from
/// `each`; see [`fairlead_engine::Exchange::send_found`].
fn write_file(response: &Response<'_, '_>, body: VALUE) -> Result<bool, Stop> {
    let named = call(response.ruby, body, ids().to_path, &[]);
    let mut path = Qnil as VALUE;
    // SAFETY: a live object, the GVL is held, exceptions are stopped.
    let is_path = unless_raised(response.ruby, || path = unsafe { rb_get_path(named) })?;
    if !is_path || response.with(|exchange| exchange.has_own_framing()) {
        return Ok(false);
    }
    // SAFETY: a String on the stack, and no Ruby runs while its bytes are used.
    let search = response.with(|exchange| exchange.search_path(unsafe { bytes(response.ruby, path) }));
    let found = search_apart(response, search)?;
    Ok(response.with(|exchange| exchange.send_found(found)))
}

/// Searches for a file: without the GVL if the search has to wait for a disk.
fn search_apart(response: &Response<'_, '_>, mut search: Search) -> Result<Search, Stop> {
    if search.glance() {
        return Ok(search);
    }
    while !search.is_over() {
        wait_without_gvl(response.ruby, || search.run());
        check_interrupts(response.ruby).map_err(Stop::Jump)?;
    }
    Ok(search)
}

/// The block that `each` of a body gets.
unsafe extern "C" fn yielded(part: VALUE, reference: VALUE, _: c_int, _: *const VALUE, _: VALUE) -> VALUE {
    let write = |ruby: &Ruby| {
        let reference = ResponseRef::of(ruby, reference);
        if reference.is_over() {
            return Err(Stop::Finished);
        }
        // SAFETY: `part` is a live object on the stack.
        let is_string = unsafe { RB_TYPE_P(part, RUBY_T_STRING) };
        if part == Qnil as VALUE {
            return Ok(());
        }
        if !is_string {
            return Err(NO_STRINGS);
        }
        let _turn = Turn::take(&reference)?;
        write_part(&reference, part)
    };
    // SAFETY: Ruby calls this.
    unsafe { called_back(write) }
}

/// Writes and sends one part that a body yields.
fn write_part(reference: &ResponseRef<'_>, part: VALUE) -> Result<(), Stop> {
    // SAFETY: a String on the stack.
    let is_empty = unsafe { string_bytes(reference.ruby(), part) }.is_empty();
    if reference.exchange(|exchange| exchange.wants_error_page())? {
        if is_empty {
            return Ok(());
        }
        reference.exchange(end_head_of_each)?;
    }
    // Even an empty String sends the bytes that are ready. An application may yield it first, to send the head before
    // it waits.
    if !is_empty {
        if reference.exchange(|exchange| exchange.is_coded())? {
            compressed::put(reference, part, Until::Flushed)?;
        } else {
            put(reference, part)?;
        }
    }
    flush(reference)
}

/// The bytes of a String; no bytes for any other object.
///
/// # Safety
/// As for [`bytes`].
pub(super) unsafe fn string_bytes<'a>(ruby: &Ruby, value: VALUE) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        if RB_TYPE_P(value, RUBY_T_STRING) {
            bytes(ruby, value)
        } else {
            &[]
        }
    }
}

/// Writes one String, and waits for the client if it must. A long String is written without the GVL.
pub(super) fn put<A: Access>(access: &A, string: VALUE) -> Result<(), Stop> {
    let mut done = 0;
    // SAFETY: the String is on the stack.
    let is_long = unsafe { string_bytes(access.ruby(), string) }.len() >= LONG_BYTES;
    let string = if is_long {
        frozen(access.ruby(), string)?
    } else {
        string
    };
    loop {
        // SAFETY: the String is on the stack; no Ruby runs while its bytes are used, unless the String is frozen. They
        // are fetched again after each wait, in which another thread may have changed the String.
        let rest = unsafe { string_bytes(access.ruby(), string) }
            .get(done..)
            .unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        if is_long {
            if let Some(written) = write_apart(access, rest)? {
                done += written;
                continue;
            }
        }
        let written = access.exchange(|exchange| {
            let taken = exchange.write(rest)?;
            Ok((taken, (taken < rest.len()).then(|| exchange.wait())))
        })?;
        let (taken, wait) = written.map_err(|Gone| Stop::Gone)?;
        done += taken;
        match wait {
            Some(wait) => wait_with(access, wait)?,
            None => return Ok(()),
        }
    }
}

/// A String that shares the bytes of another one, and keeps them when other threads change the other one.
fn frozen(ruby: &Ruby, string: VALUE) -> Result<VALUE, Stop> {
    let mut frozen = Qnil as VALUE;
    // SAFETY: a live String, the GVL is held, exceptions are stopped.
    protect(ruby, || frozen = unsafe { rb_sys::rb_str_new_frozen(string) }).map_err(Stop::Jump)?;
    Ok(frozen)
}

/// Called after all code of the application. The bytes that wait for the client go to the connection. Inside `protect`.
pub(crate) fn end(response: &Response<'_, '_>) {
    if let Err(Stop::Jump(jump)) = end_loan(response) {
        Stop::Jump(jump).raise(response.ruby);
    }
}

/// Closes the body, once. Inside `protect`.
pub(crate) fn close(response: &Response<'_, '_>) {
    let body = response.body.replace(Qnil as VALUE);
    if body != Qnil as VALUE && responds(response.ruby, body, ids().close) {
        call(response.ruby, body, ids().close, &[]);
    }
}
