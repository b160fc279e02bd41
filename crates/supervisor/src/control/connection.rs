//! One connection of the control server: it reads the head of one request and sends one response, without blocking. A
//! body is not parsed but discarded. A viewer of the dashboard gets events instead of a response.
//!
//! ```text
//! reading ──▶ running ──▶ writing ──▶ lingering ──▶ closed
//!    │           └──▶ streaming                        ▲── the peer is gone, or too late: from everywhere but running
//!    └── malformed, too large, too late ─▲
//! ```

use super::event_stream::{EventStream, Left};
use super::poller::Interest;
use super::request::Request;
use super::response::{head_of_events, Response};
use fairlead_system::sockets::{limit_silence, SEND};
use rustix::io::Errno;
use rustix::net::{recv, send, shutdown, RecvFlags, Shutdown};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest head.
const HEAD_BYTES: usize = 8 * 1024;

/// Time for the peer to close after the response.
const LINGER: Duration = Duration::from_secs(1);

/// Milliseconds after which a viewer that acknowledges nothing is gone.
const OUT_OF_REACH: u32 = 20_000;

/// An accepted socket.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// Time limit for the head, and again for the response.
    patience: Duration,
    state: ConnectionState,
    /// The time when bytes last moved.
    active_at: Instant,
    /// Unread bytes may follow the head.
    body: bool,
}

#[derive(Debug)]
enum ConnectionState {
    Reading {
        head: Vec<u8>,
        until: Instant,
    },
    Running,
    Writing {
        unsent: Vec<u8>,
        sent: usize,
        until: Instant,
    },
    Streaming(EventStream),
    Lingering {
        until: Instant,
    },
    Closed,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, patience: Duration, now: Instant) -> Connection {
        let (head, until) = (Vec::new(), now + patience);
        Connection {
            socket,
            patience,
            state: ConnectionState::Reading { head, until },
            active_at: now,
            body: false,
        }
    }

    /// The events to poll for; `None` while a command runs, and when it is closed.
    pub(super) fn interest(&self) -> Option<Interest> {
        match &self.state {
            ConnectionState::Reading { .. } | ConnectionState::Lingering { .. } => Some(Interest::Read),
            ConnectionState::Writing { .. } => Some(Interest::Write),
            ConnectionState::Streaming(stream) if stream.deadline().is_some() => Some(Interest::ReadAndWrite),
            ConnectionState::Streaming(_) => Some(Interest::Read),
            ConnectionState::Running | ConnectionState::Closed => None,
        }
    }

    /// The deadline of the current state.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            ConnectionState::Reading { until, .. }
            | ConnectionState::Writing { until, .. }
            | ConnectionState::Lingering { until } => Some(*until),
            ConnectionState::Streaming(stream) => stream.deadline(),
            ConnectionState::Running | ConnectionState::Closed => None,
        }
    }

    pub(super) fn active_at(&self) -> Instant {
        self.active_at
    }

    /// Returns true if no complete request has arrived yet.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.state, ConnectionState::Reading { .. })
    }

    /// Returns true if a request has arrived, and its response is not ready yet.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, ConnectionState::Running)
    }

    /// Returns true if the peer gets events.
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.state, ConnectionState::Streaming(_))
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, ConnectionState::Closed)
    }

    /// Continues when the socket is ready. Returns the request when its head is complete; the request then runs until
    /// [`Connection::answer`].
    pub(super) fn advance(&mut self, now: Instant) -> Option<Request> {
        match self.state {
            ConnectionState::Writing { .. } => self.write(now),
            ConnectionState::Reading { .. } | ConnectionState::Lingering { .. } => return self.read(now),
            ConnectionState::Streaming(_) => self.advance_stream(now),
            ConnectionState::Running | ConnectionState::Closed => {}
        }
        None
    }

    /// Sends the response, or starts sending it.
    pub(super) fn answer(&mut self, response: &Response, now: Instant) {
        let (unsent, until) = (response.to_bytes(), now + self.patience);
        self.state = ConnectionState::Writing { unsent, sent: 0, until };
        self.write(now);
    }

    /// Begins a stream of events with these events.
    pub(super) fn stream(&mut self, events: &[u8], now: Instant) {
        // A viewer out of reach ends soon. Unix sockets have no such time.
        limit_silence(&self.socket, OUT_OF_REACH);
        let begin = [&*head_of_events(), events].concat().into();
        self.state = ConnectionState::Streaming(EventStream::new(begin, now + self.patience));
        self.advance_stream(now);
    }

    /// Sends an event of a stream, unless an earlier one is not sent yet.
    pub(super) fn send_event(&mut self, event: &Arc<[u8]>, now: Instant) {
        if let ConnectionState::Streaming(stream) = &mut self.state {
            stream.push(event, now + self.patience);
            self.advance_stream(now);
        }
    }

    fn advance_stream(&mut self, now: Instant) {
        if let ConnectionState::Streaming(stream) = &mut self.state {
            match stream.advance(&self.socket) {
                Ok(true) => self.active_at = now,
                Ok(false) => {}
                Err(Left) => self.close(),
            }
        }
    }

    /// Ends the connection if its deadline has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.is_reading() {
            self.refuse(408, "The request head did not arrive in time", now);
        } else {
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        self.state = ConnectionState::Closed;
    }

    /// Reads once.
    fn read(&mut self, now: Instant) -> Option<Request> {
        let mut part = [0; HEAD_BYTES];
        match recv(&self.socket, &mut part, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.close(),
            Ok((length, _)) => {
                self.active_at = now;
                return self.take(&part[..length], now);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(),
        }
        None
    }

    fn take(&mut self, part: &[u8], now: Instant) -> Option<Request> {
        let ConnectionState::Reading { head, .. } = &mut self.state else {
            return None;
        };
        let start = head.len().saturating_sub(3); // the end of a head may arrive in parts
        head.extend_from_slice(part);
        let Some(end) = end_of_head(head, start) else {
            if head.len() >= HEAD_BYTES {
                self.refuse(431, "The request head is too large", now);
            }
            return None;
        };
        let request = Request::parse(&head[..end]);
        self.begin(request.ok(), now)
    }

    fn begin(&mut self, request: Option<Request>, now: Instant) -> Option<Request> {
        match &request {
            Some(request) => {
                self.body = request.has_body();
                self.state = ConnectionState::Running;
            }
            None => self.refuse(400, "Malformed request", now),
        }
        request
    }

    fn refuse(&mut self, status: u16, text: &str, now: Instant) {
        self.body = true;
        self.answer(&Response::text(status, text), now);
    }

    /// Writes once.
    fn write(&mut self, now: Instant) {
        let ConnectionState::Writing { unsent, sent, .. } = &mut self.state else {
            return;
        };
        match send(&self.socket, &unsent[*sent..], SEND) {
            Ok(length) => {
                *sent += length;
                self.active_at = now;
                if *sent == unsent.len() {
                    self.finish(now);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(),
        }
    }

    /// Closing with unread bytes would reset the connection and lose the response. So unread bytes are discarded first.
    fn finish(&mut self, now: Instant) {
        if self.body && shutdown(&self.socket, Shutdown::Write).is_ok() {
            self.state = ConnectionState::Lingering { until: now + LINGER };
        } else {
            self.close();
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The length of the head without its empty line. Lines may end without a carriage return.
fn end_of_head(head: &[u8], start: usize) -> Option<usize> {
    let ends = (start..head.len()).filter(|place| head[*place] == b'\n');
    let mut ends = ends.filter(|place| matches!(head[place + 1..], [b'\n', ..] | [b'\r', b'\n', ..]));
    let end = ends.next()?;
    Some(if end > 0 && head[end - 1] == b'\r' {
        end - 1
    } else {
        end
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_does_not_take_the_response_is_dropped_in_time() {
        let (mut peer, socket) = UnixStream::pair().expect("a pair of sockets");
        let (now, patience) = (Instant::now(), Duration::from_secs(5));
        let mut connection = Connection::new(socket.into(), patience, now);
        peer.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("room for a request");
        assert!(connection.advance(now).is_some());
        assert_eq!((None, None), (connection.interest(), connection.deadline()));
        connection.answer(&Response::text(200, "x".repeat(10_000_000)), now);

        assert_eq!(
            (Some(Interest::Write), Some(now + patience)),
            (connection.interest(), connection.deadline())
        );
        connection.advance(now);
        assert!(!connection.is_closed());
        connection.expire(now + patience);
        assert!(connection.is_closed());
    }

    #[test]
    fn the_end_of_a_head_may_come_in_parts() {
        let (mut peer, socket) = UnixStream::pair().expect("a pair of sockets");
        let now = Instant::now();
        let mut connection = Connection::new(socket.into(), Duration::from_secs(5), now);
        let mut requests = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".iter().map(|byte| {
            peer.write_all(&[*byte]).expect("room for a byte");
            connection.advance(now)
        });

        assert!(requests.by_ref().take(26).all(|request| request.is_none()));
        assert!(requests.next().flatten().is_some());
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        let ends = [
            ("a\r\n\r\nb", Some(1)),
            ("a\n\nb", Some(1)),
            ("a\n\r\n", Some(1)),
            ("a\r\n\n", Some(1)),
            ("\r\n\r\n", Some(0)),
            ("a\r\n\r", None),
            ("a\r\nb\r\n", None),
            ("", None),
        ];
        for (head, end) in ends {
            assert_eq!(end, end_of_head(head.as_bytes(), 0), "{head:?}");
        }
    }
}
