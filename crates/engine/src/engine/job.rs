//! The jobs of the ready queue.

use crate::app::Garbage;
use crate::clock::Nanos;
use crate::config::fair_by::Flow;
use crate::connection::Connection;
use crate::engine::drain::AwaitedTask;
use crate::realtime::{Client, ProcessSubscription};
use crate::scheduler::Queued;
use std::sync::Arc;

/// The work of a thread in one turn.
pub(crate) enum Job {
    /// A connection with a complete request.
    Request(Box<Connection>),
    /// A client with at least one event.
    Client(Arc<Client>),
    /// A subscription of the process that has a message.
    Subscription(Arc<ProcessSubscription>),
    /// A task of the app, see [`App::task`](crate::App::task).
    Task(AwaitedTask),
    /// Work of the app for idle threads, see [`App::leisure`](crate::App::leisure).
    Leisure,
    /// See [`App::collect_garbage`](crate::App::collect_garbage).
    Collection(Garbage),
}

impl Queued for Job {
    fn arrived(&self) -> Option<Nanos> {
        match self {
            Job::Request(connection) => Some(connection.arrived()),
            _ => None,
        }
    }

    fn can_leave(&self) -> bool {
        matches!(self, Job::Request(connection) if !connection.stream.request.has_to_stay)
    }

    fn waits_since(&self) -> Option<Nanos> {
        match self {
            Job::Request(connection) => Some(connection.waits_since()),
            _ => None,
        }
    }

    fn flow(&self) -> Option<Flow> {
        match self {
            Job::Request(connection) => connection.stream.flow,
            Job::Client(client) => client.flow,
            _ => None,
        }
    }

    fn is_urgent(&self) -> bool {
        matches!(self, Job::Request(connection) if connection.stream.is_urgent)
    }
}
