//! WebSocket (RFC 6455), the client's side: `handshake` opens it, `frame` (with tungstenite) and `reader` take messages out
//! of bytes where they lie, `deflate` is permessage-deflate (RFC 7692), which tungstenite has not. The server is checked,
//! not trusted; and nothing here is shared with the server of this project, so a mistake made there is found and not
//! repeated.

pub(crate) mod deflate;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod reader;
