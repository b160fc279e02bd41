//! Gives sockets away after the head of a response: to `rack.hijack` in the header (Rack SPEC, partial hijack), or, if
//! the response switches protocols (101, or `rack.protocol` in the header), to a body that responds to `call`.

use super::body::unless_gone;
use super::turn::wait_for_client;
use super::{Response, SWITCH};
use crate::objects::{call, responds};
use crate::rack::hijack;
use crate::rack::stop::Stop;
use crate::strings::{bytes, ids};
use rb_sys::{ruby_value_type, Qnil, RB_TYPE_P, VALUE};
use std::io::ErrorKind;

/// Returns true if the response switches to another protocol: by status 101, or with a successful status and
/// `rack.protocol`, which accepts the protocol (Rack SPEC 3.1). Runs no Ruby.
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
            c"the client does not offer rack.protocol of the header; use a protocol of rack.protocol in the env",
        )),
    }
}

/// Ends the head of a response with status 101 and gives the socket to the callable that speaks the other protocol.
/// Inside `protect`.
pub(super) fn write(response: &Response<'_, '_>) -> Result<(), Stop> {
    let Some(speaker) = speaker(response) else {
        return Err(Stop::Type(
            c"a response that switches protocols must have rack.hijack in its header, or a body that only responds to call",
        ));
    };
    may_give_away(response)?;
    if !response.with(|exchange| exchange.end_head_for_switch()) {
        return Err(Stop::Type(c"a response with status 101 must have an upgrade field"));
    }
    give_away(response, speaker)
}

/// The callable of the application that takes the socket.
fn speaker(response: &Response<'_, '_>) -> Option<VALUE> {
    let (hijacker, body) = (response.hijacker.get(), response.body.get());
    if hijacker != Qnil as VALUE {
        return Some(hijacker);
    }
    let is_called = responds(response.ruby, body, ids().call) && !responds(response.ruby, body, ids().each);
    is_called.then_some(body)
}

/// Succeeds if there is a socket to give away. Checked before the head, so that the client can get an error response.
pub(super) fn may_give_away(response: &Response<'_, '_>) -> Result<(), Stop> {
    match response.with(|exchange| exchange.can_hijack()) {
        true => Ok(()),
        false => Err(Stop::Type(
            c"rack.hijack is impossible over HTTP/2, where responses share a socket; check rack.hijack? in the env first",
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
    let socket = match response.with(hijack::take) {
        Ok(socket) => socket,
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            return Err(Stop::Io(c"the request has timed out: its client has got a 504"));
        }
        Err(_) => {
            return Err(Stop::Io(
                c"no socket can be given away: too few descriptors, or too little memory",
            ));
        }
    };
    let io = socket.object(response.ruby);
    response.hijacked_io.set(io);
    response.is_given_away.set(true);
    call(response.ruby, callable, ids().call, &[io]);
    Ok(())
}
