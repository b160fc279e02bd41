//! What an application is to the engine: the one thing that a language has to bring.

use crate::exchange::Exchange;
use crate::pubsub::Publication;
use crate::realtime::{Client, Event};
use std::sync::Arc;

/// What the engine serves, and what it needs to know of the language that it is written in.
pub trait App {
    /// Answers one request, on this thread, to completion. A panic is answered with 500.
    fn call(&self, exchange: &mut Exchange<'_>);

    /// Runs one event of a client. No other event of that client runs at the same time.
    fn event(&self, _client: &Arc<Client>, _event: Event) {}

    /// The last event of a client has run: its place is free. `forgotten`: the names of channels of which it was the last
    /// subscriber in this process.
    fn gone(&self, _client: &Arc<Client>, _forgotten: Vec<Box<[u8]>>) {}

    /// Something was published that the process itself has subscribed to, by a subscription of that id.
    fn published(&self, _id: u64, _publication: &Publication) {}

    /// Runs one task; called once for each [`Engine::defer`](crate::Engine::defer).
    fn task(&self) {}

    /// Runs `wait`, which may sleep for long, without the lock of the language. [`Engine::interrupt`](crate::Engine::interrupt) must end it.
    fn block(&self, wait: &mut dyn FnMut()) {
        wait();
    }

    /// Whether this thread shall leave [`Engine::serve`](crate::Engine::serve) now.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Starts one more thread that calls [`Engine::serve`](crate::Engine::serve); false if that cannot be.
    fn start_thread(&self) -> bool {
        false
    }

    /// Whether [`Engine::suspend`](crate::Engine::suspend) and [`Engine::resume`](crate::Engine::resume) are called when a thread in [`App::call`] begins and ends to wait. If
    /// not, the monitor guesses within a millisecond.
    fn hands_over(&self) -> bool {
        false
    }
}
