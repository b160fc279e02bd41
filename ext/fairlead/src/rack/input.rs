//! `rack.input`: a StringIO for a body in memory, a file for one on disk, and an empty input that all other requests
//! share. All of them are binary, can be rewound and know their size.

use crate::classes::{EMPTY_INPUT, FILE_INPUT, STRING_IO};
use crate::objects::call;
use crate::strings::{ids, new};
use fairlead_engine::Body;
use magnus::rb_sys::AsRawValue;
use magnus::Ruby;
use rb_sys::VALUE;
use std::os::fd::IntoRawFd;

/// The input of a request without a body, shared by all.
pub(super) fn empty(ruby: &Ruby) -> VALUE {
    ruby.get_inner(&EMPTY_INPUT).as_raw()
}

/// The input for a body. Inside `protect`.
pub(super) fn make(ruby: &Ruby, body: Body) -> VALUE {
    match body {
        Body::Empty => empty(ruby),
        Body::Memory(bytes) => {
            let string = new(ruby, &bytes);
            drop(bytes);
            call(ruby, ruby.get_inner(&STRING_IO).as_raw(), ids().new, &[string])
        }
        Body::File(file, _) => {
            let fd = file.into_raw_fd();
            // SAFETY: the GVL is held.
            let number = unsafe { rb_sys::rb_int2inum(fd as isize) };
            // The IO owns the descriptor from now on.
            call(ruby, ruby.get_inner(&FILE_INPUT).as_raw(), ids().for_fd, &[number])
        }
    }
}
