//! The tool as its user sees it: the real program against small servers on port 0.

mod answers;
mod broadcast;
mod echo;
mod event_stream;
mod failures;
mod frames;
mod http2;
mod http2_failures;
mod http2_peer;
mod idle;
mod output;
mod pacing;
mod support;
mod terminator;
mod tls;
