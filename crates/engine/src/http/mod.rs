//! Requests and responses, independent of the transport, and how HTTP/1 writes a response.

pub(crate) mod body;
pub(crate) mod http1;
pub(crate) mod own_chunks;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod response;
