//! Writes the response of an application as bytes (Rack SPEC, "The Response"): status, header fields, any kind of body.

mod body;
mod compressed;
mod fields;
mod io_methods;
mod kept;
mod stream;
mod switch;
mod turn;

pub(crate) use body::{close, end};
pub(crate) use fields::{set_lists, write as write_fields, write_hints};

use super::stop::Stop;
use crate::objects::call;
use crate::protect::{protect, Jump};
use crate::realtime::{accept_upgrade, UpgradeOffer};
use crate::strings::ids;
use fairlead_engine::Exchange;
use magnus::Ruby;
use rb_sys::{rb_check_array_type, Qnil, FIXNUM_P, RARRAY_LEN, VALUE};
use std::cell::{Cell, RefCell};

pub(super) use stream::init;

/// The response to one request, on the stack of the thread that runs it, where the collector sees the values. Other
/// threads access it through a [`super::ResponseRef`], so it is never borrowed mutably.
#[repr(align(64))]
pub(crate) struct Response<'a, 'e> {
    /// Proves that the thread which uses this has the GVL.
    pub(crate) ruby: &'a Ruby,
    /// Borrowed for moments in which no Ruby runs.
    exchange: RefCell<&'a mut Exchange<'e>>,
    /// The thread that runs the request.
    thread: VALUE,
    pub(crate) env: Cell<VALUE>,
    pub(crate) status: Cell<VALUE>,
    pub(crate) headers: Cell<VALUE>,
    /// The body, which must be closed in the end; nil when there is none, or when it is closed.
    pub(crate) body: Cell<VALUE>,
    /// The upgrade that the application can accept, if there is one.
    pub(crate) offer: Cell<Option<UpgradeOffer>>,
    /// True once the application has returned.
    pub(crate) has_returned: Cell<bool>,
    /// The socket that was given to the application, and the callable of `rack.hijack` in the header; nil if there is
    /// none.
    pub(crate) hijacked_io: Cell<VALUE>,
    pub(crate) hijacker: Cell<VALUE>,
    /// The protocol that `rack.protocol` of the header accepts; nil if there is none.
    pub(crate) protocol: Cell<VALUE>,
    /// The socket object in the env, if the options ask for it; nil otherwise.
    pub(crate) shown_socket: Cell<VALUE>,
    /// True once the callable was called with the socket.
    pub(crate) is_given_away: Cell<bool>,
    /// The root of all references; nil if there is none.
    pub(super) root: Cell<VALUE>,
    /// The thread that is writing a String, or nil; then, if the next turn is the last one.
    writer: Cell<VALUE>,
    ends: Cell<bool>,
}

impl Response<'_, '_> {
    /// Calls `code` with a response. Its references end when `code` returns. Never call this where Ruby could jump over it.
    pub(crate) fn on<T>(ruby: &Ruby, exchange: &mut Exchange<'_>, code: impl FnOnce(&Response<'_, '_>) -> T) -> T {
        let nil = || Cell::new(Qnil as VALUE);
        // The response is never moved: the references have its address.
        code(&Response {
            ruby,
            exchange: RefCell::new(exchange),
            // SAFETY: the GVL is held.
            thread: unsafe { rb_sys::rb_thread_current() },
            env: nil(),
            status: nil(),
            headers: nil(),
            body: nil(),
            offer: Cell::new(None),
            has_returned: Cell::new(false),
            hijacked_io: nil(),
            hijacker: nil(),
            protocol: nil(),
            shown_socket: nil(),
            is_given_away: Cell::new(false),
            root: nil(),
            writer: nil(),
            ends: Cell::new(false),
        })
    }

    /// Gives `code` the exchange. `code` must keep the GVL and run no code of the application.
    pub(crate) fn with<T>(&self, code: impl FnOnce(&mut Exchange<'_>) -> T) -> T {
        code(&mut self.exchange.borrow_mut())
    }

    /// Does the same for `code` that calls Ruby, though not the application: an exception is stopped before the borrow
    /// ends.
    pub(crate) fn with_ruby(&self, mut code: impl FnMut(&mut Exchange<'_>)) -> Result<(), Jump> {
        let mut exchange = self.exchange.borrow_mut();
        protect(self.ruby, || code(&mut exchange))
    }

    /// Returns true if `thread` runs the request.
    pub(super) fn is_of(&self, thread: VALUE) -> bool {
        self.thread == thread
    }

    /// Writes the response that the application returned. Inside `protect`.
    pub(crate) fn write(&self, triple: VALUE) -> Result<(), Stop> {
        self.has_returned.set(true);
        if self.with(|exchange| exchange.is_hijacked()) {
            self.keep_body(triple);
            return Ok(());
        }
        // SAFETY: the GVL is held, exceptions are stopped by `protect`, and nothing here has a destructor.
        unsafe {
            let array = rb_check_array_type(triple);
            if array == Qnil as VALUE || RARRAY_LEN(array) < 3 {
                return Err(Stop::Type(c"the application must return [status, headers, body]"));
            }
            // The body first: from here on it will be closed.
            self.body.set(rb_sys::rb_ary_entry(array, 2));
            self.status.set(rb_sys::rb_ary_entry(array, 0));
            self.headers.set(rb_sys::rb_ary_entry(array, 1));
        }
        let number = number(self.ruby, self.status.get());
        if accept_upgrade(self, number)? {
            return Ok(());
        }
        let status = status(number, self.with(|exchange| exchange.request().offers_upgrade()))?;
        self.with(|exchange| exchange.start(status));
        fields::write(self)?;
        if switch::is_wanted(self, status)? {
            return switch::write(self);
        }
        body::write(self)
    }

    /// If the application has taken the socket, its response is ignored, but its body is closed.
    fn keep_body(&self, triple: VALUE) {
        // SAFETY: as in `write`; for an object that is no Array the result is nil.
        unsafe {
            let array = rb_check_array_type(triple);
            if array != Qnil as VALUE {
                self.body.set(rb_sys::rb_ary_entry(array, 2));
            }
        }
    }
}

/// The status as an Integer.
fn number(ruby: &Ruby, value: VALUE) -> i64 {
    // SAFETY: as above; `to_i` may raise, and a result that is no Integer raises in rb_num2long.
    unsafe {
        let integer = if FIXNUM_P(value) {
            value
        } else {
            call(ruby, value, ids().to_i, &[])
        };
        rb_sys::rb_num2long(integer)
    }
}

/// Switching protocols (RFC 9110 §15.2.2).
const SWITCH: u16 = 101;

/// `may_switch`: the client has offered another protocol.
fn status(number: i64, may_switch: bool) -> Result<u16, Stop> {
    match u16::try_from(number) {
        Ok(status @ 200..=999) => Ok(status),
        Ok(SWITCH) if may_switch => Ok(SWITCH),
        _ => Err(Stop::Type(
            c"the application returned an invalid status; return one between 200 and 999",
        )),
    }
}
