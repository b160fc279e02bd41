//! The primitives that `scheduler/states/` and `http2/signal.rs` are built on. Their model check (`tests/schedule`) replaces
//! them by those of the checker, which tries one interleaving after another.

pub(crate) use parking_lot::{Condvar, Mutex};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
