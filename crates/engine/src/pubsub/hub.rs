//! The hub: pub/sub of one process, shared by everything in it that subscribes or publishes.

use super::mailbox::PostOffice;
use super::pattern::Match;
use super::subscriber::{Delivery, Subscriber};
use crate::board::Slot;
use std::io;
use std::sync::Arc;

/// Whom a publication is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every process of the server.
    #[default]
    Cluster,
    /// This process alone.
    Process,
    /// Every process but this one.
    Siblings,
}

/// What became of a publication when `publish` returns. It is on its way then, not yet with its subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// Processes that read their mail, but would not take it in time (or, for the own process, no longer deliver).
    pub undelivered: usize,
}

/// Figures of a hub at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PubSubStats {
    /// Subscriptions of this process.
    pub subscriptions: usize,
    /// Publications that wait for the courier.
    pub queued: usize,
    /// Publications made by this process.
    pub published: u64,
    /// Publications handed to subscribers.
    pub delivered: u64,
    /// Messages sent to other processes.
    pub mail_sent: u64,
    /// Messages received from other processes.
    pub mail_received: u64,
    /// How often a publisher had to wait for another process.
    pub mail_waits: u64,
    /// Messages that another process did not take in time.
    pub mail_lost: u64,
    /// Panics of subscribers.
    pub panics: u64,
}

/// One for each process. It delivers nothing before [`Hub::start`].
pub struct Hub {
    post: Option<(Arc<PostOffice>, usize)>,
    own: Slot,
}

impl Hub {
    /// A hub for this process alone, or for worker number `slot` of those that share a post office.
    ///
    /// # Errors
    /// If the descriptor that wakes the courier cannot be made.
    pub fn new(post: Option<(Arc<PostOffice>, usize)>) -> io::Result<Arc<Hub>> {
        Ok(Arc::new(Hub {
            post,
            own: Slot::default(),
        }))
    }

    /// Starts the courier, and lets others know that this process reads its mail. To be called after the fork.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(self: &Arc<Hub>) -> io::Result<()> {
        Ok(())
    }

    /// Delivers what it has and ends the courier.
    pub fn stop(&self) {}

    /// Subscribes to the channel called `name`, or to all that match it. Replaces what this subscriber subscribed by the same
    /// text before. Returns how many subscribers of that text this process has now.
    pub fn subscribe(&self, _subscriber: Arc<dyn Subscriber>, _name: &[u8], _match: Match, _delivery: Delivery) -> usize {
        0
    }

    /// Ends the subscription that the subscriber with that number made with the text `name`. Returns how many subscribers
    /// of it are left in this process; `None` when there was no such subscription.
    pub fn unsubscribe(&self, _id: u64, _name: &[u8]) -> Option<usize> {
        None
    }

    /// Publishes. Returns when the message is queued for the courier and in the mailboxes of the other processes; only
    /// if one of these is full does it wait, inside of `block`, which is to run its argument without the language's lock.
    pub fn publish(
        &self,
        _channel: &[u8],
        _message: &[u8],
        _scope: Scope,
        _block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        Posted::default()
    }

    /// Where this process counts.
    pub fn counters(&self) -> &Slot {
        match &self.post {
            Some((post, slot)) => post.board().slot(*slot),
            None => &self.own,
        }
    }

    /// The figures of this moment.
    pub fn stats(&self) -> PubSubStats {
        PubSubStats::default()
    }
}
