//! Limits of all clients of a process together (descriptors, memory, disk), and the minimum rate of each.

pub(crate) mod budget;
pub(crate) mod burst;
pub(crate) mod descriptors;
pub(crate) mod holders;
pub(crate) mod meter;
pub(crate) mod request_totals;
