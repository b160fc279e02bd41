//! HTTP/2 (RFC 9113): many requests at a time over one transport. The `h2` crate implements the protocol, and the
//! reactor drives it.
//!
//! ```text
//!                 ┌────────────── Http2Connection: one per peer ─────────┐
//!   socket ◀────▶ pipe ◀─────▶ h2 ◀────▶ stream socket ◀── Connection: one request
//!   (or TLS)      counts       frames,   a transport   ◀── Connection
//!                 frames       windows                 ◀── Client: a WebSocket, an event stream
//! ```
//! A stream is a transport for one response. It delivers the request as a head of HTTP/1 and a body; it takes a head of
//! HTTP/1 and a body without framing (`stream.rs`). So all code that serves a connection also serves a stream: bodies
//! and their limits, files, spooling, slow clients, the waiting room, WebSockets.
//!
//! * `connection/`: one HTTP/2 connection, drives `h2`; `signal.rs`: chooses the thread that drives it; `pipe.rs`: its I/O
//!   with the transport; `connections.rs`: all HTTP/2 connections of an engine; `closing.rs`: the end of a connection for
//!   its engine; `delay.rs`: responses that are sent together; `listed.rs`: connections that some thread has to look at; `unsent.rs`: bytes of responses that the client has not
//!   taken yet.
//! * `stream.rs`: streams, as transports; `receiving.rs`, `sending.rs`: the two directions of a stream; `head.rs`:
//!   their heads.

mod closing;
mod connection;
mod connections;
mod delay;
mod head;
mod listed;
mod pipe;
mod receiving;
mod sending;
mod signal;
mod stream;
mod unsent;

pub(crate) use connection::{Arrival, Beginning, End, Http2Connection};
pub(crate) use connections::{http2_key, is_http2, Http2Connections};
