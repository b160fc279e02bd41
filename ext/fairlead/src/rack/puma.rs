//! Env entries of Puma for libraries that ask for them; only with the option `puma_env`.

use super::hijack::Taken;
use super::Response;
use crate::objects::set;
use crate::strings::strings;
use rb_sys::{rb_uint2inum, Qnil};

/// Sets `puma.request_body_wait`, in milliseconds, and `puma.socket`: a socket object for another descriptor, which
/// [`close`] closes. Inside `protect`.
pub(super) fn offer(response: &Response<'_, '_>) {
    let (ruby, env) = (response.ruby, response.env.get());
    let wait = response.with(|exchange| exchange.request().body_wait().as_millis() as usize);
    // SAFETY: the GVL is held.
    set(ruby, env, strings().puma_request_body_wait, unsafe {
        rb_uint2inum(wait)
    });
    if let Some(taken) = response.with(|exchange| exchange.socket()).map(Taken::new) {
        let io = taken.object(ruby);
        response.shown_socket.set(io);
        set(ruby, env, strings().puma_socket, io);
    }
}

/// Closes the object of `puma.socket`, if there is one. Inside `protect`.
pub(super) fn close(response: &Response<'_, '_>) {
    let io = response.shown_socket.replace(Qnil as rb_sys::VALUE);
    if io != Qnil as rb_sys::VALUE {
        // SAFETY: a live IO; the GVL is held, and the caller stops exceptions.
        unsafe { rb_sys::rb_io_close(io) };
    }
}
