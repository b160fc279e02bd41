//! Methods of a stream that the SPEC does not require. Other servers pass a socket, so libraries expect the methods of
//! a socket. All writing methods call `write`; the reading methods are at the end.

use magnus::rb_sys::{protect, AsRawValue, FromRawValue};
use magnus::{exception::ExceptionClass, method, prelude::*, Error, RClass, RHash, RString, Ruby, Value};
use rb_sys::{rb_io_print, rb_io_printf, rb_io_puts, VALUE};
use std::ffi::c_int;

/// Defines the methods.
pub(super) fn init(class: RClass) -> Result<(), Error> {
    class.define_method("syswrite", method!(write, 1))?;
    class.define_method("write_nonblock", method!(write_nonblock, -1))?;
    class.define_method("print", method!(print, -1))?;
    class.define_method("printf", method!(printf, -1))?;
    class.define_method("puts", method!(puts, -1))?;
    class.define_method("sync", method!(sync, 0))?;
    class.define_method("sync=", method!(set_sync, 1))?;
    class.define_method("fsync", method!(fsync, 0))?;
    class.define_method("gets", method!(gets, -1))?;
    class.define_method("eof?", method!(eof, 0))?;
    class.define_method("readpartial", method!(at_end, -1))?;
    class.define_method("sysread", method!(at_end, -1))?;
    class.define_method("read_nonblock", method!(read_nonblock, -1))
}

fn write(this: Value, string: Value) -> Result<Value, Error> {
    this.funcall("write", (string,))
}

/// Waits like `write`, but only if the client is far behind: a stream has no descriptor for `select`.
fn write_nonblock(ruby: &Ruby, this: Value, arguments: &[Value]) -> Result<Value, Error> {
    match arguments {
        [string] => write(this, *string),
        [string, options] if RHash::from_value(*options).is_some() => write(this, *string),
        _ => Err(wrong_number(ruby)),
    }
}

fn print(this: Value, arguments: &[Value]) -> Result<Value, Error> {
    through(rb_io_print, this, arguments)
}

fn printf(this: Value, arguments: &[Value]) -> Result<Value, Error> {
    through(rb_io_printf, this, arguments)
}

fn puts(this: Value, arguments: &[Value]) -> Result<Value, Error> {
    through(rb_io_puts, this, arguments)
}

/// Calls Ruby's own function for an IO, which calls `write`.
fn through(
    function: unsafe extern "C" fn(c_int, *const VALUE, VALUE) -> VALUE,
    this: Value,
    arguments: &[Value],
) -> Result<Value, Error> {
    let result = protect(|| {
        // SAFETY: a Value is a VALUE; all are on the stack, the GVL is held, and an exception is stopped.
        unsafe {
            function(
                arguments.len() as c_int,
                arguments.as_ptr().cast::<VALUE>(),
                this.as_raw(),
            )
        }
    })?;
    // SAFETY: a new or immediate object on the stack.
    Ok(unsafe { Value::from_raw(result) })
}

/// True: written bytes are sent at once.
fn sync(_this: Value) -> bool {
    true
}

fn set_sync(_this: Value, is_on: Value) -> Value {
    is_on
}

fn fsync(_this: Value) -> i32 {
    0
}

fn gets(_this: Value, _arguments: &[Value]) {}

fn eof(_this: Value) -> bool {
    true
}

fn at_end(ruby: &Ruby, _this: Value, _arguments: &[Value]) -> Result<RString, Error> {
    Err(Error::new(eof_error(ruby), "end of file reached"))
}

fn read_nonblock(ruby: &Ruby, this: Value, arguments: &[Value]) -> Result<Option<RString>, Error> {
    let options = arguments.last().and_then(|last| RHash::from_value(*last));
    let raises = options.and_then(|options| options.lookup::<_, Option<bool>>(ruby.to_symbol("exception")).ok()?);
    if raises == Some(false) {
        return Ok(None);
    }
    at_end(ruby, this, arguments).map(Some)
}

fn eof_error(ruby: &Ruby) -> ExceptionClass {
    ruby.exception_eof_error()
}

fn wrong_number(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_arg_error(), "wrong number of arguments (expected 1)")
}
