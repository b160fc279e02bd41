//! The HTTP/1 tests: what is accepted and what it means, what is refused and why, and that neither depends on how the
//! bytes arrive.

mod accepted_heads;
mod advisories;
mod check;
mod chunked;
mod limits;
mod malformed_fields;
mod malformed_framing;
mod malformed_request_lines;
mod model;
mod random;
mod splits;
mod support;
