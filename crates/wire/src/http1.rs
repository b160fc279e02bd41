//! HTTP/1.0 and HTTP/1.1 (RFC 9112), without the leniency that the RFC permits.
//!
//! The rule behind every decision here: a head that two correct recipients could read differently is refused. So no
//! proxy in front can disagree with this server about the end of a request or about its host.

mod chunk_extension;
mod chunked;
pub mod fields;
mod framing;
mod head;
mod reason;
mod scan;
mod target;

pub use chunked::{ChunkedDecoder, Progress};
pub use framing::Framing;
pub use head::{Field, Head, HeadLimits, Version, MAX_FIELDS, MAX_METHOD_BYTES};
pub use reason::{has_no_body, reason};
pub use scan::HeadProgress;
pub use target::{host_and_port, Target, TargetForm};
