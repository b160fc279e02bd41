//! The versions of this program.

use crate::hot_restart_state;
use crate::settings::PROTOCOL;
use fairlead_shared_memory::SharedMemory;
use std::sync::OnceLock;

/// The numbers and texts by which two programs check if they are compatible.
#[derive(Clone, Debug)]
pub struct Versions {
    /// The version of Fairlead.
    pub version: String,
    /// The version of the messages and settings ([`PROTOCOL`]).
    pub protocol: u32,
    /// The layout of the shared memory ([`SharedMemory::layout`]).
    pub layout: String,
    /// The format of the hot restart state ([`hot_restart_state::FORMAT`]).
    pub format: u32,
}

static VERSIONS: OnceLock<Versions> = OnceLock::new();

/// The versions of this program.
pub fn versions() -> &'static Versions {
    VERSIONS.get_or_init(|| Versions {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL,
        layout: SharedMemory::layout(),
        format: hot_restart_state::FORMAT,
    })
}

/// Gives this program other versions, for tests. Call it first.
#[doc(hidden)]
pub fn pretend(other: Versions) {
    let _ = VERSIONS.set(other);
}
