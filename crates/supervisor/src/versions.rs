//! What this program is a version of.

use crate::hot_restart_state;
use crate::settings::PROTOCOL;
use fairlead_shared_memory::SharedMemory;
use std::sync::OnceLock;

/// The numbers and texts by which two programs know whether they fit together.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Of Fairlead.
    pub version: String,
    /// Of the messages and settings ([`PROTOCOL`]).
    pub protocol: u32,
    /// Of the shared memory ([`SharedMemory::layout`]).
    pub layout: String,
    /// Of what one supervisor leaves for another ([`hot_restart_state::FORMAT`]).
    pub format: u32,
}

static VERSIONS: OnceLock<Versions> = OnceLock::new();

/// Those of this program.
pub fn versions() -> &'static Versions {
    VERSIONS.get_or_init(|| Versions {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL,
        layout: SharedMemory::layout(),
        format: hot_restart_state::FORMAT,
    })
}

/// Has this program be another version: for tests. To be called first.
#[doc(hidden)]
pub fn pretend(other: Versions) {
    let _ = VERSIONS.set(other);
}
