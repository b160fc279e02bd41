//! Sockets that are given away after the head of a response: to `rack.hijack` in the header (Rack SPEC, partial
//! hijack), or, if the response switches protocols (101, or `rack.protocol` in the header), to a body that responds to `call`.

use super::body::unless_gone;
use super::turn::wait_for_client;
use super::{Response, SWITCH};
use crate::objects::{call, responds};
use crate::rack::hijack;
use crate::rack::stop::Stop;
use crate::strings::{bytes, ids};
use rb_sys::{ruby_value_type, Qnil, RB_TYPE_P, VALUE};

/// Whether the response switches to another protocol: by its status, or by the success of one that accepts it with
/// `rack.protocol` (Rack SPEC 3.1). Runs no Ruby.
pub(super) fn is_wanted(response: &Response<'_, '_>, status: u16) -> Result<bool, Stop> {
    let protocol = response.protocol.get();
    if protocol == Qnil as VALUE || !(status == SWITCH || (200..300).contains(&status)) {
        return Ok(status == SWITCH);
    }
    // SAFETY: a live object on the stack; no Ruby runs while its bytes are used.
    let is_offered = unsafe {
        RB_TYPE_P(protocol, ruby_value_type::RUBY_T_STRING)
            && response.with(|exchange| exchange.accept_protocol(bytes(response.ruby, protocol)))
    };
    match is_offered {
        true => Ok(true),
        false => Err(Stop::Type(
            c"rack.protocol in the header must be one of those that the client offers, see rack.protocol in the env",
        )),
    }
}

/// Ends the head of a response with status 101 and gives the socket to what speaks the other protocol. Inside
/// `protect`.
pub(super) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    let Some(speaker) = speaker(response) else {
        return Err(Stop::Type(
            c"a response that switches protocols must have rack.hijack in its header, or a body that responds to call only",
        ));
    };
    may_give_away(response)?;
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

/// Whether there is a socket to give away. Asked before the head, so that the client can be told.
pub(super) fn may_give_away(response: &Response<'_, '_>) -> Result<(), Stop> {
    match response.with(|exchange| exchange.can_hijack()) {
        true => Ok(()),
        false => Err(Stop::Type(
            c"a response over HTTP/2 shares its socket with others: rack.hijack is not possible, see rack.hijack? in the env",
        )),
    }
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
