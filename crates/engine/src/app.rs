//! The application, as the engine sees it: what a language has to implement.

use crate::exchange::Exchange;
use crate::pubsub::Publication;
use crate::realtime::{Client, Event};
use std::sync::Arc;
use std::time::Duration;

/// An application, and what the engine needs to know of its language.
pub trait App {
    /// Runs one request on this thread, to completion. A panic results in a 500.
    fn call(&self, exchange: &mut Exchange<'_>);

    /// For how long this thread, in its last [`App::call`], wanted the lock of the language and did not have it. `None`
    /// if the language does not tell.
    fn lock_wait(&self) -> Option<Duration> {
        None
    }

    /// Runs one event of a client. No other event of that client runs at the same time.
    fn event(&self, _client: &Arc<Client>, _event: Event) {}

    /// The last event of a client has run, and the client no longer counts. `forgotten`: the names of the channels of
    /// which it was the last subscriber in this process.
    fn gone(&self, _client: &Arc<Client>, _forgotten: Vec<Box<[u8]>>) {}

    /// A message was published to a subscription of the process; `id` is that of the subscription.
    fn published(&self, _id: u64, _publication: &Publication) {}

    /// Runs one task; called once for each [`Engine::defer`](crate::Engine::defer).
    fn task(&self) {}

    /// Whether this thread has run a request since [`App::leisure`], and that has something to do.
    fn wants_leisure(&self) -> bool {
        false
    }

    /// Runs what the app has put off until no request runs or waits here. Requests that arrive meanwhile are run by
    /// other threads.
    fn leisure(&self) {}

    /// Runs `wait`, which may sleep for long, without the lock of the language. Returns soon after
    /// [`Engine::interrupt`](crate::Engine::interrupt).
    fn block(&self, wait: &mut dyn FnMut()) {
        wait();
    }

    /// Whether this thread should leave [`Engine::serve`](crate::Engine::serve) now.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Starts one more thread that calls [`Engine::serve`](crate::Engine::serve); false if that is not possible.
    fn start_thread(&self) -> bool {
        false
    }
}

/// The lock of the language, as native threads see it, which never have it.
pub trait Lock: Send + Sync {
    /// Whether [`Engine::suspend`](crate::Engine::suspend) and [`Engine::resume`](crate::Engine::resume) are called
    /// when a thread in [`App::call`] begins and ends to wait. If not, the monitor guesses within a millisecond.
    fn tells_waits(&self) -> bool;

    /// How it is used at this moment. `users`: how many threads of the engine run the app or want the lock, for languages
    /// that do not tell who wants it. Called every millisecond while something runs.
    fn look(&self, users: usize) -> LockUse;

    /// Asks the thread that has had it since `seen` to pass it on to those that want it, as soon as it can be
    /// interrupted. Does nothing if another thread has got it meanwhile. Returns at once.
    fn claim(&self, seen: LockUse);
}

/// How the lock of the language is used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// How often it has gone from one thread to another.
    pub switches: u64,
    /// Whether a thread wants it that does not have it, as far as is known.
    pub is_wanted: bool,
}
