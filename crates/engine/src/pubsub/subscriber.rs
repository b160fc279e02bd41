//! Receives what is published: implemented by the owner of a socket or of a callback.

use super::publication::Publication;
use crate::limits::holders::Owner;
use std::sync::Arc;

/// Receives the publications of the channels that it has subscribed to. Called by the dispatcher only, on one thread.
pub trait Subscriber: Send + Sync {
    /// Unique in the process, and never used again.
    fn id(&self) -> u64;

    /// Takes a publication: queues it and returns. Must not wait for anything, least of all for a peer or the lock of
    /// the language, and must not publish. True if [`Subscriber::flush`] should be called once the dispatcher has
    /// handed out everything.
    ///
    /// May still be called after [`unsubscribe`](super::Hub::unsubscribe) has returned, with what was being delivered.
    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool;

    /// Sends what was queued, as far as the peer takes it. Must not wait either.
    fn flush(&self);

    /// Whether it still takes anything. A closed subscriber cannot be subscribed; one that closes must return false
    /// here before it unsubscribes.
    fn is_open(&self) -> bool;

    /// The owner of its subscriptions: those of one owner count together. One without an owner never gives way.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// The owner, for the log.
    fn owner_name(&self) -> String {
        String::new()
    }

    /// Its owner has most of a total that is used up: ends this subscriber and its subscriptions. `option`: the total.
    fn give_way(&self, _option: &'static str) {}
}

/// How the messages of a subscription are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Directly to the peer, as text.
    Text,
    /// Directly to the peer, as bytes.
    Binary,
    /// To the callback that the subscriber knows by this number.
    Event(u64),
}
