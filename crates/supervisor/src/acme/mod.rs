//! Certificates that an authority issues: their schedule ([`Renewals`]), each order, and the messages about them.

mod failure;
pub mod message;
pub mod notice;
mod order;
mod renewals;
mod suggestion;

pub use failure::Failure;
pub use renewals::{Action, Event, OrderReport, Renewals};

use crate::machine::Moment;

/// A time of the clock, in milliseconds since 1970.
pub type Wall = i64;

const MINUTE: Wall = 60 * 1000;
const HOUR: Wall = 60 * MINUTE;

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// By the clock, which can be set.
    pub wall: Wall,
    /// Running time, for the deadlines of tasks.
    pub running: Moment,
    /// A random number from 0 to 1.
    pub random: f64,
}
