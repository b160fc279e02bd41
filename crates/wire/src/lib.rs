//! The protocols that Fairlead speaks, as pure functions over byte slices.
//!
//! This crate opens no socket, reads no clock, avoids allocations and knows nothing of Ruby, so every rule in it can be
//! tested and fuzzed alone. It never panics on input of a peer: each protocol violation is one [`Error`].
//!
//! - [`http1`]: request heads ([`Head`]), message framing, chunked bodies ([`ChunkedDecoder`]);
//! - [`http2`]: requests and responses of HTTP/2 in terms of HTTP/1, and limits on the frames of a peer;
//! - [`fields`]: names, values and token lists of header fields;
//! - [`reason`], [`has_no_body`]: reason phrases, and status codes without a body;
//! - [`websocket`]: handshake, frames, compressed messages;
//! - [`content_encoding`]: compressed content, and the requests that accept it;
//! - [`event_stream`]: server-sent events;
//! - [`conditions`], [`ranges`], [`multipart`]: conditional requests and parts of files;
//! - [`ProxyHeader`]: the client of a proxy, at the start of a connection;
//! - [`forwarded`]: the route of a request as proxies report it;
//! - [`path`]: paths that may name a file;
//! - [`pattern`]: globs and subjects;
//! - [`trace_id`]: the trace of a request.

#![forbid(unsafe_code)]

pub mod conditions;
pub mod content_encoding;
mod error;
pub mod event_stream;
pub mod forwarded;
pub mod http1;
pub mod http2;
pub mod multipart;
mod parameters;
pub mod path;
pub mod pattern;
mod proxy;
pub mod ranges;
mod span;
mod trace_context;
pub mod websocket;

pub use error::Error;
pub use http1::{
    fields, has_no_body, host_and_port, reason, ChunkedDecoder, Field, Framing, Head, HeadLimits, HeadProgress,
    Progress, Target, TargetForm, Version, MAX_FIELDS, MAX_METHOD_BYTES,
};
pub use path::{check_path, relative_path, PathFault, PathKind, PathRules};
pub use proxy::{ProxyHeader, ProxyTls, ProxyVersions, PROXY_HEADER_BYTES, PROXY_LINE_BYTES};
pub use span::Span;
pub use trace_context::trace_id;
