//! The tool as a user sees it: the real program against small servers on port 0.

mod answers;
mod broadcast;
mod echo;
mod event_stream;
mod failures;
mod frames;
mod idle;
mod output;
mod pacing;
mod support;
