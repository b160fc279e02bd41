//! What an application returns becomes bytes (Rack SPEC, "The Response"): status, header fields, and every kind of body.

mod body;
mod compressed;
pub(crate) mod early_hints;
mod fields;
mod stream;
mod upgrade;

pub(crate) use body::close;
pub(crate) use stream::{init as init_stream, is_closed_error};
pub(crate) use upgrade::Offer;

use crate::strings::ids;
use fairlead_engine::Exchange;
use rb_sys::{
    rb_check_array_type, rb_eTypeError, rb_funcallv, rb_obj_is_kind_of, rb_raise, Qnil, FIXNUM_P, RARRAY_LEN, VALUE,
};

/// What is being answered, on the stack of the thread that runs it; the collector sees the values there.
pub(crate) struct Answer<'a, 'e> {
    pub(crate) exchange: &'a mut Exchange<'e>,
    pub(crate) status: VALUE,
    pub(crate) headers: VALUE,
    /// To be closed in the end, whatever happens; nil when there is none, or when it was closed.
    pub(crate) body: VALUE,
    /// What the application can accept, if anything.
    pub(crate) offer: Option<Offer>,
    /// `rack.hijack` of this request.
    pub(crate) callable: VALUE,
    /// The socket that the application has taken, and what its answer wants the socket to be given to; nil if there is none.
    pub(crate) hijacked_io: VALUE,
    pub(crate) hijacker: VALUE,
}

impl<'a, 'e> Answer<'a, 'e> {
    pub(crate) fn new(exchange: &'a mut Exchange<'e>) -> Answer<'a, 'e> {
        let nil = Qnil as VALUE;
        Answer {
            exchange,
            status: nil,
            headers: nil,
            body: nil,
            offer: None,
            callable: nil,
            hijacked_io: nil,
            hijacker: nil,
        }
    }

    /// Writes the answer that the application returned. Inside `protect`; raises TypeError for what is no answer.
    pub(crate) fn write(&mut self, triple: VALUE) {
        if self.exchange.is_hijacked() {
            return self.keep_body(triple);
        }
        // SAFETY: the GVL is held, exceptions are stopped by `protect`, and nothing here has a destructor.
        unsafe {
            let array = rb_check_array_type(triple);
            if array == Qnil as VALUE || RARRAY_LEN(array) < 3 {
                raise(c"the application must return [status, headers, body]");
            }
            // The body first: once it is here, it is closed.
            self.body = rb_sys::rb_ary_entry(array, 2);
            self.status = rb_sys::rb_ary_entry(array, 0);
            self.headers = rb_sys::rb_ary_entry(array, 1);
        }
        let number = number(self.status);
        if upgrade::accept(self, number) {
            return;
        }
        self.exchange.start(status(number));
        fields::write(self);
        body::write(self);
    }

    /// The answer of an application that has taken the socket counts for nothing, but its body is closed.
    fn keep_body(&mut self, triple: VALUE) {
        // SAFETY: as in `write`; an object that is no Array gives nil.
        unsafe {
            let array = rb_check_array_type(triple);
            if array != Qnil as VALUE {
                self.body = rb_sys::rb_ary_entry(array, 2);
            }
        }
    }
}

fn number(value: VALUE) -> i64 {
    // SAFETY: as above; `to_i` may raise, and a result that is no Integer raises in rb_num2long.
    unsafe {
        let integer = if FIXNUM_P(value) {
            value
        } else {
            rb_funcallv(value, ids().to_i, 0, std::ptr::null())
        };
        rb_sys::rb_num2long(integer)
    }
}

fn status(number: i64) -> u16 {
    match u16::try_from(number) {
        Ok(status @ 200..=999) => status,
        _ => raise(c"the application returned a status that is not between 200 and 999"),
    }
}

/// Raises TypeError. Only inside `protect`, with nothing on the stack that has a destructor.
pub(crate) fn raise(message: &'static std::ffi::CStr) -> ! {
    // SAFETY: as the comment above says; the format has no directives.
    unsafe { rb_raise(rb_eTypeError, message.as_ptr()) }
}

/// Whether `value` is an instance of `class` or of a subclass.
pub(crate) fn is_a(value: VALUE, class: VALUE) -> bool {
    // SAFETY: both are live objects; calls no Ruby code.
    unsafe { rb_obj_is_kind_of(value, class) == rb_sys::Qtrue as VALUE }
}
