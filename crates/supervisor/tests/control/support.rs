//! A real server on port 0 in a thread with a loop, and its clients.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use fairlead_engine::Scoreboard;
use fairlead_supervisor::control::{
    Access, Asked, Child, ControlServer, Host, Kind, Limits, Question, State, Status, WorkerAnswer,
};
use fairlead_supervisor::settings::RubySettings;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time for anything in a test.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The end for reading, and the one for writing.
fn pipe() -> (OwnedFd, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader, writer.into())
}

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

/// Of a server that is ready. Without workers there is a sole process.
pub fn status(workers: usize) -> Status {
    Status {
        pid: 100,
        state: State::Ready,
        generation: 1,
        started_at: started_at(),
        workers,
        restart: None,
        children: (0..workers.max(1)).map(child).collect(),
        addresses: vec!["http://127.0.0.1:80".into(), "unix:/run/é.sock".into()],
        max_threads: 5,
        version: "0.1.0".into(),
        ruby: RubySettings {
            engine: "ruby".into(),
            version: "3.4.1".into(),
            patchlevel: 0,
        },
        acme: None,
    }
}

/// State that the server and a test share.
#[derive(Default)]
pub struct Shared {
    pub asked: Mutex<Vec<Asked>>,
    /// The reason for which the host refuses; `None` if it takes requests.
    pub refusal: Mutex<Option<String>>,
    pub failures: Mutex<Vec<String>>,
    pub status: Mutex<Option<Status>>,
}

/// Stands in for the supervisor.
pub struct FakeHost {
    pub shared: Arc<Shared>,
    pub scoreboard: Option<Arc<Scoreboard>>,
    /// Gets the other ends of the pipes. Without it, Ruby cannot be asked.
    pub pipes: Option<Sender<(Option<Question>, Vec<File>)>>,
}

impl Host for FakeHost {
    fn status(&self) -> Status {
        self.shared.status.lock().unwrap().clone().unwrap()
    }

    fn scoreboard(&self) -> Option<&Scoreboard> {
        self.scoreboard.as_deref()
    }

    fn ask(&mut self, asked: Asked) -> Result<(), String> {
        if let Some(reason) = self.shared.refusal.lock().unwrap().clone() {
            return Err(reason);
        }
        self.shared.asked.lock().unwrap().push(asked);
        Ok(())
    }

    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd> {
        let pipes = self.pipes.as_ref()?;
        let (reader, writer) = pipe();
        pipes.send((Some(question), vec![writer])).unwrap();
        Some(reader)
    }

    fn ask_workers(&mut self) -> Vec<WorkerAnswer> {
        let children = self.status().children;
        let ends: Vec<(OwnedFd, File)> = children.iter().map(|_| pipe()).collect();
        let (readers, writers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        self.pipes.as_ref().unwrap().send((None, writers)).unwrap();
        let answer = |(child, reader): (Child, OwnedFd)| WorkerAnswer {
            worker: Some(child.index),
            pid: child.pid,
            pipe: Some(reader),
        };
        children.into_iter().zip(readers).map(answer).collect()
    }

    fn failed(&mut self, reason: &str) {
        self.shared.failures.lock().unwrap().push(reason.to_owned());
    }
}

pub fn access() -> Access {
    Access {
        token: Some("t".into()),
        url: "tcp://127.0.0.1:9293".into(),
        data_only: false,
    }
}

/// A server of which parts can be chosen before it starts.
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
            scoreboard: Some(Arc::default()),
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
        let shared = Arc::new(Shared::default());
        *shared.status.lock().unwrap() = Some(self.status);
        let (sender, pipes) = channel();
        let host = FakeHost {
            shared: Arc::clone(&shared),
            scoreboard: self.scoreboard,
            pipes: self.answers.then_some(sender),
        };
        let server = ControlServer::with_limits(vec![listener], &self.kind, self.limits).unwrap();
        let (stopped, stop) = pipe();
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

/// A server that runs. Dropping it ends it.
pub struct Server {
    pub address: SocketAddr,
    pub shared: Arc<Shared>,
    pub pipes: Receiver<(Option<Question>, Vec<File>)>,
    stop: Option<File>,
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

    /// The question that Ruby was asked, `None` if it asked the workers, and the ends of the pipes for the answers.
    pub fn question(&self) -> (Option<Question>, Vec<File>) {
        self.pipes.recv_timeout(PATIENCE).unwrap()
    }

    /// Has the server end, without waiting for it.
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

/// A connection to the server.
pub struct Client(pub TcpStream);

/// Status, type and body.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub kind: String,
    pub body: String,
}

impl Client {
    pub fn write(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).unwrap();
    }

    /// All that comes until the server closes the connection.
    pub fn answer(&mut self) -> Answer {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        assert_eq!(Some(body.len().to_string().as_str()), field("content-length"));
        assert_eq!(
            (Some("close"), Some("no-store")),
            (field("connection"), field("cache-control"))
        );
        Answer {
            status: head[9..12].parse().unwrap(),
            kind: field("content-type").unwrap().to_owned(),
            body: body.to_owned(),
        }
    }

    /// Waits until the server closes the connection or sends something. Returns true if it has closed.
    pub fn is_dropped(&mut self) -> bool {
        !matches!(self.0.read(&mut [0]), Ok(1..))
    }

    /// Returns true if nothing has come, not even an end.
    pub fn is_silent(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let found = self.0.peek(&mut [0]).map_err(|error| error.kind());
        self.0.set_nonblocking(false).unwrap();
        found == Err(std::io::ErrorKind::WouldBlock)
    }
}

pub fn answer(status: u16, kind: &str, body: &str) -> Answer {
    let (kind, body) = (kind.to_owned(), body.to_owned());
    Answer { status, kind, body }
}
