//! Lookups in the public folder that may have to wait for a disk or for an unresponsive file server. A few native
//! threads do them, while the connection is parked. Neither the app nor other clients wait for them.
//!
//! A lookup that takes longer than 5 s, not counting pauses of the process, is abandoned. If its path is known to be a
//! file, or is in a folder that is known to exist, the response is 503; any other path may belong to the app, so the
//! app gets the request.

use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::Connection;
use crate::engine::sink::{Move, Sink};
use crate::engine::without_app::{path_of, WithoutApp};
use crate::exchange::Services;
use crate::files::{Client, Found, LookUp, LookUps, Reach, THREADS};
use crate::observe::excess::About;
use crate::transport::poller::Interest;
use crate::work_queue::{Item, LOOK};
use rustix::io::{self, Errno};
use std::sync::{Arc, Weak};

/// See the head of this file.
pub(in crate::engine) struct LookUpThreads {
    services: Arc<Services>,
    connections: Arc<Connections>,
    without_app: Arc<WithoutApp>,
    queue: Arc<LookUps>,
    sink: Weak<dyn Sink>,
}

impl LookUpThreads {
    pub(in crate::engine) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        without_app: &Arc<WithoutApp>,
        sink: Weak<dyn Sink>,
    ) -> Arc<LookUpThreads> {
        Arc::new(LookUpThreads {
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            without_app: Arc::clone(without_app),
            queue: Arc::default(),
            sink,
        })
    }

    /// Starts the threads, which do not keep the engine alive.
    pub(in crate::engine) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        if self.services.files.public().is_none() {
            return Ok(());
        }
        for _ in 0..THREADS {
            let (queue, me) = (Arc::clone(&self.queue), Arc::downgrade(self));
            std::thread::Builder::new()
                .name("fairlead files".into())
                .spawn(move || run(&queue, &me))?;
        }
        Ok(())
    }

    /// Ends the threads.
    pub(in crate::engine) fn stop(&self) {
        self.queue.stop();
    }

    /// Queues the connection's request for the threads. If they do not take it, returns the next move without the file.
    pub(in crate::engine) fn push(&self, mut connection: Box<Connection>) -> Option<Move> {
        let (request, key, now) = (&connection.stream.request, connection.key(), Millis::now());
        let address = connection.stream.peer().map(|peer| peer.ip());
        let client = address.map_or(Client::Connection(key), Client::Address);
        let path = path_of(request);
        let public = self.services.files.public();
        let name = public.and_then(|public| public.name_of(path)).unwrap_or_default();
        let look_up = LookUp::new(key, client, path, name, request.accepted_codings());
        connection.await_look_up(&look_up, now);
        // In this order, so that a thread that has found the file also finds the parked connection.
        drop(self.connections.park(connection, Interest::Nothing));
        if self.queue.push(&look_up, now) {
            return None;
        }
        let connection = self.take_awaiting(&look_up)?;
        self.go_on_without_file(connection)
    }

    /// Responds to a request without the result of its lookup.
    pub(in crate::engine) fn go_on_without_file(&self, mut connection: Box<Connection>) -> Option<Move> {
        let look_up = connection.end_look_up()?;
        let public = self.services.files.public();
        let is_for_file = look_up.is_file() || public.is_some_and(|public| public.is_below_known_folder(&look_up.path));
        if !is_for_file {
            let path = String::from_utf8_lossy(&look_up.path);
            self.services.worker.log.about_peer(
                About::File,
                connection.stream.peers.client(),
                format_args!("passed a request on to the application without looking for {path:?}: the disk of public_dir does not answer"),
            );
            return Some(Move::ToApp(connection));
        }
        let without_app = &self.without_app;
        let close = without_app.respond_with_found(&mut connection, Err(Errno::TIMEDOUT))?;
        // In its next turn: requests behind it may be refused at once, too.
        let next = without_app.go_on_after(&mut connection, close, true);
        Some(Move::Settle(connection, next))
    }

    fn take_awaiting(&self, look_up: &Arc<LookUp>) -> Option<Box<Connection>> {
        let awaits = |connection: &Connection| connection.awaits(look_up);
        self.connections.parked().take_if(look_up.key, awaits)
    }

    fn is_over(&self, look_up: &Arc<LookUp>, found: io::Result<Found>, sink: &dyn Sink) {
        // The client may have gone, or may have waited too long.
        let Some(mut connection) = self.take_awaiting(look_up) else {
            return;
        };
        self.services.worker.guard("a lookup", || {
            connection.end_look_up();
            sink.put(match self.without_app.respond_with_found(&mut connection, found) {
                Some(close) => {
                    let next = self.without_app.go_on_after(&mut connection, close, false);
                    Move::Settle(connection, next)
                }
                None => Move::ToApp(connection),
            });
        });
    }
}

fn run(queue: &LookUps, threads: &Weak<LookUpThreads>) {
    loop {
        match queue.next(LOOK) {
            Item::Next(look_up) => look(threads, &look_up),
            Item::Idle if threads.strong_count() > 0 => {}
            Item::Idle | Item::Stopped => return,
        }
    }
}

/// Does a lookup on this thread. Does not keep the engine alive meanwhile, because the lookup may never return.
fn look(threads: &Weak<LookUpThreads>, look_up: &Arc<LookUp>) {
    let Some(here) = threads.upgrade() else { return };
    let (services, queue) = (Arc::clone(&here.services), Arc::clone(&here.queue));
    drop(here);
    let found = services.worker.guard("a lookup", || {
        services.worker.fault("look up");
        let reach = Reach::Disk(look_up.file_flag());
        let public = services.files.public();
        public.map_or(Ok(Found::Nothing), |public| {
            public.find(&look_up.path, &|| look_up.accepted, reach)
        })
    });
    queue.ended(look_up);
    let Some(here) = threads.upgrade() else { return };
    if let Some(sink) = here.sink.upgrade() {
        here.is_over(look_up, found.unwrap_or(Err(Errno::IO)), &*sink);
    }
}
