//! What requests and responses are, whatever carries them; and how HTTP/1 puts a response on the wire.

pub(crate) mod body;
pub(crate) mod http1;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod response;
