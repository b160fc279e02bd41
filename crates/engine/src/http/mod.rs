//! What requests and responses are, whatever carries them.

pub(crate) mod body;
