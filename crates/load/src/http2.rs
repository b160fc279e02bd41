//! HTTP/2 as clients speak it (RFC 9113): several streams at the same time on one connection.
//!
//! Frames, header compression and flow control are those of the `h2` crate. It is written for a runtime that polls futures
//! when a waker tells it to; here the event loop does that: `pipe` gives h2 the bytes that were received and takes those
//! that are to be sent, `signal` is a waker that only raises a flag. So h2 needs no runtime, and sockets and TLS stay where
//! those of HTTP/1.1 are.
//!
//! `session` is one HTTP/2 connection, from its preface to its end · `lane` is a place for one stream after the other ·
//! `streams` are the lanes of one client, over the sessions that replace each other · `request` is what they send ·
//! `trouble` says what an error of a stream means.

mod lane;
mod pipe;
mod request;
mod session;
mod signal;
mod streams;
mod trouble;

pub(crate) use request::{requests, Request};
pub(crate) use streams::Streams;
