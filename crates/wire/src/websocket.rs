//! WebSocket (RFC 6455) with compression (RFC 7692): from the handshake to single frames.
//!
//! ```text
//! handshake ─► bytes ─► Decoder: header ─► unmask ─► (inflate) ─► UTF-8 ─► Incoming
//!              bytes ◀─ frame, close_frame ◀─ (Deflater) ◀─ message
//! ```
//!
//! This module sends nothing by itself: the caller must respond to a ping with a pong, and to a close with a close.

mod close;
mod decoder;
mod deflater;
mod extension;
mod failure;
mod frame;
mod growth;
mod handshake;
mod header;
mod inflater;
mod mask;
mod saved;
mod utf8;
mod window;

pub use close::{close_frame, is_sendable_close_code};
pub use decoder::{Decoder, Incoming, Limits};
pub use deflater::Deflater;
pub use extension::{accept_response, negotiate, offer, Context, Deflate};
pub use failure::Failure;
pub use frame::{frame, masked_frame, Opcode, Role};
pub use handshake::{accept_key, handshake, Handshake, HandshakeError};
