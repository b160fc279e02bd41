//! `rack.input`: a StringIO for a body in memory, a file for a body on disk, and an empty input that all other requests
//! share. All of them are binary, can be rewound and have a size.

use crate::classes::{EMPTY_INPUT, FILE_INPUT, STRING_IO};
use crate::objects::call;
use crate::strings::{ids, new};
use fairlead_engine::{Body, Exchange};
use magnus::rb_sys::AsRawValue;
use magnus::Ruby;
use rb_sys::{Qtrue, VALUE};
use std::os::fd::{AsRawFd, IntoRawFd};

/// The input of requests without a body; they share it.
pub(super) fn empty(ruby: &Ruby) -> VALUE {
    ruby.get_inner(&EMPTY_INPUT).as_raw()
}

/// The input for the body of a request. Inside `protect`: the exchange owns the body until Ruby does, so that no body
/// is lost when Ruby raises.
pub(super) fn make(ruby: &Ruby, exchange: &mut Exchange<'_>) -> VALUE {
    let input = match exchange.body() {
        Body::Empty => return empty(ruby),
        Body::Memory(bytes) => {
            let string = new(ruby, bytes);
            call(ruby, ruby.get_inner(&STRING_IO).as_raw(), ids().new, &[string])
        }
        Body::File(file, _) => {
            // SAFETY: the GVL is held.
            let number = unsafe { rb_sys::rb_int2inum(file.as_raw_fd() as isize) };
            call(ruby, ruby.get_inner(&FILE_INPUT).as_raw(), ids().for_fd, &[number])
        }
    };
    if let Body::File(file, _) = exchange.take_body() {
        // The IO owns the descriptor from now on. If Ruby had raised with the descriptor released earlier, it would
        // have been closed twice.
        let _ = file.into_raw_fd();
        call(ruby, input, ids().set_autoclose, &[Qtrue as VALUE]);
    }
    input
}
