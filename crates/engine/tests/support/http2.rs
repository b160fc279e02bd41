//! A client of HTTP/2: the client side of `h2` over a socket, driven by the waiting test.

use super::{Response, PATIENCE};
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A non-blocking socket with tokio's traits.
struct Io(TcpStream);

fn pending<T>(result: std::io::Result<T>) -> Poll<std::io::Result<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        other => Poll::Ready(other),
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let mut bytes = vec![0; space.remaining().min(65_536)];
        pending((&self.0).read(&mut bytes)).map_ok(|count| space.put_slice(&bytes[..count]))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        pending((&self.0).write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(self.0.shutdown(std::net::Shutdown::Write))
    }
}

/// See the head of this file.
pub struct Http2Client {
    socket: TcpStream,
    connection: Connection<Io, Bytes>,
    pub sender: SendRequest<Bytes>,
    /// The result at the end of the connection.
    pub end: Option<Result<(), h2::Error>>,
}

/// A request that was sent: its response, and the stream for its body.
pub struct Asked {
    pub response: ResponseFuture,
    pub body: SendStream<Bytes>,
}

/// A GET for `path`.
pub fn get(path: &str) -> Request<()> {
    request("GET", path)
}

pub fn request(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://test{path}");
    Request::builder().method(method).uri(uri).body(()).expect("a request")
}

impl Http2Client {
    pub fn connect(address: SocketAddr) -> Http2Client {
        Http2Client::with(address, &Builder::new())
    }

    /// A client with its own settings, such as small windows.
    pub fn with(address: SocketAddr, builder: &Builder) -> Http2Client {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let io = Io(socket.try_clone().expect("a descriptor"));
        let mut handshake = Box::pin(builder.handshake(io));
        let context = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(made) = handshake.as_mut().poll(context) else {
            panic!("the preface has to wait")
        };
        let (sender, connection) = made.expect("a session");
        Http2Client {
            socket,
            connection,
            sender,
            end: None,
        }
    }

    /// Waits until the server has sent the maximum number of streams.
    pub fn wait_for_settings(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.connection.max_concurrent_send_streams() > 10_000 {
            assert!(Instant::now() < until, "no SETTINGS");
            self.advance();
            std::thread::yield_now();
        }
    }

    /// Sends and receives as much as possible without waiting.
    pub fn advance(&mut self) {
        let context = &mut Context::from_waker(Waker::noop());
        if self.end.is_none() {
            if let Poll::Ready(end) = Pin::new(&mut self.connection).poll(context) {
                self.end = Some(end);
            }
        }
    }

    /// Sends and receives until `ready` returns a value.
    pub fn wait<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            self.advance();
            if let Poll::Ready(value) = ready(&mut Context::from_waker(Waker::noop())) {
                self.advance();
                return value;
            }
            assert!(
                Instant::now() < until,
                "it did not happen in time: {what}; {:?}",
                self.end
            );
            let step = Timespec {
                tv_sec: 0,
                tv_nsec: 2_000_000,
            };
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&step));
        }
    }

    /// Sends a request; without `more`, its head ends the stream.
    pub fn ask(&mut self, request: Request<()>, more: bool) -> Asked {
        let mut sender = self.sender.clone();
        self.wait("room for a stream", |context| sender.poll_ready(context))
            .expect("an open connection");
        let (response, body) = sender.send_request(request, !more).expect("an open connection");
        self.sender = sender;
        self.advance();
        Asked { response, body }
    }

    /// Sends part of a body, as far and as fast as the windows allow.
    pub fn upload(&mut self, body: &mut SendStream<Bytes>, mut bytes: &[u8], ends: bool) -> Result<(), h2::Error> {
        while !bytes.is_empty() {
            body.reserve_capacity(bytes.len());
            let room = self.wait("a window", |context| match body.capacity() {
                0 => body.poll_capacity(context).map(|room| room.unwrap_or(Ok(0))),
                room => Poll::Ready(Ok(room)),
            })?;
            let now = room.min(bytes.len());
            body.send_data(Bytes::copy_from_slice(&bytes[..now]), ends && now == bytes.len())?;
            bytes = &bytes[now..];
            self.advance();
        }
        Ok(())
    }

    /// The head of the response.
    pub fn head(&mut self, asked: &mut Asked) -> Result<http::Response<RecvStream>, h2::Error> {
        let response = &mut asked.response;
        self.wait("a response", |context| Pin::new(&mut *response).poll(context))
    }

    /// The interim response, if it comes first.
    pub fn interim(&mut self, asked: &mut Asked) -> Option<http::StatusCode> {
        let response = &mut asked.response;
        let interim = self.wait("an interim response", |context| response.poll_informational(context));
        interim.map(|interim| interim.expect("a head").status())
    }

    /// The next piece of a body; empty at its end.
    pub fn piece(&mut self, body: &mut RecvStream) -> Result<Bytes, h2::Error> {
        let piece = self.wait("content", |context| body.poll_data(context));
        let piece = piece.unwrap_or_else(|| Ok(Bytes::new()))?;
        body.flow_control().release_capacity(piece.len())?;
        self.advance();
        Ok(piece)
    }

    /// The whole response.
    pub fn response(&mut self, mut asked: Asked) -> Result<Response, h2::Error> {
        let (parts, mut body) = self.head(&mut asked)?.into_parts();
        let mut bytes = Vec::new();
        while !body.is_end_stream() {
            bytes.extend_from_slice(&self.piece(&mut body)?);
        }
        let mut head = format!("HTTP/2 {}\r\n", parts.status.as_u16());
        for (name, value) in &parts.headers {
            head += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
        }
        Ok(Response {
            status: parts.status.as_u16(),
            head: head + "\r\n",
            body: bytes,
        })
    }

    pub fn get(&mut self, path: &str) -> Response {
        let asked = self.ask(get(path), false);
        self.response(asked).expect("a response")
    }

    /// Waits until the connection has ended. Returns the reason in the server's GOAWAY, if there was one.
    pub fn ended(&mut self) -> Option<h2::Reason> {
        let until = Instant::now() + PATIENCE;
        while self.end.is_none() {
            assert!(Instant::now() < until, "the connection is still open");
            self.advance();
            std::thread::yield_now();
        }
        self.end.as_ref().and_then(|end| end.as_ref().err()?.reason())
    }
}
