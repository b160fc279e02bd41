//! Work that moves between workers: `transfers.rs` has requests that come from other workers and go to them, `relays.rs`
//! requests of connections that have to stay, `handoff.rs` connections without a request, in a drain.
//!
//! ```text
//!   transfers ──▶ relays ──▶ departure        (to other workers)
//!       │
//!       ├──▶ arrivals ◀── handoff             (from other workers)
//!       └──▶ admission ◀────┘                 (may they come?)
//! ```

mod admission;
mod arrivals;
mod departure;
mod handoff;
mod relays;
mod transfers;

pub(super) use admission::Admission;
pub(super) use arrivals::Arrivals;
pub(super) use handoff::Handoff;
pub(super) use relays::Relays;
pub(super) use transfers::Transfers;
