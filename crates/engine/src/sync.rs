//! What the protocol of the threads (`scheduler/states/`) is made of. Its model check (`tests/schedule`) puts a checker's primitives
//! here instead, which try one interleaving after another.

pub(crate) use parking_lot::{Condvar, Mutex};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
