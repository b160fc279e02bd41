//! Sockets that are given away behind the head of a response: to `rack.hijack` in the header (Rack SPEC, partial hijack), and
//! where the response switches protocols (101) also to a body that is called with a stream.

use super::body::unless_gone;
use super::turn::wait_for_client;
use super::Response;
use crate::rack::hijack;
use crate::rack::stop::Stop;
use crate::strings::ids;
use rb_sys::{rb_funcallv, rb_respond_to, Qnil, VALUE};

/// Ends the head of a response 101 and gives the socket to whoever speaks the other protocol. Inside `protect`.
pub(super) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    let Some(speaker) = speaker(response) else {
        return Err(Stop::Type(
            c"an answer of status 101 must have rack.hijack in its header, or a body that responds to call only",
        ));
    };
    if !response.with(|exchange| exchange.end_head_for_switch()) {
        return Err(Stop::Type(c"an answer of status 101 must have the field upgrade"));
    }
    give_away(response, speaker)
}

fn speaker(response: &Response<'_, '_>) -> Option<VALUE> {
    let (hijacker, body) = (response.hijacker.get(), response.body.get());
    // SAFETY: a live object, the GVL is held; `respond_to?` of the app may run and raise.
    let responds = |id| unsafe { rb_respond_to(body, id) != 0 };
    if hijacker != Qnil as VALUE {
        return Some(hijacker);
    }
    (responds(ids().call) && !responds(ids().each)).then_some(body)
}

/// Gives the socket to what is called with it, once the head is on its way.
pub(super) fn give_away(response: &Response<'_, '_>, callable: VALUE) -> Result<(), Stop> {
    while !response.with(|exchange| exchange.is_flushed()) {
        if let Err(stop) = wait_for_client(response) {
            return unless_gone(stop);
        }
    }
    let Ok(socket) = response.with(hijack::take) else {
        return Err(Stop::Type(c"the socket cannot be given away"));
    };
    let io = socket.object(response.ruby);
    response.hijacked_io.set(io);
    response.is_given_away.set(true);
    // SAFETY: live objects, the GVL is held, exceptions are stopped by the caller.
    unsafe { rb_funcallv(callable, ids().call, 1, &io) };
    Ok(())
}
