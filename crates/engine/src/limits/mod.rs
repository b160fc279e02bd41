//! What one process may take for all its clients together: descriptors, memory and disk.

pub(crate) mod descriptors;
pub(crate) mod memory;
pub(crate) mod request_totals;
pub(crate) mod uploads;
