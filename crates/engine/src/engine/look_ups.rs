//! Look-ups in the public folder that may have to wait for a disk, or for a server of files that does not answer: a few
//! native threads do them, while the connection is parked. Neither the app nor other clients wait for that.
//!
//! A look-up that takes longer than 5 s, not counting pauses of the process, is in vain. If its name is known to be
//! that of a file, or is in a folder that is known to be there, the response is 503; any other may be a path of the app,
//! which gets the request.

use super::without_app::path_of;
use super::Engine;
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::files::{Client, Found, LookUp, Reach, THREADS};
use crate::observe::excess::About;
use crate::transport::poller::Interest;
use crate::work_queue::{Turn, LOOK};
use rustix::io::{self, Errno};
use std::sync::{Arc, Weak};

impl Engine {
    /// Starts the threads, which do not keep the engine alive.
    pub(super) fn start_look_ups(self: &Arc<Self>) -> std::io::Result<()> {
        if self.services.files.public().is_none() {
            return Ok(());
        }
        for _ in 0..THREADS {
            let (look_ups, engine) = (Arc::clone(&self.look_ups), Arc::downgrade(self));
            std::thread::Builder::new()
                .name("fairlead files".into())
                .spawn(move || loop {
                    match look_ups.next(LOOK) {
                        Turn::Of(look_up) => look(&engine, &look_up),
                        Turn::Idle if engine.strong_count() > 0 => {}
                        Turn::Idle | Turn::Over => return,
                    }
                })?;
        }
        Ok(())
    }

    /// Leaves the connection's request to the threads that look up.
    pub(super) fn hand_to_look_ups(&self, mut connection: Box<Connection>) {
        let (request, key, now) = (&connection.stream.request, connection.key(), Millis::now());
        let address = connection.stream.peer().map(|peer| peer.ip());
        let client = address.map_or(Client::Connection(key), Client::Address);
        let path = path_of(request);
        let public = self.services.files.public();
        let name = public.and_then(|public| public.name_of(path)).unwrap_or_default();
        let look_up = LookUp::new(key, client, (path, name), request.accepted_codings());
        connection.await_look_up(&look_up, now);
        // In this order, so that a thread that has found the file also finds the parked connection.
        self.park(connection, Interest::Nothing);
        if self.look_ups.push(&look_up, now) {
            return;
        }
        if let Some(connection) = self.take_awaiting(&look_up) {
            self.go_on_without_file(connection);
        }
    }

    fn take_awaiting(&self, look_up: &Arc<LookUp>) -> Option<Box<Connection>> {
        let awaits = |connection: &Connection| connection.awaits(look_up);
        self.connections.parked().take_if(look_up.key, awaits)
    }

    fn look_up_is_over(&self, look_up: &Arc<LookUp>, found: io::Result<Found>) {
        // The client may have gone, or have waited for too long.
        let Some(mut connection) = self.take_awaiting(look_up) else {
            return;
        };
        self.worker.guard("a look-up", || {
            connection.end_look_up();
            match self.without_app.respond_with_found(&mut connection, found) {
                Some(close) => {
                    let next = self.without_app.go_on_after(&mut connection, close, false);
                    self.settle_elsewhere(connection, next);
                }
                None => self.leave_to_app(connection),
            }
        });
    }

    /// Answers a request without the result of its look-up.
    pub(super) fn go_on_without_file(&self, mut connection: Box<Connection>) {
        let Some(look_up) = connection.end_look_up() else {
            return;
        };
        let public = self.services.files.public();
        let is_for_file = look_up.is_file() || public.is_some_and(|public| public.is_below_known_folder(&look_up.path));
        if !is_for_file {
            let path = String::from_utf8_lossy(&look_up.path);
            self.worker.log.about_peer(
                About::File,
                connection.stream.peers.client(),
                format_args!("passed a request on to the application without looking for {path:?}: the disk of public_dir does not answer"),
            );
            return self.leave_to_app(connection);
        }
        let close = self
            .without_app
            .respond_with_found(&mut connection, Err(Errno::TIMEDOUT));
        // In its next turn: requests behind it may be refused at once, too.
        let next = close.map_or(Next::Close, |close| {
            self.without_app.go_on_after(&mut connection, close, true)
        });
        self.settle_elsewhere(connection, next);
    }

    /// The request is none for a file.
    pub(super) fn leave_to_app(&self, connection: Box<Connection>) {
        self.enqueue(connection);
        if !self.scheduler.ready().is_empty() {
            self.scheduler.notify();
        }
    }
}

/// Does a look-up, on a thread of its own. It does not keep the engine alive meanwhile: it may take for ever.
fn look(engine: &Weak<Engine>, look_up: &Arc<LookUp>) {
    let Some(here) = engine.upgrade() else { return };
    let (services, look_ups) = (Arc::clone(&here.services), Arc::clone(&here.look_ups));
    drop(here);
    let found = services.worker.guard("a look-up", || {
        services.worker.fault("look up");
        let reach = Reach::Disk(look_up.file_flag());
        let public = services.files.public();
        public.map_or(Ok(Found::Nothing), |public| {
            public.find(&look_up.path, &|| look_up.accepted, reach)
        })
    });
    look_ups.ended(look_up);
    if let Some(engine) = engine.upgrade() {
        engine.look_up_is_over(look_up, found.unwrap_or(Err(Errno::IO)));
    }
}
