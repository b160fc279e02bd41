//! The server: works in turns.

use super::commands::{Access, Commands, Outcome};
use super::connections::Connections;
use super::health;
use super::host::Host;
use super::listeners::{Failure, Listeners};
use super::pages::Pages;
use super::poller::{Key, Poller};
use super::questions::Questions;
use super::request::Request;
use super::response::Response;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Most connections that are accepted before the others get their turn.
const ACCEPTS: usize = 16;

/// Most viewers of the dashboard. The other connections are for commands and probes.
const VIEWERS: usize = 16;

/// Interval between reads of the counters, for the peaks and the dashboard.
const LOOK: Duration = Duration::from_secs(1);

/// The purpose of a server.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Commands, and the probes.
    Control(Access),
    /// The probes only.
    Health,
}

/// Time limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a peer to send its request, and again to take the response.
    pub peer: Duration,
    /// For Ruby to answer a question.
    pub ruby: Duration,
    /// For responses when the server ends.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            peer: Duration::from_secs(5),
            ruby: Duration::from_secs(3),
            grace: Duration::from_secs(1),
        }
    }
}

/// The control server, or the health endpoints. Dropping it closes all sockets.
#[derive(Debug)]
pub struct ControlServer {
    poller: Poller,
    listeners: Listeners,
    connections: Connections,
    questions: Questions,
    /// `None` for the health endpoints.
    commands: Option<Commands>,
    pages: Pages,
    /// The time of the next read of the counters.
    look_at: Instant,
    grace: Duration,
    /// The deadline for responses; `None` until the server ends.
    closing: Option<Instant>,
}

impl ControlServer {
    /// Serves on these listeners, with the usual limits.
    pub fn new(listeners: Vec<OwnedFd>, kind: &Kind) -> io::Result<ControlServer> {
        ControlServer::with_limits(listeners, kind, Limits::default())
    }

    /// Serves on these listeners.
    pub fn with_limits(listeners: Vec<OwnedFd>, kind: &Kind, limits: Limits) -> io::Result<ControlServer> {
        let mut poller = Poller::new()?;
        Ok(ControlServer {
            listeners: Listeners::new(listeners, &mut poller)?,
            poller,
            connections: Connections::new(limits.peer),
            questions: Questions::new(limits.ruby),
            commands: commands(kind),
            pages: Pages::default(),
            look_at: Instant::now(),
            grace: limits.grace,
            closing: None,
        })
    }

    /// Becomes readable when [`ControlServer::turn`] has work to do.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.descriptor()
    }

    /// The latest time for the next call of [`ControlServer::turn`].
    pub fn deadline(&self) -> Option<Instant> {
        let look_at = self.commands.as_ref().map(|_| self.look_at);
        let others = [
            self.listeners.deadline(),
            self.questions.deadline(),
            self.closing,
            look_at,
        ];
        others.into_iter().chain([self.connections.deadline()]).flatten().min()
    }

    /// Returns true if no client is connected.
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty()
    }

    /// Does all work that is possible now.
    pub fn turn(&mut self, now: Instant, host: &mut dyn Host) {
        self.look(now, host);
        let (listeners, others): (Vec<Key>, Vec<Key>) = self
            .poller
            .ready()
            .into_iter()
            .partition(|key| self.listeners.contains(*key));
        others.into_iter().for_each(|key| self.advance(key, now, host));
        listeners.into_iter().for_each(|key| self.accept(key, now, host));
        self.answer_questions(now);
        self.connections.expire(now, &self.poller);
        self.listeners.expire(now, &self.poller);
        self.end(now);
    }

    /// Takes over the history of a server that ends.
    pub fn succeed(&mut self, former: &mut ControlServer) {
        if let (Some(commands), Some(former)) = (&mut self.commands, former.commands.take()) {
            commands.succeed(former);
        }
    }

    /// Stops listening. Pending responses are still sent: call `turn` as before until [`ControlServer::is_closed`].
    pub fn close_gracefully(&mut self, now: Instant) {
        self.closing.get_or_insert(now + self.grace);
        self.listeners.close(&self.poller);
        self.connections.drop_unanswered(&self.poller);
    }

    /// Returns true once it has stopped and no response is pending.
    pub fn is_closed(&self) -> bool {
        self.closing.is_some() && self.connections.is_empty()
    }

    fn advance(&mut self, key: Key, now: Instant, host: &mut dyn Host) {
        if !self.connections.contains(key) {
            return self.questions.advance(key, &self.poller);
        }
        if let Some(request) = self.connections.advance(key, now, &self.poller) {
            self.serve(key, &request, now, host);
        }
    }

    fn serve(&mut self, key: Key, request: &Request, now: Instant, host: &mut dyn Host) {
        let outcome = match &mut self.commands {
            Some(commands) => commands.call(request, host),
            None => probe(request, host),
        };
        let response = match outcome {
            Outcome::Answer(response) => Some(response),
            Outcome::Metrics => Some(self.pages.answer(request, now, host)),
            Outcome::Ask(what) => self.questions.ask(what, key, now, &mut self.poller, host),
            Outcome::Watch => self.watch(key, now, host),
        };
        if let Some(response) = response {
            self.connections.answer(key, &response, now, &self.poller);
        }
    }

    /// Sends the events of the dashboard. Returns a response if there are too many viewers.
    fn watch(&mut self, key: Key, now: Instant, host: &mut dyn Host) -> Option<Response> {
        if self.connections.viewers() >= VIEWERS {
            return Some(Response::text(503, "Too many viewers at once"));
        }
        let events = self.commands.as_mut()?.dashboard().opening(host);
        self.connections.stream(key, &events, now, &self.poller);
        None
    }

    fn accept(&mut self, key: Key, now: Instant, host: &mut dyn Host) {
        for _ in 0..ACCEPTS {
            match self.listeners.accept(key, now, &self.poller) {
                Ok(Some(socket)) => self.admit(socket, now, host),
                Ok(None) => return,
                Err(failure) => return self.make_room(&failure, host),
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd, now: Instant, host: &mut dyn Host) {
        if let Some(key) = self.connections.add(socket, now, &mut self.poller) {
            self.advance(key, now, host); // most have sent their request by now
        }
    }

    /// Logs why connections cannot be accepted, once for all failures in a row.
    fn make_room(&mut self, failure: &Failure, host: &mut dyn Host) {
        self.connections.drop_silent(&self.poller);
        if failure.is_first {
            host.failed(&format!("cannot accept a connection: {}", failure.error));
        }
    }

    fn answer_questions(&mut self, now: Instant) {
        for (askers, response) in self.questions.take_done(now, &self.poller) {
            for key in askers {
                self.connections.answer(key, &response, now, &self.poller);
            }
        }
    }

    fn look(&mut self, now: Instant, host: &mut dyn Host) {
        if let Some(commands) = self.commands.as_mut().filter(|_| self.look_at <= now) {
            commands.look(now, host);
            self.look_at = now + LOOK;
            if self.connections.viewers() > 0 {
                let event = commands.dashboard().event(host);
                self.connections.send_event(&event, now, &self.poller);
            }
        }
    }

    fn end(&mut self, now: Instant) {
        if self.closing.is_some_and(|until| until <= now) {
            self.connections.clear(&self.poller);
            self.questions.clear(&self.poller);
        }
    }
}

fn commands(kind: &Kind) -> Option<Commands> {
    match kind {
        Kind::Control(access) => Some(Commands::new(access)),
        Kind::Health => None,
    }
}

/// The health endpoints, and the metrics.
fn probe(request: &Request, host: &dyn Host) -> Outcome {
    if request.path() == b"/metrics" {
        return Outcome::Metrics;
    }
    let answer = health::answer(request, host);
    Outcome::Answer(answer.unwrap_or_else(|| Response::text(404, "Unsupported action")))
}
