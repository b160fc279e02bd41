//! Relays: for a hijacked connection, if bytes beyond the request were read, or if its transport is not a plain socket.
//! The app gets one end of a socket pair. From it, it first reads the bytes that were read ahead, and then the bytes
//! that the peer sends; the other direction is forwarded as well. One native thread serves all relays of a process, in
//! turn. It starts with the first relay and ends with the last one.

use crate::limits::descriptors::{Counted, Descriptors, Permit};
use crate::sync::Mutex;
use crate::transport::{Link, Shutdown, Socket};
use fairlead_system::{sockets, wake_up};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::{self, Errno};
use rustix::net::SocketType;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

/// Bytes buffered in one direction. While one side does not take them, the other is not read.
const PIPE_BYTES: usize = 64 * 1024;

/// Bytes that one direction carries before other directions get their turn.
const TURN_BYTES: usize = 2 * PIPE_BYTES;

/// The relays of a process.
static RELAYS: OnceLock<Relays> = OnceLock::new();

/// The relays of one process, and of its forked children. A child inherits neither the thread nor a usable lock, which
/// that thread may have held during the fork, so it gets its own.
struct Relays {
    process: u32,
    entrance: Mutex<Option<Entrance>>,
    child: OnceLock<Box<Relays>>,
}

impl Relays {
    fn new(process: u32) -> Relays {
        Relays {
            process,
            entrance: Mutex::new(None),
            child: OnceLock::new(),
        }
    }

    fn of(process: u32) -> &'static Relays {
        let mut relays = RELAYS.get_or_init(|| Relays::new(process));
        while relays.process != process {
            relays = relays.child.get_or_init(|| Box::new(Relays::new(process)));
        }
        relays
    }
}

/// Passes new relays to the thread.
struct Entrance {
    new: Vec<Relay>,
    waker: Arc<OwnedFd>,
}

/// Carries bytes from one socket to the other.
struct Pipe {
    from: Link,
    to: Link,
    bytes: Vec<u8>,
    sent: usize,
    /// `to` has taken bytes that the kernel does not have.
    has_rest: bool,
    /// The end was read, but not yet forwarded.
    is_over: bool,
    has_ended: bool,
}

struct Relay {
    pipes: [Pipe; 2],
    /// Permit for the signal of a peer without a descriptor of its own.
    _signal: Option<Permit>,
}

/// Opens a relay to the peer of `transport` and returns its other end, from which `ahead` is read first.
///
/// # Errors
/// If there are no descriptors left, or no thread can be started.
pub(crate) fn open(transport: &Link, ahead: Vec<u8>, descriptors: &Arc<Descriptors>) -> std::io::Result<OwnedFd> {
    let permit = descriptors.for_file().ok_or(Errno::MFILE)?;
    let signal = match transport.own_events() {
        Some(_) => Some(descriptors.for_file().ok_or(Errno::MFILE)?),
        None => None,
    };
    let (theirs, ours) = sockets::pair(SocketType::STREAM, false)?;
    let ours: Link = Arc::new(Socket::new(Counted::new(ours, permit)));
    begin(Relay::between(transport, &ours, ahead, Vec::new(), signal))?;
    Ok(theirs)
}

/// Opens a relay between the peer of `transport` and `socket`. `ahead` was received from the peer before, and `behind`
/// from the socket.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn join(transport: &Link, socket: &Link, ahead: Vec<u8>, behind: Vec<u8>) -> std::io::Result<()> {
    begin(Relay::between(transport, socket, ahead, behind, None))
}

/// Passes a relay to the thread.
fn begin(relay: Relay) -> std::io::Result<()> {
    let relays = Relays::of(std::process::id());
    let mut entrance = relays.entrance.lock();
    match &mut *entrance {
        Some(entrance) => {
            entrance.new.push(relay);
            wake_up::ring(&entrance.waker);
        }
        None => {
            let waker = Arc::new(wake_up::open()?);
            let thread_waker = Arc::clone(&waker);
            std::thread::Builder::new()
                .name("fairlead relays".into())
                .spawn(move || carry(relays, &thread_waker))?;
            *entrance = Some(Entrance {
                new: vec![relay],
                waker,
            });
        }
    }
    Ok(())
}

impl Relay {
    /// `ahead` is for `ours`, and `behind` for the peer. `signal`: a permit for the descriptor of the peer's signal.
    fn between(peer: &Link, ours: &Link, ahead: Vec<u8>, behind: Vec<u8>, signal: Option<Permit>) -> Relay {
        let (mut inward, mut outward) = (Pipe::new(peer, ours), Pipe::new(ours, peer));
        (inward.bytes, outward.bytes) = (ahead, behind);
        // The previous owner of the connection may have left unsent bytes.
        outward.has_rest = true;
        Relay {
            pipes: [inward, outward],
            _signal: signal,
        }
    }

    /// The owner's socket, if the owner has ended its direction and the peer has not. An owner that closes its socket
    /// does not wait for the peer.
    fn left(&self) -> Option<&Link> {
        let [inward, outward] = &self.pipes;
        (outward.has_ended && !inward.has_ended).then_some(&outward.from)
    }

    /// The events to poll for on both sides, until a pipe can continue.
    fn waits_for(&self) -> impl Iterator<Item = (&Link, PollFlags)> {
        let [inward, outward] = &self.pipes;
        let peer = inward.waits_for(PollFlags::IN) | outward.waits_for(PollFlags::OUT);
        let ours = outward.waits_for(PollFlags::IN) | inward.waits_for(PollFlags::OUT);
        // Always watches the owner's socket for hang-up.
        let is_any = |(_, wanted): &(&Link, PollFlags)| !wanted.is_empty();
        let peer = Some((&inward.from, peer)).filter(is_any);
        let ours = Some((&outward.from, ours)).filter(|ours| is_any(ours) || self.left().is_some());
        peer.into_iter().chain(ours)
    }

    /// Returns true if both directions have ended. An HTTP/2 stream is then no longer watched.
    fn end_if_over(&self) -> bool {
        let is_over = self.pipes.iter().all(|pipe| pipe.has_ended);
        if is_over {
            let [inward, _] = &self.pipes;
            let _ = inward.from.shut_down(Shutdown::Both);
        }
        is_over
    }

    fn end_if_left(&mut self) {
        if self.left().is_some_and(sockets::is_gone) {
            let [inward, _] = &mut self.pipes;
            let _ = inward.from.shut_down(Shutdown::Both);
            inward.has_ended = true;
        }
    }
}

fn carry(shared: &Relays, waker: &OwnedFd) {
    let mut relays: Vec<Relay> = Vec::new();
    loop {
        {
            let mut entrance = shared.entrance.lock();
            if let Some(entrance) = &mut *entrance {
                relays.append(&mut entrance.new);
            }
            if relays.is_empty() {
                *entrance = None;
                return;
            }
        }
        wait(waker, &relays);
        wake_up::take(waker);
        for pipe in relays.iter_mut().flat_map(|relay| &mut relay.pipes) {
            if pipe.carry().is_err() {
                pipe.has_ended = true;
                let _ = pipe.from.shut_down(Shutdown::Both);
                let _ = pipe.to.shut_down(Shutdown::Both);
            }
        }
        relays.iter_mut().for_each(Relay::end_if_left);
        relays.retain(|relay| !relay.end_if_over());
    }
}

/// Waits until one of the pipes can continue.
fn wait(waker: &OwnedFd, relays: &[Relay]) {
    let sides = relays.iter().flat_map(Relay::waits_for);
    let signals: Vec<_> = sides.map(|(side, wanted)| side.signal(wanted)).collect();
    let mut fds = vec![PollFd::new(waker, PollFlags::IN)];
    fds.extend(signals.iter().map(|(signal, event)| PollFd::new(signal, *event)));
    let mut pipes = relays.iter().flat_map(|relay| &relay.pipes);
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut fds, pipes.any(Pipe::holds_received).then_some(&at_once));
}

impl Pipe {
    fn new(from: &Link, to: &Link) -> Pipe {
        Pipe {
            from: Arc::clone(from),
            to: Arc::clone(to),
            bytes: Vec::new(),
            sent: 0,
            has_rest: false,
            is_over: false,
            has_ended: false,
        }
    }

    /// Returns `side`, if the pipe waits for it: `IN` of `from`, or `OUT` of `to`.
    fn waits_for(&self, side: PollFlags) -> PollFlags {
        let wanted = if self.has_ended {
            PollFlags::empty()
        } else if self.sent < self.bytes.len() || self.has_rest {
            PollFlags::OUT
        } else {
            PollFlags::IN
        };
        wanted & side
    }

    /// Returns true if it can continue although the poller sees nothing.
    fn holds_received(&self) -> bool {
        self.waits_for(PollFlags::IN) == PollFlags::IN && self.from.holds_received()
    }

    /// Carries as much as possible in one turn without waiting.
    fn carry(&mut self) -> io::Result<()> {
        let mut carried = 0;
        while !self.has_ended && carried < TURN_BYTES {
            while self.sent < self.bytes.len() {
                match self.to.send(&self.bytes[self.sent..], false) {
                    Ok(count) => {
                        self.sent += count;
                        carried += count;
                    }
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            self.has_rest = self.to.send_rest() == Err(Errno::AGAIN);
            if self.has_rest {
                return Ok(());
            }
            if self.is_over {
                let _ = self.to.shut_down(Shutdown::Write);
                self.has_ended = true;
                break;
            }
            self.fill()?;
            if self.bytes.is_empty() && !self.is_over {
                return Ok(());
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        self.sent = 0;
        self.bytes.resize(PIPE_BYTES, 0);
        let received = self.from.receive(&mut self.bytes[..]);
        let count = match received {
            Ok(count) => {
                self.is_over = count == 0;
                count
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        self.bytes.truncate(count);
        if count == 0 {
            self.bytes = Vec::new();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{send, sockopt, SendFlags};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Two sockets with buffers that hold more than a turn.
    fn roomy_pair() -> (OwnedFd, OwnedFd) {
        let pair = sockets::pair(SocketType::STREAM, false).expect("a pair");
        sockopt::set_socket_send_buffer_size(&pair.0, 4 * TURN_BYTES).expect("a socket");
        pair
    }

    #[test]
    fn a_pipe_with_much_to_carry_ends_its_turn_for_others() {
        let (peer, ours) = roomy_pair();
        let (far, _owner) = roomy_pair();
        let mut sent = 0;
        while let Ok(count) = send(&peer, &[7; 64 * 1024], SendFlags::DONTWAIT) {
            sent += count;
        }
        let descriptors = Descriptors::with(1, 2);
        let link = |fd| -> Link {
            let permit = descriptors.for_file().expect("a permit");
            Arc::new(Socket::new(Counted::new(fd, permit)))
        };
        let mut pipe = Pipe::new(&link(ours), &link(far));
        pipe.carry().expect("open sockets");
        let mut left = pipe.bytes.len() - pipe.sent;
        while let Ok(count @ 1..) = pipe.from.receive(&mut [0; 16 * 1024]) {
            left += count;
        }
        let carried = sent - left;
        assert!(
            (TURN_BYTES..TURN_BYTES + PIPE_BYTES).contains(&carried),
            "{carried} of {sent}"
        );
        assert!(left > 0, "{sent} bytes are not more than a turn");
    }

    #[test]
    fn each_process_has_its_own_relays_and_keeps_them() {
        let own = Relays::of(std::process::id());
        // Simulates a child and a grandchild.
        let (child, grandchild) = (Relays::of(u32::MAX - 1), Relays::of(u32::MAX));
        assert!(!std::ptr::eq(own, child) && !std::ptr::eq(child, grandchild));
        let held = own.entrance.lock();
        assert!(std::ptr::eq(child, Relays::of(u32::MAX - 1)) && child.entrance.try_lock().is_some());
        drop(held);
        assert!(std::ptr::eq(own, Relays::of(std::process::id())));
    }

    #[test]
    fn bytes_read_ahead_come_first_and_both_sides_can_send_and_end() {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        server.set_nonblocking(true).expect("a socket");
        let descriptors = Descriptors::with(1, 1);
        let permit = descriptors.for_connection().expect("a permit");
        let socket: Link = Arc::new(Socket::new(Counted::new(OwnedFd::from(server), permit)));
        let owner = open(&socket, b"ahead, ".to_vec(), &descriptors).expect("a relay");
        let refused = open(&socket, Vec::new(), &descriptors).expect_err("no permit");
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::MFILE));
        drop(socket);
        let mut owner = UnixStream::from(owner);
        owner.set_nonblocking(false).expect("a socket");
        let big = vec![7u8; 3_000_000];
        let sent = big.clone();
        let sender = std::thread::spawn(move || {
            client.write_all(&sent).expect("an open relay");
            client.shutdown(std::net::Shutdown::Write).expect("an open relay");
            let mut response = String::new();
            client.read_to_string(&mut response).expect("an open relay");
            response
        });
        let mut received = Vec::new();
        owner.read_to_end(&mut received).expect("an open relay");
        assert!(received[..7] == *b"ahead, " && received[7..] == big);
        owner.write_all(b"and back").expect("an open relay");
        drop(owner);
        assert_eq!(sender.join().expect("no panic"), "and back");
    }
}
