//! The decisions of the supervisor: from a state, an event and the time to the next state and the actions to take.
//!
//! No I/O, no clock, no threads.

pub mod action;
pub mod event;
pub mod notice;

pub use action::{Action, SpawnKind};
pub use event::{Command, End, Event, RestartKind, StopReason};
pub use notice::Notice;

use std::time::Duration;

/// Running time since the start of the supervisor: pauses of the machine do not count.
pub type Moment = Duration;

/// The number of a generation: one loading of the application, 1 for the first. Log lines and statistics show it. A spawner that
/// replaces a lost one has the same number and another [`ProcessId`].
pub type Generation = u32;

/// Names a spawner or a worker within the supervisor; never used twice.
pub type ProcessId = u32;
