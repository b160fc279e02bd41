//! Connections that native threads work on, so that neither the app nor other clients wait for a disk or for
//! cryptography. Each part has a queue, and puts a connection that it has worked on into the sink.
//!
//! * `file_sender.rs` and `send_queue.rs`: send files.
//! * `look_ups.rs`: looks for files of the public folder.
//! * `handshakes.rs`: computes TLS handshakes.

mod file_sender;
mod handshakes;
mod look_ups;
mod send_queue;

pub(super) use file_sender::FileSender;
pub(super) use handshakes::Handshakes;
pub(super) use look_ups::LookUpThreads;
