//! Who gets what is published: the side of pub/sub that the owner of a socket or of a callback implements.

use super::publication::Publication;
use std::sync::Arc;

/// Receives the publications of the channels that it subscribed to. Called by the dispatcher alone, from one thread.
pub trait Subscriber: Send + Sync {
    /// Its number, unique in the process and never used again.
    fn id(&self) -> u64;

    /// Takes a publication: queues it and returns. Must not wait for anything, least of all for a peer or a language's lock,
    /// and must not publish. True: [`Subscriber::flush`] is to be called once the dispatcher has handed out what it has.
    ///
    /// May still be called when [`unsubscribe`](super::Hub::unsubscribe) has returned, with what was under way.
    fn deliver(&self, publication: &Arc<Publication>, delivery: Delivery) -> bool;

    /// Sends what was queued as far as the peer takes it. Must not wait either.
    fn flush(&self);

    /// Whether it still takes anything. One that is not open is not subscribed; to become so, it first says here that it is
    /// closed and then unsubscribes.
    fn is_open(&self) -> bool;
}

/// What a subscription asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Straight to the peer, as text.
    Text,
    /// Straight to the peer, as bytes.
    Binary,
    /// To the callback that the subscriber knows by this number.
    Event(u64),
}
