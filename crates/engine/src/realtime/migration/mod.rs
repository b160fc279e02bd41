//! Clients that migrate to another worker between two messages, because their worker ends. The peer notices nothing.
//!
//! ```text
//!   worker that ends                                               worker that continues
//!     departures.rs: asks some clients at a time                     arrival.rs: a client from its state
//!       │ leaving.rs: reads no more                                    ▲ subscriptions live, then reads
//!       │ event HandOver: the app saves its state                      │
//!       │ dispatcher: subscriptions end, at a cut                      ▼
//!       ▼                                                            resuming.rs: event TakeOver, paced
//!     saved.rs ───────── socket and bytes, through the kernel ──────▶ saved.rs
//! ```
//! * `arrived_forms.rs` shares frames again that many clients bring.
//! * `retirement.rs` has the time for which clients stay that cannot migrate.
//! * `departure.rs` has the states of one departure, and `handover.rs` the answer of the app.
//! * `saved.rs` is the state of a client as a value, and `format.rs` its bytes. Another version of the server may read
//!   them: fields are only added, and a reader skips unknown ones.
//! * `lineage.rs` has the code and the memory from which a client comes, and `farewell.rs` the last bytes for a client that cannot
//!   continue.
//!
//! Publications reach each worker in an order of its own. The cut is the set of publications that the old worker has
//! handed out when the subscriptions of the client end; the new worker delivers the others, from its log, and no
//! publication of the cut. So each of them is delivered once.

mod arrival;
mod arrived_forms;
mod departure;
mod departures;
mod farewell;
mod format;
mod handover;
mod leaving;
mod lineage;
mod resuming;
mod retirement;
mod saved;

pub(super) use arrived_forms::ArrivedForms;
pub(super) use departure::Departure;
pub(super) use departures::Departures;
pub(crate) use departures::{Sending, Way, LARGE};
pub(crate) use farewell::say_farewell;
pub(crate) use format::VERSION as CLIENT_FORMAT;
pub use handover::Handover;
pub(super) use leaving::SERVICE_RESTART;
pub(super) use resuming::Resuming;
pub(super) use retirement::Hindrance;
pub use retirement::Retirement;
pub(crate) use saved::SavedClient;
pub(super) use saved::{SavedName, SavedSilence, SavedStream, SavedSubscriptions};
