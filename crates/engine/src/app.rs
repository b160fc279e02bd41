//! The application, as the engine uses it: the interface that a language has to implement.

use crate::exchange::Exchange;
use crate::pubsub::Publication;
use crate::realtime::{Client, Event};
use std::sync::Arc;
use std::time::Duration;

/// The garbage that a collection looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// Objects since the last collection: most of the garbage, and a short stop.
    Young,
    /// All objects.
    All,
}

/// An application, and the properties of its language.
pub trait App {
    /// Runs one request on this thread, to completion. A panic results in a 500.
    fn call(&self, exchange: &mut Exchange<'_>);

    /// Time for which this thread, in its last [`App::call`], wanted the lock of the language and did not have it.
    /// `None` if the language does not report it.
    fn lock_wait(&self) -> Option<Duration> {
        None
    }

    /// Runs one event of a client. No other event of that client runs at the same time.
    fn event(&self, _client: &Arc<Client>, _event: Event) {}

    /// Called after the last event of a client, when the client no longer counts. `forgotten`: names of the channels
    /// that have lost their last subscriber in this process with it.
    fn gone(&self, _client: &Arc<Client>, _forgotten: Vec<Box<[u8]>>) {}

    /// Runs for a message that was published to a subscription of the process; `id` identifies the subscription.
    fn published(&self, _id: u64, _publication: &Publication) {}

    /// Runs one task; called once for each [`Engine::defer`](crate::Engine::defer).
    fn task(&self) {}

    /// True if this thread has run a request since the last [`App::leisure`], and there is such work.
    fn wants_leisure(&self) -> bool {
        false
    }

    /// Runs the work that the app has put off until no request runs or waits here. Other threads run requests that
    /// arrive meanwhile.
    fn leisure(&self) {}

    /// Collects garbage. Called when the process is quiet after a busy time, before memory is returned to the system.
    fn collect_garbage(&self, _garbage: Garbage) {}

    /// Called on a thread that has waited a second for work, without the lock of the language: returns memory that only this thread
    /// uses. Another thread may have work for it meanwhile.
    fn idle(&self) {}

    /// Runs `wait`, which may sleep for long, without the lock of the language. Returns soon after
    /// [`Engine::interrupt`](crate::Engine::interrupt).
    fn block(&self, wait: &mut dyn FnMut()) {
        wait();
    }

    /// True if this thread should leave [`Engine::serve`](crate::Engine::serve) now.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Starts one more thread that calls [`Engine::serve`](crate::Engine::serve); false if that is not possible.
    fn start_thread(&self) -> bool {
        false
    }
}

/// Lock of the language, as used by native threads, which never hold it.
pub trait Lock: Send + Sync {
    /// True if [`Engine::suspend`](crate::Engine::suspend) and [`Engine::resume`](crate::Engine::resume) are called
    /// when a thread in [`App::call`] begins and ends to wait. If not, the monitor guesses within a millisecond.
    fn tells_waits(&self) -> bool;

    /// Returns its use at this moment. `users`: number of threads of the engine that run the app or want the lock, for
    /// languages that do not report which threads want it. Called every millisecond while a job runs.
    fn look(&self, users: usize) -> LockUse;

    /// Asks the thread that has had it since `seen` to release it to the threads that want it, as soon as it can be
    /// interrupted. Does nothing if another thread has got it meanwhile. Returns at once.
    fn claim(&self, seen: LockUse);
}

/// Use of the lock of the language at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// Number of times that it has changed from one thread to another.
    pub switches: u64,
    /// True if a thread wants it and does not have it, as far as is known.
    pub is_wanted: bool,
}
