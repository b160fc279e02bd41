//! WebSocket (RFC 6455) from the client's side: `handshake` opens it, `frame` (with tungstenite) and `reader` parse
//! messages in place, `deflate` is permessage-deflate (RFC 7692), which tungstenite does not have. The server is
//! checked, not trusted. Nothing here is shared with the server of this project, so that its mistakes are found and not
//! repeated.

pub(crate) mod deflate;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod reader;
