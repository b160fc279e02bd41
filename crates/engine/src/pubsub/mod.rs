//! Pub/sub: from whoever publishes to all who subscribed, in every process of the server.

mod hub;
mod mailbox;
mod pattern;
mod publication;
mod subscriber;

pub use hub::{Hub, Posted, PubSubStats, Scope};
pub use mailbox::PostOffice;
pub use pattern::Match;
pub use publication::{Publication, ENCODINGS};
pub use subscriber::{Delivery, Subscriber};
