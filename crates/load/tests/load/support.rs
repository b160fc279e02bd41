//! Small servers that a test controls, and runs of the tool against them.

use crate::terminator::{terminate, Terms};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A `--timeout` for tests in which something never comes: long enough for everything that does come, even on a busy
/// machine.
pub(crate) const PATIENT: &str = "3";

/// Limit for any test; only a test that hangs takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Connections and requests that a server has seen so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicUsize,
    pub(crate) requests: AtomicUsize,
}

/// A server. Its threads end with their connections; the accepting thread ends with the process.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) seen: Arc<Seen>,
}

/// Writer for sending to the client; other threads may send, too.
pub(crate) type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// The server's end of a connection.
pub(crate) struct Peer {
    /// Number in the order of acceptance, from 0.
    pub(crate) number: usize,
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Output,
    shut_down: Box<dyn FnMut() -> io::Result<()> + Send>,
    seen: Arc<Seen>,
}

/// The two directions of an accepted stream, and the way to end the second.
type Stream = (
    Box<dyn Read + Send>,
    Box<dyn Write + Send>,
    Box<dyn FnMut() -> io::Result<()> + Send>,
);

fn halves(stream: UnixStream) -> io::Result<Stream> {
    let (reader, writer) = (stream.try_clone()?, stream.try_clone()?);
    Ok((
        Box::new(reader),
        Box::new(writer),
        Box::new(move || stream.shutdown(Shutdown::Write)),
    ))
}

/// A request as it arrived.
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Runs `serve` on a thread of its own for every connection; the connection closes when `serve` returns.
    pub(crate) fn start(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let accept = move || -> io::Result<Stream> {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let (reader, writer) = (stream.try_clone()?, stream.try_clone()?);
            Ok((
                Box::new(reader),
                Box::new(writer),
                Box::new(move || stream.shutdown(Shutdown::Write)),
            ))
        };
        Server {
            url,
            seen: Server::spawn(accept, serve),
        }
    }

    /// The same on a unix socket, with the shortest possible queue of connections.
    pub(crate) fn start_unix(
        path: &Path,
        serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        net::bind(&listener, &SocketAddrUnix::new(path).expect("a short path")).expect("a free path");
        net::listen(&listener, 0).expect("bound");
        let listener = UnixListener::from(listener);
        let accept = move || -> io::Result<Stream> { halves(listener.accept()?.0) };
        Server {
            url: format!("unix://{}", path.display()),
            seen: Server::spawn(accept, serve),
        }
    }

    /// The same behind TLS; its URL names `localhost`.
    pub(crate) fn start_secure(
        terms: Terms,
        serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let accept = move || -> io::Result<Stream> {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            halves(terminate(stream, terms.clone())?)
        };
        Server {
            url: format!("https://localhost:{port}/"),
            seen: Server::spawn(accept, serve),
        }
    }

    fn spawn(
        accept: impl Fn() -> io::Result<Stream> + Send + 'static,
        serve: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Seen> {
        let seen = Arc::new(Seen::default());
        let (serve, all_seen) = (Arc::new(serve), Arc::clone(&seen));
        std::thread::spawn(move || {
            while let Ok((reader, writer, shut_down)) = accept() {
                let number = all_seen.connections.fetch_add(1, Ordering::SeqCst);
                let (reader, seen) = (BufReader::new(reader), Arc::clone(&all_seen));
                let mut peer = Peer {
                    number,
                    reader,
                    writer: Arc::new(Mutex::new(writer)),
                    shut_down,
                    seen,
                };
                let serve = Arc::clone(&serve);
                // Every run ends with clients that go away.
                std::thread::spawn(move || drop(serve(&mut peer)));
            }
        });
        seen
    }

    /// A server that sends the same response to every request and keeps connections open.
    pub(crate) fn answering(answer: &'static [u8]) -> Server {
        Server::start(move |peer| loop {
            peer.request()?;
            peer.send(answer)?;
        })
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

impl Peer {
    /// The next request, head and content; an error if the client has closed.
    pub(crate) fn request(&mut self) -> io::Result<Request> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.seen.requests.fetch_add(1, Ordering::SeqCst);
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("the tool sends numbers"))];
        self.reader.read_exact(&mut body)?;
        Ok(Request { head, body })
    }

    /// The head of the next request.
    pub(crate) fn head(&mut self) -> io::Result<()> {
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output().lock().expect("no panic").write_all(bytes)
    }

    pub(crate) fn output(&self) -> Output {
        Arc::clone(&self.writer)
    }

    pub(crate) fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact(bytes)
    }

    /// Counts a request that was not read with [`Peer::request`].
    pub(crate) fn count_request(&self) {
        self.seen.requests.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of connections that the server has accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Holds the connection without a response until the client closes it.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink()).map(drop)
    }
}

impl Drop for Peer {
    /// Ends our direction, then reads the remaining input: closing with unread input would discard sent data.
    fn drop(&mut self) {
        let _ = (self.shut_down)().and_then(|()| self.hold());
    }
}

/// Output and exit status of the tool.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) fn spawn(args: &[&str]) -> Child {
    spawn_with(&[], args)
}

/// The same with environment variables.
fn spawn_with(environment: &[(&str, &str)], args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead-load"));
    command
        .args(args)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("the tool was built")
}

/// Waits until the tool ends by itself.
pub(crate) fn finish(mut child: Child) -> Outcome {
    let mut pipes = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let reader = std::thread::spawn(move || {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        pipes
            .0
            .read_to_string(&mut stdout)
            .and_then(|_| pipes.1.read_to_string(&mut stderr))
            .expect("UTF-8");
        (stdout, stderr)
    });
    if !eventually(|| child.try_wait().expect("our child").is_some()) {
        child.kill().expect("our child");
    }
    let status = child
        .wait()
        .expect("our child")
        .code()
        .expect("the tool ends by itself, in time");
    let (stdout, stderr) = reader.join().expect("read");
    Outcome { status, stdout, stderr }
}

/// Waits until `condition` holds; returns `false` if it does not before the deadline.
pub(crate) fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > DEADLINE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Runs the tool to its end.
pub(crate) fn bench(args: &[&str]) -> Outcome {
    finish(spawn(args))
}

/// The same with environment variables.
pub(crate) fn bench_with(environment: &[(&str, &str)], args: &[&str]) -> Outcome {
    finish(spawn_with(environment, args))
}

/// Runs the tool with `--json` and returns the document; the exit status must be `status`.
pub(crate) fn measure(status: i32, args: &[&str]) -> Value {
    let outcome = bench(&[args, &["--json"]].concat());
    assert_eq!(outcome.status, status, "{outcome:?}");
    outcome.json()
}
