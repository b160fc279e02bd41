//! Bodies that are compressed on their way. Their bytes are copied, and the work is done without the GVL; meanwhile other
//! threads may change the Strings.

use super::{stream, Answer};
use crate::gvl::wait_without_gvl;
use crate::strings::bytes;
use fairlead_engine::{Coding, Exchange, Until};
use rb_sys::{rb_ary_entry, RARRAY_LEN, VALUE};

/// Most bytes that are copied at a time.
const PIECE: usize = 256 * 1024;

/// A body up to this size is compressed before the head is ended, so that its length can be told.
const WHOLE: u64 = 1024 * 1024;

/// Ends the head and writes the Strings of an Array, which have been looked at and have `total` bytes. Inside `protect`.
pub(super) fn write_array(answer: &mut Answer<'_, '_>, array: VALUE, total: u64, coding: Coding) {
    answer.exchange.start_coding(coding);
    if total > WHOLE || total == 0 {
        answer.exchange.end_head_coded(false);
        if answer.exchange.wants_body() {
            // SAFETY: as in `body::write_array`; the length is asked for again after each wait.
            let length = || unsafe { RARRAY_LEN(array) as usize };
            let mut index = 0;
            while index < length() {
                // SAFETY: as above; what is no String by now has no bytes.
                if !put(answer, unsafe { rb_ary_entry(array, index as _) }, Until::Convenient) {
                    return;
                }
                index += 1;
            }
            finish(answer);
        }
        return;
    }
    // SAFETY: no Ruby runs while the Strings are copied.
    unsafe {
        for index in 0..RARRAY_LEN(array) {
            answer.exchange.add_plain(bytes(rb_ary_entry(array, index as _)));
        }
    }
    run(answer.exchange, Until::Finished);
    answer.exchange.end_head_coded(true);
    write_coded(answer.exchange);
}

/// Writes one String. False when the client is gone. May raise what other threads want of this one.
pub(super) fn put(answer: &mut Answer<'_, '_>, string: VALUE, until: Until) -> bool {
    let mut done = 0;
    loop {
        // SAFETY: the String is on the stack; its bytes are looked up again after each wait.
        let all = unsafe { super::body::string_bytes(string) };
        let rest = all.get(done..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        let piece = &rest[..rest.len().min(PIECE)];
        done += piece.len();
        answer.exchange.add_plain(piece);
        run(answer.exchange, until);
        if !write_coded(answer.exchange) {
            return false;
        }
    }
}

/// Ends the body.
pub(super) fn finish(answer: &mut Answer<'_, '_>) {
    run(answer.exchange, Until::Finished);
    write_coded(answer.exchange);
}

fn run(exchange: &mut Exchange<'_>, until: Until) {
    let Some(mut coder) = exchange.take_coder() else { return };
    let mut has_run = false;
    let mut work = || {
        has_run = true;
        coder.run(until);
    };
    wait_without_gvl(&mut work);
    // Ruby wanted this thread back before it began; it gets it as soon as the piece is done.
    if !has_run {
        coder.run(until);
    }
    exchange.give_back_coder(coder);
}

fn write_coded(exchange: &mut Exchange<'_>) -> bool {
    loop {
        match exchange.write_coded() {
            Ok(true) => return true,
            Ok(false) if stream::wait_for_client(exchange) => {}
            _ => return false,
        }
    }
}
