//! The tool as a user sees it: the real program against small servers on port 0.

mod answers;
mod failures;
mod output;
mod pacing;
mod support;
