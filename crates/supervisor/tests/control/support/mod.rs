//! A real server on port 0 in a thread with a loop, and its clients.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses a part")]

mod client;
mod host;

pub use client::{answer, Answer, Client};
pub use host::{FakeHost, Shared};

use fairlead_engine::Scoreboard;
use fairlead_supervisor::control::{
    Access, Asked, Child, ControlServer, Kind, Limits, Question, ReforkEffect, RestartCounts, ServerState, Status,
};
use fairlead_supervisor::machine::RecycleReason;
use fairlead_supervisor::settings::RubySettings;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time limit for each wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// 2026-01-02T03:04:05.678999Z
pub fn started_at() -> SystemTime {
    UNIX_EPOCH + Duration::new(1_767_323_045, 678_999_000)
}

pub fn child(index: usize) -> Child {
    Child {
        index,
        slot: index,
        pid: Some(200 + i32::try_from(index).unwrap()),
        generation: 1,
        booted: true,
        ending: false,
        started_at: started_at(),
        heartbeat_age: None,
    }
}

/// An empty scoreboard. It is too large for the stack of a test.
pub fn scoreboard() -> Arc<Scoreboard> {
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    let made = thread.spawn(|| Arc::new(Scoreboard::default()));
    made.unwrap().join().unwrap()
}

/// The status of a ready server. Without workers there is a sole process.
pub fn status(workers: usize) -> Status {
    Status {
        pid: 100,
        state: ServerState::Ready,
        generation: 1,
        started_at: started_at(),
        workers,
        restart: None,
        restarts: RestartCounts::default(),
        children: (0..workers.max(1)).map(child).collect(),
        addresses: vec!["http://127.0.0.1:80".into(), "unix:/run/é.sock".into()],
        max_threads: 5,
        version: "0.1.0".into(),
        ruby: RubySettings {
            engine: "ruby".into(),
            version: "3.4.1".into(),
            patchlevel: 0,
        },
        pause: None,
        recycled: vec![(RecycleReason::Memory, 3), (RecycleReason::Stuck, 1)],
        refork: ReforkEffect::default(),
        acme: None,
    }
}

pub fn access() -> Access {
    Access {
        token: Some("t".into()),
        url: "tcp://127.0.0.1:9293".into(),
        data_only: false,
    }
}

/// A server with parts that can be chosen before its start.
pub struct Builder {
    pub kind: Kind,
    pub limits: Limits,
    pub status: Status,
    pub scoreboard: Option<Arc<Scoreboard>>,
    pub answers: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            kind: Kind::Control(access()),
            limits: Limits::default(),
            status: status(2),
            scoreboard: Some(scoreboard()),
            answers: true,
        }
    }
}

impl Builder {
    pub fn start(self) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        self.start_on(listener.into(), address)
    }

    pub fn start_on(self, listener: OwnedFd, address: SocketAddr) -> Server {
        let (sender, pipes) = channel();
        let mut host = FakeHost::new(self.status, self.scoreboard);
        host.pipes = self.answers.then_some(sender);
        let shared = Arc::clone(&host.shared);
        let server = ControlServer::with_limits(vec![listener], &self.kind, self.limits).unwrap();
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let thread = std::thread::spawn(move || turn(server, host, stopped));
        Server {
            address,
            shared,
            pipes,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

/// The loop of the supervisor, until the other end of the pipe is closed.
fn turn(mut server: ControlServer, mut host: FakeHost, stopped: OwnedFd) {
    while !server.is_closed() {
        let rest = server.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let rest = rest.map(|rest| Timespec::try_from(rest).unwrap());
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut descriptors = [readable(server.descriptor()), PollFd::new(&stopped, PollFlags::IN)];
        poll(&mut descriptors, rest.as_ref()).unwrap();
        let stops = !descriptors[1].revents().is_empty();
        server.turn(Instant::now(), &mut host);
        if stops {
            server.close_gracefully(Instant::now());
        }
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    pub address: SocketAddr,
    pub shared: Arc<Shared>,
    pub pipes: Receiver<(Option<Question>, Vec<File>)>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn connect(&self) -> Client {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(socket)
    }

    /// Sends a request for this target, without waiting for the response.
    pub fn send(&self, target: &str) -> Client {
        let mut client = self.connect();
        client.write(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        client
    }

    pub fn get(&self, target: &str) -> Answer {
        self.send(target).answer()
    }

    /// A command, with the token.
    pub fn command(&self, name: &str) -> Answer {
        self.get(&format!("/{name}?token=t"))
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Status)) {
        change(self.shared.status.lock().unwrap().as_mut().unwrap());
    }

    /// The question to Ruby, `None` for a question to the workers, and the write ends of the pipes for the answers.
    pub fn question(&self) -> (Option<Question>, Vec<File>) {
        self.pipes.recv_timeout(PATIENCE).unwrap()
    }

    /// Stops the server, without waiting for it.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits for the end of the server.
    pub fn join(&mut self) {
        self.stop();
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
        assert!(ended.is_ok() || std::thread::panicking());
    }
}
