//! One request and its response, and sockets that the application takes over.

pub(crate) mod exchange;
pub(crate) mod relay;
