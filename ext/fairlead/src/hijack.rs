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
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The class of the callables, and those of the sockets.
static CLASS: AtomicUsize = AtomicUsize::new(0);
static TCP_SOCKET: AtomicUsize = AtomicUsize::new(0);
static UNIX_SOCKET: AtomicUsize = AtomicUsize::new(0);

/// The request that a thread runs.
#[derive(Clone, Copy)]
struct Current {
    env: VALUE,
    /// Address of its `Answer`; 0 when there is none.
    answer: usize,
}

const NONE: Current = Current { env: 0, answer: 0 };

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
        answer.callable = callable;
        CURRENT.set(Current {
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
    // SAFETY: `begin` has set the address on this thread, and the answer lives until `end`. The application runs, so the
    // answer is used by nobody else.
    let answer = unsafe { (current.answer as *mut Answer<'_, '_>).as_mut() };
    let Some(answer) = answer.filter(|answer| answer.callable == this.as_raw()) else {
        let message =
            "rack.hijack works only in the thread that runs the request, and until the application has returned";
        return Err(Error::new(ruby.exception_runtime_error(), message));
    };
    if answer.hijacked_io == Qnil as VALUE {
        let socket = take(answer.exchange).map_err(|error| Error::new(ruby.exception_io_error(), error.to_string()))?;
        answer.hijacked_io = magnus::rb_sys::protect(|| socket.object())?;
        // SAFETY: live objects, the GVL is held.
        unsafe { rb_hash_aset(current.env, strings().rack_hijack_io, answer.hijacked_io) };
    }
    // SAFETY: a live object on the stack of the thread.
    Ok(unsafe { Value::from_raw(answer.hijacked_io) })
}

/// A socket that is the application's, and that nobody closes yet.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    fd: RawFd,
    class: VALUE,
}

pub(crate) fn take(exchange: &mut Exchange<'_>) -> std::io::Result<Taken> {
    let socket = exchange.hijack()?;
    let is_unix = matches!(socket_domain(&socket), Ok(AddressFamily::UNIX));
    let class = if is_unix { &UNIX_SOCKET } else { &TCP_SOCKET };
    Ok(Taken {
        fd: socket.into_raw_fd(),
        class: class.load(Relaxed) as VALUE,
    })
}

impl Taken {
    /// The Ruby object that closes it. Inside `protect`.
    pub(crate) fn object(self) -> VALUE {
        // SAFETY: a class that is kept; the descriptor is ours and given to the object.
        unsafe {
            let number = rb_int2inum(self.fd as isize);
            rb_funcallv(self.class, ids().for_fd, 1, &number)
        }
    }
}
