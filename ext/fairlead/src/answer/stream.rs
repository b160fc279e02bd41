//! The stream that a streaming body is called with (Rack SPEC, "Streaming Body"): `read`, `write`, `<<`, `flush`, `close`,
//! `close_read`, `close_write`, `closed?`. The body ends when it is closed, which may be long after the call has returned.
//!
//! During the call the Ruby object holds the address of the answer on the caller's stack. The address is taken away before
//! the call returns; a stream that is not closed by then holds the client instead. Any thread may write: the answer is
//! touched with the GVL only, and looked up again after each wait, in which it may have gone.

use super::Answer;
use crate::gvl::{check_interrupts, wait_without_gvl};
use crate::strings::{ids, keep};
use fairlead_engine::{Client, Exchange, Gone, Offered};
use magnus::rb_sys::AsRawValue;
use magnus::{function, method, prelude::*, Error, RModule, RString, Ruby, Value};
use rb_sys::VALUE;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// `Fairlead::Native::Stream`.
#[magnus::wrap(class = "Fairlead::Native::Stream", free_immediately, size)]
#[derive(Default)]
struct Stream {
    /// Address of an `Answer`, 0 when the call has ended or the stream was closed.
    answer: Cell<usize>,
    /// What takes the rest of the body once the call has ended.
    client: RefCell<Option<Arc<Client>>>,
    /// Whether a thread is in the middle of a String for the answer.
    in_use: Cell<bool>,
    /// Whether the call has ended, and the client is to take over.
    leaves: Cell<bool>,
    /// The process that the client belongs to.
    process: Cell<u32>,
}

// SAFETY: used under the GVL only, and so is what the address points to.
unsafe impl Send for Stream {}

static CLASS: AtomicUsize = AtomicUsize::new(0);
static CLOSED_ERROR: AtomicUsize = AtomicUsize::new(0);

/// Defines the class.
pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Stream", ruby.class_object())?;
    class.define_singleton_method("new", function!(Stream::default, 0))?;
    class.define_method("write", method!(Stream::write, -1))?;
    class.define_method("<<", method!(append, 1))?;
    class.define_method("flush", method!(flush, 0))?;
    class.define_method("read", method!(read, -1))?;
    class.define_method("close", method!(Stream::close, 0))?;
    class.define_method("close_write", method!(Stream::close, 0))?;
    class.define_method("close_read", method!(Stream::close_read, 0))?;
    class.define_method("closed?", method!(Stream::is_closed, 0))?;
    keep(class.as_raw());
    CLASS.store(class.as_raw() as usize, Relaxed);
    let closed: Value = ruby
        .class_object()
        .const_get::<_, RModule>("Fairlead")?
        .const_get("ClosedError")?;
    keep(closed.as_raw());
    CLOSED_ERROR.store(closed.as_raw() as usize, Relaxed);
    Ok(())
}

/// Calls a streaming body. Inside `protect`; the head has been written.
pub(super) fn run(answer: &mut Answer<'_, '_>, body: VALUE) {
    if !answer.exchange.wants_body() {
        return;
    }
    answer.exchange.flush();
    let address = answer as *mut Answer<'_, '_> as usize;
    // SAFETY: the class is a constant; the new object is on the stack.
    let stream = unsafe { rb_sys::rb_funcallv(CLASS.load(Relaxed) as VALUE, ids().new, 0, std::ptr::null()) };
    attach(stream, address);
    // The address has to go whether the body returns or raises.
    let ended = crate::gvl::protect(|| {
        // SAFETY: live objects; exceptions are stopped.
        unsafe { rb_sys::rb_funcallv(body, ids().call, 1, &stream) };
    });
    let ended = ended.and_then(|()| crate::gvl::protect(|| go_on(answer, stream)));
    attach(stream, 0);
    if let Err(jump) = ended {
        // SAFETY: inside the outer `protect`, and nothing here has a destructor.
        unsafe { rb_sys::rb_jump_tag(jump.0) };
    }
}

/// The application has returned. A stream that is not closed goes on without this thread, as soon as the kernel has what was
/// written so far and no thread is in the middle of a String. May raise what other threads want of this one.
fn go_on(answer: &mut Answer<'_, '_>, stream: VALUE) {
    let Some(stream) = of(stream) else { return };
    stream.leaves.set(true);
    while stream.answer.get() != 0 {
        if answer.exchange.is_flushed() && !stream.in_use.get() {
            if let Some(client) = answer.exchange.detach() {
                stream.process.set(std::process::id());
                *stream.client.borrow_mut() = Some(client);
            }
            return;
        }
        if !wait_for_client(answer.exchange) {
            return;
        }
    }
}

fn attach(stream: VALUE, address: usize) {
    if let Some(stream) = of(stream) {
        stream.answer.set(address);
    }
}

fn of<'a>(stream: VALUE) -> Option<&'a Stream> {
    use magnus::{rb_sys::FromRawValue, TryConvert};
    // SAFETY: a live object on the caller's stack.
    let value = unsafe { Value::from_raw(stream) };
    <&Stream>::try_convert(value).ok()
}

/// A stream that nobody can close any more is closed; but not by a process that was forked and has only inherited it.
impl Drop for Stream {
    fn drop(&mut self) {
        if self.process.get() == std::process::id() {
            self.close();
        }
    }
}

impl Stream {
    /// Writes each argument; returns the number of bytes. Raises when the stream is closed or the client is gone.
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
        loop {
            let client = self.client.borrow().clone();
            if let Some(client) = client {
                return offer(ruby, client, string);
            }
            if !self.leaves.get() {
                break;
            }
            if self.answer.get() == 0 {
                return Err(closed(ruby, "the stream is closed"));
            }
            wait_a_moment()?;
        }
        if self.in_use.replace(true) {
            return Err(closed(ruby, "another thread is writing to the stream"));
        }
        let written = self.write_to_answer(ruby, string);
        self.in_use.set(false);
        written
    }

    fn write_to_answer(&self, ruby: &Ruby, string: RString) -> Result<(), Error> {
        let mut done = 0;
        loop {
            // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used. They are looked up again after
            // each wait, in which another thread may have changed the String.
            let rest = unsafe { crate::strings::bytes(string.as_raw()) };
            let rest = rest.get(done..).unwrap_or_default();
            let wait = self.with_answer(ruby, |answer| {
                let taken = answer.exchange.write(rest)?;
                done += taken;
                if taken < rest.len() {
                    return Ok(Some(answer.exchange.wait()));
                }
                answer.exchange.flush().then_some(None).ok_or(Gone)
            })?;
            let Some(mut wait) = wait else { return Ok(()) };
            wait_without_gvl(&mut || wait.run());
            check_interrupts()?;
            self.with_answer(ruby, |answer| answer.exchange.waited(wait))?;
        }
    }

    /// Does something with the answer while it is there. `code` must not give up the GVL.
    fn with_answer<T>(
        &self,
        ruby: &Ruby,
        code: impl FnOnce(&mut Answer<'_, '_>) -> Result<T, Gone>,
    ) -> Result<T, Error> {
        let address = self.answer.get();
        if address == 0 {
            return Err(closed(ruby, "the stream is closed"));
        }
        // SAFETY: the address is set only while `run` is on the stack of the thread that owns the answer. That thread uses
        // it with the GVL only, which is held here until `code` is done.
        let answer = unsafe { &mut *(address as *mut Answer<'_, '_>) };
        code(answer).map_err(|_| closed(ruby, "the client is gone"))
    }

    fn close(&self) {
        self.answer.set(0);
        if let Some(client) = &*self.client.borrow() {
            client.close(None, "");
        }
    }

    fn close_read(&self) {}

    fn is_closed(&self) -> bool {
        let client = self.client.borrow();
        self.answer.get() == 0 && !client.as_ref().is_some_and(|client| client.is_open())
    }
}

/// Gives the client a piece of the body, and waits without the GVL while it has not taken those before.
fn offer(ruby: &Ruby, client: Arc<Client>, string: RString) -> Result<(), Error> {
    loop {
        // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
        match client.offer(unsafe { crate::strings::bytes(string.as_raw()) }) {
            Offered::Taken => return Ok(()),
            Offered::Gone => return Err(closed(ruby, "the client is gone")),
            Offered::Full => wait_for_room(&client)?,
        }
    }
}

fn wait_for_room(client: &Client) -> Result<(), Error> {
    wait_without_gvl(&mut || client.wait_for_room());
    check_interrupts()
}

/// Lets other threads get on.
fn wait_a_moment() -> Result<(), Error> {
    let moment = rb_sys::timeval {
        tv_sec: 0,
        tv_usec: 5_000,
    };
    // SAFETY: the GVL is held; what is raised is stopped here and goes on as magnus' error.
    magnus::rb_sys::protect(|| unsafe {
        rb_sys::rb_thread_wait_for(moment);
        rb_sys::Qnil as VALUE
    })
    .map(|_| ())
}

fn append(
    ruby: &Ruby,
    this: magnus::typed_data::Obj<Stream>,
    part: Value,
) -> Result<magnus::typed_data::Obj<Stream>, Error> {
    Stream::write(ruby, &this, &[part])?;
    Ok(this)
}

/// Everything is flushed when it is written.
fn flush(this: magnus::typed_data::Obj<Stream>) -> magnus::typed_data::Obj<Stream> {
    this
}

/// The request body was read before the app was called and is in `rack.input`; here is only its end.
fn read(ruby: &Ruby, _this: &Stream, arguments: &[Value]) -> Result<Option<RString>, Error> {
    let wants_all = arguments.first().is_none_or(|length| length.is_nil());
    Ok(wants_all.then(|| ruby.str_new("")))
}

fn closed(ruby: &Ruby, message: &'static str) -> Error {
    use magnus::{rb_sys::FromRawValue, ExceptionClass, TryConvert};
    // SAFETY: a class that is a constant.
    let class = unsafe { Value::from_raw(CLOSED_ERROR.load(Relaxed) as VALUE) };
    let class = ExceptionClass::try_convert(class).unwrap_or_else(|_| ruby.exception_io_error());
    Error::new(class, message)
}

/// Raises Fairlead::ClosedError: ends an `each` whose client is gone. Only inside `protect`.
pub(super) fn raise_closed() -> ! {
    // SAFETY: the class is a constant; the format has no directives; nothing on the stack has a destructor.
    unsafe { rb_sys::rb_raise(CLOSED_ERROR.load(Relaxed) as VALUE, c"the client is gone".as_ptr()) }
}

/// Whether an exception only says that the client is gone.
pub(crate) fn is_closed_error(error: VALUE) -> bool {
    super::is_a(error, CLOSED_ERROR.load(Relaxed) as VALUE)
}

/// Waits without the GVL until the client takes more; false when it is gone. May raise what other threads want of this one.
pub(super) fn wait_for_client(exchange: &mut Exchange<'_>) -> bool {
    let mut wait = exchange.wait();
    wait_without_gvl(&mut || wait.run());
    let is_there = exchange.waited(wait).is_ok();
    // SAFETY: the GVL is held, and nothing here has a destructor any more.
    unsafe { rb_sys::rb_thread_check_ints() };
    is_there
}
