//! Receives published messages: implemented by the owner of a socket or of a callback.

use super::publication::Publication;
use crate::limits::holders::Owner;
use std::sync::Arc;

/// Receives the publications of its channels. Called only by the dispatcher, on one thread.
pub trait Subscriber: Send + Sync {
    /// Unique in the process, and never reused.
    fn id(&self) -> u64;

    /// Takes a publication: queues it and returns. Must not wait for anything, especially not for a peer or the lock of
    /// the language, and must not publish. Returns true if [`Subscriber::flush`] should be called after this round of
    /// deliveries.
    ///
    /// May still be called after [`unsubscribe`](super::Hub::unsubscribe) has returned, with publications that were
    /// being delivered.
    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool;

    /// Sends queued messages, as far as the peer takes them. Must not wait either.
    fn flush(&self);

    /// Returns true if it still takes publications. A closed subscriber cannot be subscribed; a subscriber that closes
    /// must return false here before it unsubscribes.
    fn is_open(&self) -> bool;

    /// The owner of its subscriptions: all subscriptions of one owner count together. A subscriber without an owner
    /// never gives way.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// The owner, for the log.
    fn owner_name(&self) -> String {
        String::new()
    }

    /// Called when the process has lost messages of the history, perhaps of this subscriber.
    fn lose(&self) {}

    /// Ends this subscriber and its subscriptions, because its owner has the most of a total that is used up. `option`:
    /// the total.
    fn give_way(&self, _option: &'static str) {}
}

/// The way in which the messages of a subscription are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Directly to the peer, as text.
    Text,
    /// Directly to the peer, as bytes.
    Binary,
    /// To the callback that the subscriber knows by this number.
    Event(u64),
}
