//! Sockets that are given away after the head of a response: to `rack.hijack` in the header (Rack SPEC, partial
//! hijack), or, if the response switches protocols (101), to a body that responds to `call`.

use super::body::unless_gone;
use super::turn::wait_for_client;
use super::Response;
use crate::objects::{call, responds};
use crate::rack::hijack;
use crate::rack::stop::Stop;
use crate::strings::ids;
use rb_sys::{Qnil, VALUE};

/// Ends the head of a response with status 101 and gives the socket to what speaks the other protocol. Inside
/// `protect`.
pub(super) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    let Some(speaker) = speaker(response) else {
        return Err(Stop::Type(
            c"a response with status 101 must have rack.hijack in its header, or a body that responds to call only",
        ));
    };
    if !response.with(|exchange| exchange.end_head_for_switch()) {
        return Err(Stop::Type(c"a response with status 101 must have the field upgrade"));
    }
    give_away(response, speaker)
}

/// What the application has given to be called with the socket.
fn speaker(response: &Response<'_, '_>) -> Option<VALUE> {
    let (hijacker, body) = (response.hijacker.get(), response.body.get());
    if hijacker != Qnil as VALUE {
        return Some(hijacker);
    }
    let is_called = responds(response.ruby, body, ids().call) && !responds(response.ruby, body, ids().each);
    is_called.then_some(body)
}

/// Calls `callable` with the socket, once the head is sent.
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
    call(response.ruby, callable, ids().call, &[io]);
    Ok(())
}
