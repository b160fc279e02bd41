//! `rack.input`: a StringIO for what lies in memory, a file for what lies on disk, one shared empty input for the rest.
//! All of them are binary, rewindable and know their size.

use crate::strings::{ids, keep, new};
use fairlead_engine::Body;
use magnus::Ruby;
use rb_sys::{rb_funcallv, VALUE};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The Ruby classes that make inputs, and the one empty input; looked up when the first engine is made.
static STRING_IO: AtomicUsize = AtomicUsize::new(0);
static FILE_INPUT: AtomicUsize = AtomicUsize::new(0);
static EMPTY_INPUT: AtomicUsize = AtomicUsize::new(0);

/// Says which classes and which empty input to use; what comes after the first time is the same.
pub(crate) fn init(ruby: &Ruby, string_io: VALUE, file_input: VALUE, empty_input: VALUE) {
    if STRING_IO.load(Relaxed) != 0 {
        return;
    }
    [string_io, file_input, empty_input]
        .into_iter()
        .for_each(|value| keep(ruby, value));
    STRING_IO.store(string_io as usize, Relaxed);
    FILE_INPUT.store(file_input as usize, Relaxed);
    EMPTY_INPUT.store(empty_input as usize, Relaxed);
}

/// The input of a request without a body, shared by all.
pub(super) fn empty() -> VALUE {
    EMPTY_INPUT.load(Relaxed) as VALUE
}

/// The input for a body. Inside `protect`.
pub(super) fn make(ruby: &Ruby, body: Body) -> VALUE {
    match body {
        Body::Empty => empty(),
        Body::Memory(bytes) => {
            let string = new(ruby, &bytes);
            drop(bytes);
            // SAFETY: both are live objects; the String is on the stack.
            unsafe { rb_funcallv(STRING_IO.load(Relaxed) as VALUE, ids().new, 1, &string) }
        }
        Body::File(file, _) => {
            let fd = file.into_raw_fd();
            // SAFETY: the descriptor is ours and given to the IO, which closes it.
            unsafe {
                let number = rb_sys::rb_int2inum(fd as isize);
                rb_funcallv(FILE_INPUT.load(Relaxed) as VALUE, ids().for_fd, 1, &number)
            }
        }
    }
}
