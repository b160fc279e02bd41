//! `rack.hijack` (Rack SPEC, "Hijacking"): the application takes the socket, either instead of answering or after the head
//! of its answer. Each request has a callable of its own, which works for as long as the application is called.

use crate::answer::Answer;
use crate::strings::{ids, keep, strings};
use fairlead_engine::Exchange;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{method, prelude::*, Error, RModule, Ruby, Value};
use rb_sys::{rb_funcallv, rb_hash_aset, rb_int2inum, rb_obj_alloc, Qnil, VALUE};
use rustix::net::{sockopt::socket_domain, AddressFamily};
use std::cell::Cell;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The class of the callables, and those of the sockets.
static CLASS: AtomicUsize = AtomicUsize::new(0);
static TCP_SOCKET: AtomicUsize = AtomicUsize::new(0);
static UNIX_SOCKET: AtomicUsize = AtomicUsize::new(0);

/// The request that a thread runs.
#[derive(Clone, Copy)]
struct Current {
    /// Its callable.
    callable: VALUE,
    env: VALUE,
    /// Address of its `Answer`.
    answer: usize,
}

const NONE: Current = Current {
    callable: 0,
    env: 0,
    answer: 0,
};

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(NONE) };
}

/// Defines the class.
pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Hijack", ruby.class_object())?;
    class.define_method("call", method!(call, 0))?;
    keep(class.as_raw());
    CLASS.store(class.as_raw() as usize, Relaxed);
    Ok(())
}

/// Says which classes sockets have; what comes after the first time is the same.
pub(crate) fn init_sockets(tcp: VALUE, unix: VALUE) {
    if TCP_SOCKET.load(Relaxed) == 0 {
        keep(tcp);
        keep(unix);
        TCP_SOCKET.store(tcp as usize, Relaxed);
        UNIX_SOCKET.store(unix as usize, Relaxed);
    }
}

/// Gives the env of a request its callable. Inside `protect`; [`end`] must follow before the answer goes.
pub(crate) fn begin(env: VALUE, answer: &mut Answer<'_, '_>) {
    // SAFETY: a class that is kept; live objects, the GVL is held.
    unsafe {
        let callable = rb_obj_alloc(CLASS.load(Relaxed) as VALUE);
        rb_hash_aset(env, strings().rack_hijack, callable);
        CURRENT.set(Current {
            callable,
            env,
            answer: answer as *mut Answer<'_, '_> as usize,
        });
    }
}

/// The application has returned.
pub(crate) fn end() {
    CURRENT.set(NONE);
}

/// `rack.hijack`: returns the socket, now and whenever it is called again.
fn call(ruby: &Ruby, this: Value) -> Result<Value, Error> {
    let current = CURRENT.get();
    if current.callable != this.as_raw() {
        let message =
            "rack.hijack works only in the thread that runs the request, and until the application has returned";
        return Err(Error::new(ruby.exception_runtime_error(), message));
    }
    // SAFETY: `begin` has set the address on this thread, and the answer lives until `end`. The application runs, so the
    // answer is used by nobody else.
    let answer = unsafe { &mut *(current.answer as *mut Answer<'_, '_>) };
    if answer.hijacked_io == Qnil as VALUE {
        answer.hijacked_io = socket(answer.exchange).map_err(|error| Error::new(ruby.exception_io_error(), error))?;
        // SAFETY: live objects, the GVL is held.
        unsafe { rb_hash_aset(current.env, strings().rack_hijack_io, answer.hijacked_io) };
    }
    // SAFETY: a live object on the stack of the thread.
    Ok(unsafe { Value::from_raw(answer.hijacked_io) })
}

/// Takes the socket as a Ruby object, which closes it.
pub(crate) fn socket(exchange: &mut Exchange<'_>) -> Result<VALUE, String> {
    let socket = exchange.hijack().map_err(|error| error.to_string())?;
    let is_unix = matches!(socket_domain(&socket), Ok(AddressFamily::UNIX));
    let class = if is_unix { &UNIX_SOCKET } else { &TCP_SOCKET };
    let fd = socket.into_raw_fd();
    let mut io = Qnil as VALUE;
    let made = crate::gvl::protect(|| {
        // SAFETY: a class that is kept; the descriptor is ours and given to the object.
        unsafe {
            let number = rb_int2inum(fd as isize);
            io = rb_funcallv(class.load(Relaxed) as VALUE, ids().for_fd, 1, &number);
        }
    });
    made.map(|()| io).map_err(|_| "cannot make a socket of it".to_string())
}
