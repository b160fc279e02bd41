//! HTTP/2 from the client's side (RFC 9113): several streams at the same time on one connection.
//!
//! The `h2` crate does framing, header compression and flow control. It is written for a runtime that polls futures
//! when a waker tells it to. Here the event loop does that: `pipe` gives received bytes to h2 and takes the bytes to
//! send from it, and `signal` is a waker that only raises a flag. So h2 needs no runtime, and HTTP/2 shares sockets and
//! TLS with HTTP/1.1.
//!
//! `session` is one HTTP/2 connection, from its preface to its end · `lane` carries one stream after the other ·
//! `streams` has the lanes of one client, over consecutive connections · `request` has the requests to send · `trouble`
//! explains the error of a stream.

mod lane;
mod pipe;
mod request;
mod session;
mod signal;
mod streams;
mod trouble;

pub(crate) use request::{requests, Request};
pub(crate) use streams::Streams;
