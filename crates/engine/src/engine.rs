//! What the threads of one worker share, and the moves of a connection between them: park, refuse, close, hand over.

use crate::clock::{as_milliseconds, http_date, milliseconds};
use crate::cluster::scoreboard::{Scoreboard, Slot};
use crate::cluster::transfers::Door;
use crate::cluster::waiting_room::WaitingRoom;
use crate::config::{Config, Logs};
use crate::connection::place::Place;
use crate::connection::{Connection, Next, Refusal};
use crate::drain::{Lifecycle, DRAIN_IDLE_MILLISECONDS};
use crate::files::Files;
use crate::home::Home;
use crate::limits::descriptors::{Counted, Permit};
use crate::limits::memory::Memory;
use crate::limits::uploads::Uploads;
use crate::observe::log_writer::LogWriter;
use crate::pubsub::Hub;
use crate::reactor::file_sender::FileSender;
use crate::reactor::listener::{Listener, Origin};
use crate::reactor::parked::Parked;
use crate::reactor::poller::{Interest, Poller};
use crate::reactor::{Reactor, Timer};
use crate::realtime::{Clients, Intake};
use crate::scheduler::monitor::Monitor;
use crate::scheduler::queue::{Job, ReadyQueue};
use crate::scheduler::serve::Cadence;
use crate::scheduler::states::Threads;
use crate::spool::Spool;
use fairlead_wire::http1::reason;
use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// Content types of the server's own responses.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain";

/// One worker's server. Made after the fork; it starts no thread before [`Engine::start`].
pub struct Engine {
    pub(crate) me: Weak<Engine>,
    pub(crate) config: Config,
    /// The addresses of the listeners, in the order that all workers share; the sockets are the reactor's.
    pub(crate) origins: Vec<Arc<Origin>>,
    pub(crate) poller: Poller,
    /// Held by the one thread that polls.
    pub(crate) reactor: Mutex<Reactor>,
    /// Connections that the reactor owns. Held for moments only, never while an app runs.
    pub(crate) parked: Mutex<Parked>,
    pub(crate) clients: Clients,
    pub(crate) intake: Intake,
    pub(crate) hub: Arc<Hub>,
    pub(crate) ready: ReadyQueue,
    pub(crate) uploads: Uploads,
    pub(crate) memory: Memory,
    pub(crate) timer: Timer,
    pub(crate) threads: Threads,
    pub(crate) cadence: Cadence,
    pub(crate) monitor: Monitor,
    pub(crate) file_sender: Arc<FileSender>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Files,
    pub(crate) waiting_room: Option<Arc<WaitingRoom>>,
    pub(crate) door: Door,
    pub(crate) log: LogWriter,
    /// A [`Lifecycle`].
    pub(crate) phase: AtomicU8,
    pub(crate) drain_deadline: AtomicU64,
    pub(crate) finished: (Mutex<bool>, Condvar),
    pub(crate) counters: Counters,
    home: Home,
    #[cfg(test)]
    pub(crate) faults: crate::fault::Faults,
}

pub(crate) enum Counters {
    Own(Box<Slot>),
    Shared(&'static Scoreboard, usize),
}

impl Engine {
    /// An engine for `listeners`, alone or as worker number `slot` of those that share `room`. What its clients subscribe to
    /// is known to `hub`, which all engines of a process share.
    ///
    /// # Errors
    /// If the poller cannot be made, or a folder that is served cannot be opened.
    pub fn new(
        config: Config,
        listeners: Vec<Listener>,
        logs: Logs,
        shared: Option<(Arc<WaitingRoom>, usize)>,
        hub: Arc<Hub>,
    ) -> std::io::Result<Arc<Engine>> {
        let poller = Poller::new()?;
        let files = Files::open(&config.files, &config.descriptors)?;
        let (room, counters) = match shared {
            Some((room, slot)) => {
                let scoreboard = room.scoreboard();
                (config.waiting_room.then_some(room), Counters::Shared(scoreboard, slot))
            }
            None => (None, Counters::Own(Box::default())),
        };
        let engine = Arc::new_cyclic(|me| Engine {
            me: me.clone(),
            origins: listeners.iter().map(|listener| Arc::clone(listener.origin())).collect(),
            reactor: Mutex::new(Reactor::new(listeners)),
            threads: Threads::new(config.max_threads),
            cadence: Cadence::default(),
            intake: Intake::new(config.messages_pending_bytes),
            spool: Spool::new(&config),
            config,
            poller,
            parked: Mutex::default(),
            clients: Clients::default(),
            hub,
            ready: ReadyQueue::default(),
            uploads: Uploads::default(),
            memory: Memory::default(),
            timer: Timer::default(),
            monitor: Monitor::default(),
            file_sender: Arc::default(),
            files,
            waiting_room: room,
            door: Door::default(),
            log: LogWriter::new(logs),
            phase: AtomicU8::new(Lifecycle::Serving as u8),
            drain_deadline: AtomicU64::new(u64::MAX),
            finished: Default::default(),
            counters,
            home: Home::here(),
            #[cfg(test)]
            faults: crate::fault::Faults::default(),
        });
        engine.counters().serving.store(1, SeqCst);
        Ok(engine)
    }

    /// What this worker tells the others.
    pub fn counters(&self) -> &Slot {
        match &self.counters {
            Counters::Own(slot) => slot,
            Counters::Shared(scoreboard, slot) => scoreboard.slot(*slot),
        }
    }

    /// Whether this is the process that serves, and not one that the app has forked ([`note_fork`](crate::note_fork)).
    pub fn is_at_home(&self) -> bool {
        self.home.is_here()
    }

    /// Whether other workers wait for the same listeners.
    pub(crate) fn has_siblings(&self) -> bool {
        matches!(self.counters, Counters::Shared(..))
    }

    /// Whether another worker has fewer connections than this one.
    pub(crate) fn is_ahead(&self) -> bool {
        let Counters::Shared(scoreboard, slot) = self.counters else {
            return false;
        };
        let own = self.counters().connections.load(Relaxed);
        scoreboard.fewest_elsewhere(slot).is_some_and(|fewest| own > fewest)
    }

    /// A permit for one more connection that is accepted, or why there is none.
    pub(crate) fn permit_connection(&self) -> Result<Permit, &'static str> {
        if !self.has_place_for_stranger() {
            return Err("max_connections are open");
        }
        let permit = self.config.descriptors.for_connection();
        permit.ok_or("the application's share of descriptors is left")
    }

    /// Takes in a connection that was just accepted. One that cannot be watched comes back.
    pub(crate) fn admit(
        &self,
        socket: OwnedFd,
        permit: Permit,
        peer: Option<SocketAddr>,
        origin: &Arc<Origin>,
        now: u64,
    ) -> Result<(), (Arc<Counted<OwnedFd>>, Errno)> {
        let socket = Arc::new(Counted::new(socket, permit));
        let place = Place::new(self);
        if let Err(error) = place.register(self, &socket, Some(Interest::Read)) {
            return Err((socket, error));
        }
        let connection = Connection::new(socket, place, Arc::clone(origin), peer, now);
        self.park(Box::new(connection), Interest::Read);
        Ok(())
    }

    /// Does with a connection what it asks for.
    pub(crate) fn settle(&self, mut connection: Box<Connection>, mut next: Next) {
        self.tell_uploads();
        if next == Next::Ready {
            next = self.serve_files(&mut connection);
        }
        if let Next::Refuse(refusal) = next {
            next = self.refuse(&mut connection, refusal);
        }
        if let Next::Send | Next::Wait(Interest::Write) = next {
            connection.output.settle(&self.spool);
        }
        match next {
            Next::Ready => self.enqueue(connection),
            Next::Send => self.hand_to_file_sender(connection),
            Next::Store => self.hand_to_spooler(connection),
            Next::Wait(interest) => self.park(connection, interest),
            Next::PutOff => self.put_off(connection),
            Next::Close | Next::Refuse(_) => self.close(connection),
        }
    }

    fn enqueue(&self, connection: Box<Connection>) {
        self.ready.push(Job::Request(connection));
        if self.is_stopped() {
            self.empty_queue();
        }
    }

    pub(crate) fn park(&self, mut connection: Box<Connection>, interest: Interest) {
        let mut parked = self.parked.lock();
        // With the lock, as in `expire` and `hurry_idle_connections`: who looks for what is due finds the connection in its
        // place or is told of it afterwards.
        let mut deadline = connection.deadline(&self.config);
        if connection.is_idle() {
            deadline = deadline.min(self.drain_deadline.load(Relaxed));
        }
        self.timer.expect(deadline, &self.poller);
        if connection.input.is_empty() {
            parked.keep_buffer(std::mem::take(&mut connection.input));
            if connection.output.is_empty() {
                parked.keep_buffer(connection.output.take_buffer());
            }
        }
        // The lock is held until the connection is in its place: an event may come at once, to another thread.
        // Whoever stops the engine marks it first and takes out the parked connections then, so nothing is put there unseen.
        if !self.is_stopped() && parked.want(connection.key(), interest, &self.poller).is_ok() {
            parked.put(connection, deadline);
        } else {
            drop(parked);
            self.close(connection);
        }
    }

    /// Answers a request that the app never sees.
    fn refuse(&self, connection: &mut Connection, refusal: Refusal) -> Next {
        self.counters().refused_requests.fetch_add(1, Relaxed);
        let peer = connection
            .peer()
            .map_or_else(|| "a local client".to_string(), |peer| peer.to_string());
        self.log.error(format_args!(
            "refused {} ({}) from {peer}",
            refusal.status, refusal.reason
        ));
        let plain = format!("{}\n", reason(refusal.status));
        let (content_type, body) = match self.files.page(refusal.status) {
            Some(page) => (HTML, page),
            None => (PLAIN_TEXT, plain.as_bytes()),
        };
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\ndate: {}\r\n{}connection: close\r\n\r\n",
            refusal.status,
            reason(refusal.status),
            body.len(),
            http_date(),
            if refusal.status == 503 { "retry-after: 1\r\n" } else { "" },
        );
        self.record_refusal(connection, refusal.status, body.len() as u64);
        let buffer = connection.output.buffer();
        buffer.extend_from_slice(head.as_bytes());
        buffer.extend_from_slice(body);
        connection.refused(milliseconds())
    }

    pub(crate) fn close(&self, connection: Box<Connection>) {
        drop(connection);
        self.finish_if_drained();
    }

    /// Forgets a connection whose socket belongs to somebody else now.
    pub(crate) fn let_go(&self, mut connection: Box<Connection>) {
        connection.place().give_away();
        self.close(connection);
    }

    /// Lets idle connections go soon: called once, when draining begins.
    pub(crate) fn hurry_idle_connections(&self, now: u64) {
        let deadline = now + DRAIN_IDLE_MILLISECONDS;
        self.drain_deadline.store(deadline, Relaxed);
        let mut parked = self.parked.lock();
        for connection in parked.take_all() {
            let own = connection.deadline(&self.config);
            let deadline = if connection.is_idle() { own.min(deadline) } else { own };
            parked.put(connection, deadline);
        }
        drop(parked);
        self.timer.expect(deadline, &self.poller);
    }

    /// How long an unsent response may stand still, in milliseconds.
    pub(crate) fn write_timeout(&self) -> u64 {
        as_milliseconds(self.config.write_timeout)
    }
}
