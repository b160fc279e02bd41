//! The negotiation of permessage-deflate (RFC 7692 §5, §7.1), for both sides.

use crate::parameters::{parameter, pieces, values, Parameter};
use crate::Head;

const NAME: &str = "permessage-deflate";
const SERVER_NO_CONTEXT: &str = "server_no_context_takeover";
const CLIENT_NO_CONTEXT: &str = "client_no_context_takeover";
const SERVER_BITS: &str = "server_max_window_bits";
const CLIENT_BITS: &str = "client_max_window_bits";

/// Log2 of the largest window, which is the default.
const MOST_BITS: u8 = 15;

/// Log2 of the smallest window that the compressor supports; RFC 7692 also has 8.
const LEAST_BITS: u8 = 9;

/// Defines if messages may refer to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Each message is compressed by itself, in both directions: no memory is used between messages, and a message to
    /// many clients is compressed once.
    PerMessage,
    /// Each side keeps its window, unless the peer asks otherwise: messages are smaller, but each connection takes much
    /// memory.
    Kept,
}

/// The parameters that both sides have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// The server resets its window after each message.
    pub server_no_context: bool,
    /// The client resets its window after each message.
    pub client_no_context: bool,
    /// Log2 of the window of the server, 9 to 15.
    pub server_bits: u8,
    /// Log2 of the window of the client, 8 to 15.
    pub client_bits: u8,
}

/// Finds the first acceptable offer in Sec-WebSocket-Extensions, and makes the value of the same field for the
/// response. An offer that is malformed, or has an unknown or repeated parameter, is declined; the others still count.
pub fn negotiate(head: &Head, bytes: &[u8], context: Context) -> Option<(Deflate, String)> {
    let offers = values(head, bytes, b"sec-websocket-extensions").flat_map(|value| pieces(value, b','));
    offers
        .filter_map(Parameters::parse)
        .find_map(|offer| offer.accept(context))
}

/// The value of Sec-WebSocket-Extensions with which a client offers compression.
pub fn offer(context: Context) -> String {
    match context {
        Context::PerMessage => format!("{NAME}; {SERVER_NO_CONTEXT}; {CLIENT_NO_CONTEXT}; {CLIENT_BITS}"),
        Context::Kept => format!("{NAME}; {CLIENT_BITS}"),
    }
}

/// The result of the server's response to [`offer`] with the same `context`. `None` if the response does not match the
/// offer, or asks for something unsupported: then the connection must be failed (RFC 7692 §7).
pub fn accept_response(value: &[u8], context: Context) -> Option<Deflate> {
    let response = Parameters::parse(value)?;
    let per_message = context == Context::PerMessage;
    let client_bits = match response.client_bits {
        Some(bits) => bits.filter(|&bits| bits >= LEAST_BITS)?,
        None => MOST_BITS,
    };
    if per_message && !response.server_no_context {
        return None;
    }
    Some(Deflate {
        server_no_context: response.server_no_context,
        client_no_context: response.client_no_context || per_message,
        server_bits: response.server_bits.unwrap_or(MOST_BITS),
        client_bits,
    })
}

/// The parameters of one offer or response (RFC 7692 §7.1).
#[derive(Debug, Default)]
struct Parameters {
    server_no_context: bool,
    client_no_context: bool,
    server_bits: Option<u8>,
    /// An offer may contain it without a value: then the server may choose.
    client_bits: Option<Option<u8>>,
}

impl Parameters {
    fn parse(extension: &[u8]) -> Option<Parameters> {
        let mut parts = pieces(extension, b';');
        if !parts.next()?.eq_ignore_ascii_case(NAME.as_bytes()) {
            return None;
        }
        let mut parameters = Parameters::default();
        for part in parts {
            let Parameter { name, value } = parameter(part)?;
            let bits = match &value {
                Some(digits) => Some(window_bits(digits)?),
                None => None,
            };
            parameters.set(name, bits)?;
        }
        Some(parameters)
    }

    /// `None` if the parameter is unknown, must not have this kind of value, or was set before.
    fn set(&mut self, name: &[u8], bits: Option<u8>) -> Option<()> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let repeated = if is(SERVER_NO_CONTEXT) && bits.is_none() {
            std::mem::replace(&mut self.server_no_context, true)
        } else if is(CLIENT_NO_CONTEXT) && bits.is_none() {
            std::mem::replace(&mut self.client_no_context, true)
        } else if is(SERVER_BITS) && bits.is_some() {
            std::mem::replace(&mut self.server_bits, bits).is_some()
        } else if is(CLIENT_BITS) {
            self.client_bits.replace(bits).is_some()
        } else {
            return None;
        };
        (!repeated).then_some(())
    }

    /// The parameters that a server agrees to. A client that states its own limits applies them even if they are not
    /// confirmed (RFC 7692 §7.1.1.2, §7.1.2.2), and inflating does not depend on the window, so the response need not
    /// contain `client_max_window_bits`.
    fn accept(&self, context: Context) -> Option<(Deflate, String)> {
        let per_message = context == Context::PerMessage;
        let deflate = Deflate {
            server_no_context: self.server_no_context || per_message,
            client_no_context: self.client_no_context || per_message,
            server_bits: self.server_bits.unwrap_or(MOST_BITS),
            client_bits: self.client_bits.flatten().unwrap_or(MOST_BITS),
        };
        if deflate.server_bits < LEAST_BITS {
            return None;
        }
        let mut response = NAME.to_owned();
        if deflate.server_no_context {
            response += "; ";
            response += SERVER_NO_CONTEXT;
        }
        if deflate.client_no_context {
            response += "; ";
            response += CLIENT_NO_CONTEXT;
        }
        if let Some(bits) = self.server_bits {
            response += &format!("; {SERVER_BITS}={bits}");
        }
        Some((deflate, response))
    }
}

/// 8 to 15 in decimal, without leading zeros (RFC 7692 §7.1.2).
fn window_bits(digits: &[u8]) -> Option<u8> {
    match digits {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}
