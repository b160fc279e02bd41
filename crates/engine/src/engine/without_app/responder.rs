//! Writes the engine's own responses.

use crate::clock::Nanos;
use crate::connection::Connection;
use crate::engine::record;
use crate::exchange::{Exchange, Outcome, Services, Workspace};
use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// See the head of this file.
pub(super) struct Responder {
    pub(super) services: Arc<Services>,
}

impl Responder {
    /// Counts the request that is ready, writes the response and logs it. Returns true if the connection ends with the
    /// response.
    pub(super) fn respond(&self, connection: &mut Connection, respond: impl FnOnce(&mut Exchange)) -> bool {
        self.services.worker.counters().requests.fetch_add(1, Relaxed);
        self.write(connection, respond)
    }

    /// Writes a response and logs it. Returns true if the connection ends with the response.
    pub(super) fn write(&self, connection: &mut Connection, respond: impl FnOnce(&mut Exchange)) -> bool {
        let (ended, outcome) = WORKSPACE.with_borrow_mut(|workspace| {
            let mut exchange = Exchange::new(&mut connection.stream, &self.services, workspace);
            respond(&mut exchange);
            exchange.end()
        });
        let worker = &self.services.worker;
        record::response(worker, connection, &ended, None, Nanos::now());
        !matches!(outcome, Outcome::Responded { close: false })
    }
}
