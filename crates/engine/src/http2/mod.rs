//! HTTP/2 (RFC 9113): many requests at a time over one transport. The `h2` crate keeps the protocol; the reactor drives
//! it, as it drives everything else.
//!
//! ```text
//!                 ┌───────────── session: one per connection ────────────┐
//!   socket ◀────▶ pipe ◀─────▶ h2 ◀────▶ stream socket ◀── Connection: one request
//!   (or TLS)      counts       frames,   a transport   ◀── Connection
//!                 frames       windows                 ◀── Client: a WebSocket, an event stream
//! ```
//! A stream is a transport for one response: the request comes as a head of HTTP/1, and what is sent is a head of HTTP/1
//! and the body as it is (`stream.rs`). So everything that serves a connection serves a stream: bodies and their
//! limits, files, spooling, slow clients, the waiting room, WebSockets.
//!
//! * `connection/`: drives `h2`; `signal.rs`: who does; `pipe.rs`: its way to the transport; `connections.rs`: all sessions of an
//!   engine; `closing.rs`: the end of one for the engine; `delay.rs`: responses that are sent together; `unsent.rs`: what of them waits for the client.
//! * `stream.rs`: streams, as transports; `receiving.rs`, `sending.rs`: the two directions of one; `head.rs`: their heads.

mod closing;
mod connection;
mod connections;
mod delay;
mod head;
mod pipe;
mod receiving;
mod sending;
mod signal;
mod stream;
mod unsent;

pub(crate) use connection::{Arrival, Beginning, End, Http2Connection};
pub(crate) use connections::{http2_key, is_http2, Http2Connections};
