//! Turns of what is no request: an event of a client, something published for the process, a task of the app. Each joins
//! the ready queue and runs like a request.

use super::client::Client;
use super::inbox::Event;
use super::process::ProcessSubscription;
use crate::app::App;
use crate::engine::Engine;
use crate::scheduler::queue::Job;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Close code of a server that goes away (RFC 6455 §7.4.1).
const GOING_AWAY: u16 = 1001;

/// What has panicked, in the log.
const AN_EVENT: &str = "an event";

impl Engine {
    /// Puts a client that has events into the ready queue.
    pub(crate) fn schedule(&self, client: Arc<Client>) {
        self.ready.push(Job::Client(client));
        self.notify();
    }

    pub(super) fn schedule_subscription(&self, subscription: Arc<ProcessSubscription>) {
        self.ready.push(Job::Subscription(subscription));
        self.notify();
    }

    /// Puts a task of the app into the ready queue: [`App::task`] is called once for it.
    pub fn defer(&self) {
        self.ready.push(Job::Task);
        self.notify();
    }

    /// Tells every client that the server is about to end.
    pub(crate) fn dismiss_clients(&self) {
        self.clients.all().iter().for_each(|client| client.dismiss());
    }

    pub(crate) fn run_event(&self, client: &Arc<Client>, app: &impl App) {
        let mut inbox = client.inbox.lock();
        let Some(event) = inbox.take() else {
            inbox.end_turn();
            return;
        };
        drop(inbox);
        let is_shutdown = matches!(event, Event::Shutdown);
        let is_close = matches!(event, Event::Close);
        let bytes = event.own_bytes();
        self.guard(AN_EVENT, || app.event(client, event));
        if bytes > 0 {
            self.intake.remove(bytes, &self.poller);
        }
        self.counters().events.fetch_add(1, Relaxed);
        if is_shutdown {
            client.close(Some(GOING_AWAY), "");
        }
        if is_close {
            client.inbox.lock().end_turn();
            let forgotten = client.release(self);
            self.guard(AN_EVENT, || app.gone(client, forgotten));
            self.finish_if_drained();
            return;
        }
        client.resume(self);
        let mut inbox = client.inbox.lock();
        let farewell = inbox.take_farewell();
        let has_more = inbox.end_turn();
        drop(inbox);
        if let Some(farewell) = farewell {
            client.part(farewell);
        }
        if has_more {
            self.ready.push(Job::Client(Arc::clone(client)));
        }
    }

    pub(crate) fn run_published(&self, subscription: &Arc<ProcessSubscription>, app: &impl App) {
        if let Some(publication) = subscription.take() {
            self.guard(AN_EVENT, || app.published(subscription.id(), &publication));
            self.counters().events.fetch_add(1, Relaxed);
        }
        if subscription.end_turn() {
            self.ready.push(Job::Subscription(Arc::clone(subscription)));
        }
    }

    pub(crate) fn run_task(&self, app: &impl App) {
        self.guard(AN_EVENT, || app.task());
        self.counters().events.fetch_add(1, Relaxed);
    }

    /// Ends every client without its last events: the engine has been stopped.
    pub(crate) fn end_clients(&self) {
        self.clients.all().iter().for_each(|client| self.end_client(client));
    }

    pub(super) fn end_client(&self, client: &Client) {
        client.end_now();
        client.release(self);
    }
}
