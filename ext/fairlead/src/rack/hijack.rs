//! `rack.hijack` (Rack SPEC, "Hijacking"): the application takes the socket, either instead of returning a response or
//! after the head of one. Each env has its own callable, the root of the response, which works until the application
//! has returned.

use super::{Response, ResponseRef, Stop};
use crate::classes::{HIJACK, TCP_SOCKET, UNIX_SOCKET};
use crate::objects;
use crate::protect::protect;
use crate::strings::{ids, strings};
use fairlead_engine::Exchange;
use fairlead_system::descriptors::replace;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{method, prelude::*, Error, Ruby, Value};
use rb_sys::{rb_int2inum, Qnil, VALUE};
use rustix::net::{getsockname, AddressFamily};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// Defines the methods of `Fairlead::Native::Hijack`. The callables are the roots of their responses: all references lead to
/// them.
pub(super) fn init(ruby: &Ruby) -> Result<(), Error> {
    ruby.get_inner(&HIJACK).define_method("call", method!(call, 0))
}

/// `rack.hijack`: returns the socket. Every call returns the same object.
fn call(ruby: &Ruby, this: Value) -> Result<Value, Error> {
    let root = ResponseRef::of(ruby, this.as_raw());
    let socket = root.response(socket_of).and_then(|socket| socket);
    let io = match socket.map_err(|stop| stop.into_error(ruby))? {
        Socket::Object(io) => io,
        Socket::Taken(taken) => {
            let taken = taken.map_err(|error| Error::new(ruby.exception_io_error(), error.to_string()))?;
            let io = magnus::rb_sys::protect(|| taken.object(ruby))?;
            let env = root.response(|response| {
                response.hijacked_io.set(io);
                response.env.get()
            });
            // If the response is over by now, the caller still gets the socket.
            if let Ok(env) = env {
                magnus::rb_sys::protect(|| {
                    objects::set(ruby, env, strings().rack_hijack_io, io);
                    io
                })?;
            }
            io
        }
    };
    // SAFETY: a live object on the stack of the thread.
    Ok(unsafe { Value::from_raw(io) })
}

enum Socket {
    /// An earlier call has made the object.
    Object(VALUE),
    /// The object is not made yet.
    Taken(std::io::Result<Taken>),
}

fn socket_of(response: &Response<'_, '_>) -> Result<Socket, Stop> {
    if response.has_returned.get() {
        return Err(Stop::Finished);
    }
    let io = response.hijacked_io.get();
    if io != Qnil as VALUE {
        return Ok(Socket::Object(io));
    }
    if response.with(|exchange| exchange.is_hijacked()) {
        // Another thread is making it right now.
        return Err(Stop::Busy);
    }
    Ok(Socket::Taken(response.with(take)))
}

/// A socket that belongs to the application. It is a number without a destructor, because Ruby may jump over it.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    fd: RawFd,
    is_unix: bool,
}

/// Takes the socket from its connection.
pub(crate) fn take(exchange: &mut Exchange<'_>) -> std::io::Result<Taken> {
    exchange.hijack().map(Taken::new)
}

impl Taken {
    pub(super) fn new(socket: OwnedFd) -> Taken {
        let is_unix = getsockname(&socket).is_ok_and(|address| address.address_family() == AddressFamily::UNIX);
        let fd = socket.into_raw_fd();
        Taken { fd, is_unix }
    }

    /// The Ruby object, which closes the socket. Inside `protect`; if Ruby jumps, the socket is closed.
    pub(crate) fn object(self, ruby: &Ruby) -> VALUE {
        let class = if self.is_unix { &UNIX_SOCKET } else { &TCP_SOCKET };
        let mut io = Qnil as VALUE;
        let made = protect(ruby, || {
            // SAFETY: the GVL is held.
            let number = unsafe { rb_int2inum(self.fd as isize) };
            io = objects::call(ruby, ruby.get_inner(class).as_raw(), ids().for_fd, &[number]);
        });
        if let Err(jump) = made {
            self.give_up();
            Stop::Jump(jump).raise(ruby);
        }
        io
    }

    /// Shuts the socket down, but keeps its descriptor open: a Ruby object may already have the number and close it
    /// later, when the number might belong to another file.
    fn give_up(self) {
        // SAFETY: an open descriptor, ours or of an object that was just made; it is not closed here.
        let mut socket = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(self.fd) });
        if let Ok(nothing) = File::open("/dev/null") {
            let _ = replace(&nothing, &mut socket);
        }
    }
}
