//! The stream that a streaming body is called with (Rack SPEC, "Streaming Body"): `read`, `write`, `<<`, `flush`,
//! `close`, `close_read`, `close_write`, `closed?`, and more methods of an IO (`io_methods.rs`). The body ends when the
//! stream is closed, which may be long after the call has returned.
//!
//! During the call the Ruby object has a reference of the response; if it is not closed when the call returns, it has the
//! client afterwards. Any thread may write.

use super::body::put;
use super::kept::Kept;
use super::turn::{end_loan, wait_for_client, Turn};
use super::Response;
use crate::classes::{CLOSED_ERROR, KEPT_STREAMS, RESPONSE_REF, STREAM};
use crate::gvl::wait_without_gvl;
use crate::objects::call;
use crate::protect::{check_interrupts, protect};
use crate::rack::response_ref::{ResponseRef, ResponseRefGuard};
use crate::rack::stop::Stop;
use crate::strings::ids;
use fairlead_engine::{Client, Offered};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{
    function, gc, method, prelude::*, typed_data::Obj, DataTypeFunctions, Error, RString, Ruby, TypedData, Value,
};
use rb_sys::{Qnil, VALUE};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// `Fairlead::Native::Stream`.
#[derive(TypedData)]
#[magnus(class = "Fairlead::Native::Stream", free_immediately, mark, size)]
struct Stream {
    /// Leads to the response during the call; nil when the stream was closed.
    reference: Cell<VALUE>,
    kept: Rc<Kept>,
}

// SAFETY: used under the GVL only.
unsafe impl Send for Stream {}

impl DataTypeFunctions for Stream {
    fn mark(&self, _: &gc::Marker) {
        // SAFETY: called by the collector, with nil or an object that was alive at the last collection.
        unsafe { rb_sys::rb_gc_mark(self.reference.get()) };
    }
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            reference: Cell::new(Qnil as VALUE),
            kept: Rc::default(),
        }
    }
}

/// Defines the methods of `Fairlead::Native::Stream`.
pub(in crate::rack) fn init(ruby: &Ruby) -> Result<(), Error> {
    let class = ruby.get_inner(&STREAM);
    crate::classes::know::<Stream>(ruby);
    class.define_singleton_method("new", function!(Stream::default, 0))?;
    super::kept::init(class)?;
    class.define_method("write", method!(Stream::write, -1))?;
    class.define_method("<<", method!(append, 1))?;
    class.define_method("flush", method!(flush, 0))?;
    class.define_method("read", method!(read, -1))?;
    class.define_method("close", method!(Stream::close, 0))?;
    class.define_method("close_write", method!(Stream::close, 0))?;
    class.define_method("close_read", method!(Stream::close_read, 0))?;
    class.define_method("closed?", method!(Stream::is_closed, 0))?;
    super::io_methods::init(class)
}

/// Calls a streaming body. Inside `protect`; the head has been written.
pub(super) fn run(response: &Response<'_, '_>, body: VALUE) -> Result<(), Stop> {
    if !response.with(|exchange| exchange.wants_body()) {
        return Ok(());
    }
    response.with(|exchange| exchange.flush());
    let kept = response.ruby.get_inner(&KEPT_STREAMS).as_raw();
    call(response.ruby, kept, ids().prepare, &[]);
    let class = response.ruby.get_inner(&STREAM).as_raw();
    let stream = call(response.ruby, class, ids().new, &[]);
    let reference = response.reference(&RESPONSE_REF);
    let Some(data) = of(response.ruby, stream) else {
        return Ok(());
    };
    data.reference.set(reference.object());
    let guard = ResponseRefGuard(reference);
    let ended = protect(response.ruby, || {
        call(response.ruby, body, ids().call, &[stream]);
    });
    let ended = ended.map_err(Stop::Jump).and_then(|()| go_on(response, data));
    drop(guard);
    let ended = ended.and_then(|()| keep(response, data));
    match ended {
        Err(Stop::Gone) => Ok(()),
        ended => ended,
    }
}

/// Tells Ruby of a stream that continues without this thread. This must not come earlier: other threads would write
/// meanwhile, and this thread would have to wait for the client.
fn keep(response: &Response<'_, '_>, stream: &Stream) -> Result<(), Stop> {
    if stream.kept.client().is_none() {
        return Ok(());
    }
    let kept = response.ruby.get_inner(&KEPT_STREAMS).as_raw();
    let watch = protect(response.ruby, || {
        call(response.ruby, kept, ids().watch, &[]);
    });
    watch.map_err(Stop::Jump)
}

/// After the call: a stream that is not closed continues without this thread, as soon as no thread is writing a String.
/// The bytes written so far are sent at the speed of the client.
fn go_on(response: &Response<'_, '_>, stream: &Stream) -> Result<(), Stop> {
    let _turn = Turn::take_last(response)?;
    end_loan(response)?;
    while !stream.is_over(response.ruby) {
        if response.with(|exchange| exchange.is_detachable()) {
            if let Some(client) = response.with(|exchange| exchange.detach()) {
                stream.kept.begin(client);
            }
            return Ok(());
        }
        wait_for_client(response)?;
    }
    Ok(())
}

fn of<'a>(_: &Ruby, stream: VALUE) -> Option<&'a Stream> {
    use magnus::TryConvert;
    // SAFETY: a live object on the caller's stack.
    let value = unsafe { Value::from_raw(stream) };
    <&Stream>::try_convert(value).ok()
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.kept.abandon();
    }
}

impl Stream {
    /// Writes each argument; returns the number of bytes. Raises if the stream is closed or the client has closed the
    /// connection.
    fn write(ruby: &Ruby, this: &Stream, parts: &[Value]) -> Result<usize, Error> {
        let mut total = 0;
        for part in parts {
            let string = part.to_r_string()?;
            total += string.len();
            this.write_string(ruby, string)?;
        }
        Ok(total)
    }

    fn write_string(&self, ruby: &Ruby, string: RString) -> Result<(), Error> {
        self.kept.is_written_by(ruby.thread_current());
        if let Some(reference) = self.reference(ruby) {
            match write_to_response(reference, string.as_raw()) {
                // The response has ended, perhaps while this thread waited for its turn.
                Err(Stop::Finished) => {}
                written => return written.map_err(|stop| stop.into_error(ruby)),
            }
        }
        match self.kept.client() {
            Some(client) => offer(ruby, &client, string).map_err(|stop| stop.into_error(ruby)),
            None => Err(closed(ruby)),
        }
    }

    fn reference<'r>(&self, ruby: &'r Ruby) -> Option<ResponseRef<'r>> {
        let reference = self.reference.get();
        (reference != Qnil as VALUE).then(|| ResponseRef::of(ruby, reference))
    }

    /// Returns true if the stream no longer leads to a response.
    fn is_over(&self, ruby: &Ruby) -> bool {
        self.reference(ruby).is_none_or(ResponseRef::is_over)
    }

    fn close(&self) {
        self.reference.set(Qnil as VALUE);
        if let Some(client) = self.kept.client() {
            client.close(None, "");
        }
    }

    fn close_read(&self) {}

    fn is_closed(ruby: &Ruby, this: &Stream) -> bool {
        this.is_over(ruby) && !this.kept.client().is_some_and(|client| client.is_open())
    }
}

fn write_to_response(reference: ResponseRef<'_>, string: VALUE) -> Result<(), Stop> {
    let _turn = Turn::take(&reference)?;
    put(&reference, string)?;
    super::turn::flush(&reference)
}

/// Gives the client a piece of the body. Waits without the GVL while too many earlier pieces are unsent.
fn offer(ruby: &Ruby, client: &Arc<Client>, string: RString) -> Result<(), Stop> {
    loop {
        // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
        match client.offer(unsafe { crate::strings::bytes(ruby, string.as_raw()) }) {
            Offered::Taken => return Ok(()),
            Offered::Gone => return Err(Stop::Gone),
            Offered::Full => {
                wait_without_gvl(ruby, || client.wait_for_room());
                check_interrupts(ruby).map_err(Stop::Jump)?;
            }
        }
    }
}

fn append(ruby: &Ruby, this: Obj<Stream>, part: Value) -> Result<Obj<Stream>, Error> {
    Stream::write(ruby, &this, &[part])?;
    Ok(this)
}

/// Does nothing: written bytes are sent at once.
fn flush(this: Obj<Stream>) -> Obj<Stream> {
    this
}

/// The end of the input: the request body is in `rack.input`.
fn read(ruby: &Ruby, _this: &Stream, arguments: &[Value]) -> Result<Option<RString>, Error> {
    let wants_all = arguments.first().is_none_or(|length| length.is_nil());
    Ok(wants_all.then(|| ruby.str_new("")))
}

fn closed(ruby: &Ruby) -> Error {
    Error::new(ruby.get_inner(&CLOSED_ERROR), "the stream is closed")
}
