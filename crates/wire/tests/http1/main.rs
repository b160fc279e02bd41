//! Tests of HTTP/1: accepted heads and their meaning, refused heads and their errors; the results do not depend on the
//! split of the bytes.

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
