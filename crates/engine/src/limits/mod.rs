//! What one process may take for all its clients together: descriptors, memory and disk; and how fast its clients have to be.

pub(crate) mod burst;
pub(crate) mod descriptors;
pub(crate) mod meter;
pub(crate) mod request_totals;
