//! Which thread runs what, and when: the queue of what is ready, the loop of a thread that serves, the states of all threads, and
//! the monitor that helps when all of them are busy.

pub(crate) mod monitor;
pub(crate) mod queue;
pub(crate) mod serve;
pub(crate) mod states;
