//! Requests that wait for the end of a pause, see `held.rs`.

use super::Moves;
use crate::clock::Nanos;
use crate::connection::Connection;
use crate::engine::job::Job;
use crate::engine::sink::{Move, Sink};
use crate::http::refusal::Refusal;
use std::time::Duration;

impl Moves {
    /// Keeps a request during a pause; otherwise returns it. Requests of the last pause go first.
    pub(in crate::engine) fn hold(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        if self.parts.held.count() > 0 && self.parts.held.is_over() {
            self.release_held();
        }
        self.parts.held.hold(connection)
    }

    /// Releases requests at the end of a pause, and refuses requests that have waited for too long. Called every
    /// millisecond while there are any.
    pub(in crate::engine) fn tend_held(&self) {
        if self.parts.held.count() == 0 {
            return;
        }
        if self.parts.held.is_over() {
            self.release_held();
            return self.tell_of_work();
        }
        for connection in self.parts.held.take_abandoned() {
            self.abandon_held(connection);
        }
        while let Some(connection) = self.parts.held.take_overdue() {
            self.refuse_paused(connection);
        }
    }

    /// Makes the requests ready. Requests of a worker that ends during a pause go to the other workers, as far as possible.
    fn release_held(&self) {
        let is_paused = self.parts.worker.pause().is_some_and(|pause| pause.is_on());
        for mut connection in self.parts.held.take_all() {
            if connection.stream.has_left_or_ask() {
                self.abandon_held(connection);
                continue;
            }
            if is_paused {
                match self.parts.request_migration.move_one(connection, self) {
                    Some(left) => connection = left,
                    None => continue,
                }
            } else {
                // The pause is no wait for a thread: limits of that wait do not concern it.
                let request = &mut connection.stream.request;
                (request.arrived, request.line_wait) = (Nanos::now(), Duration::ZERO);
            }
            self.parts.scheduler.ready().push(Job::Request(connection));
        }
        self.end_if_drained();
    }

    fn abandon_held(&self, mut connection: Box<Connection>) {
        self.end_turn(&mut connection);
        self.put(self.parts.overload.abandon(connection));
    }

    /// Refuses a request that has waited for too long.
    fn refuse_paused(&self, mut connection: Box<Connection>) {
        connection.stream.request.begin(Nanos::now());
        self.end_turn(&mut connection);
        let next = self.parts.without_app.decline(&mut connection, Refusal::Paused);
        self.put(Move::Settle(connection, next));
    }
}
