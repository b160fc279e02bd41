//! Tunnels: for a socket that is given away after more was read from it than the request. Its new owner gets one end of a
//! pair; first come the bytes that were read ahead, then whatever either side sends. One native thread serves all tunnels
//! of a process; it starts with the first one and ends with the last.

use parking_lot::Mutex;
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags};
use rustix::io::{self, Errno};
use rustix::net::{
    recv, send, shutdown, socketpair, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes under way in one direction; a side that does not take them is not read for.
const PIPE_BYTES: usize = 64 * 1024;

/// Tunnels of a process.
static TUNNELS: Mutex<Option<Entrance>> = Mutex::new(None);

/// Where new tunnels are handed to the thread.
struct Entrance {
    new: Vec<Tunnel>,
    waker: Arc<OwnedFd>,
}

/// Bytes from one socket to the other.
struct Pipe {
    from: Arc<OwnedFd>,
    to: Arc<OwnedFd>,
    bytes: Vec<u8>,
    sent: usize,
    /// No more comes, and the other side has been told.
    is_over: bool,
    has_ended: bool,
}

struct Tunnel {
    pipes: [Pipe; 2],
}

/// Opens a tunnel to `socket` and returns its other end, from which `ahead` can be read first.
///
/// # Errors
/// If there are no descriptors left, or no thread can be started.
pub(crate) fn open(socket: &Arc<OwnedFd>, ahead: Vec<u8>) -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (theirs, ours) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A descriptor of its own: the connection's goes when the engine forgets it.
    let (socket, ours) = (Arc::new(socket.try_clone()?), Arc::new(ours));
    let mut inward = Pipe::new(&socket, &ours);
    inward.bytes = ahead;
    let tunnel = Tunnel {
        pipes: [inward, Pipe::new(&ours, &socket)],
    };
    let mut entrance = TUNNELS.lock();
    match &mut *entrance {
        Some(entrance) => {
            entrance.new.push(tunnel);
            let _ = io::write(&entrance.waker, &1u64.to_ne_bytes());
        }
        None => {
            let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
            let thread_waker = Arc::clone(&waker);
            std::thread::Builder::new()
                .name("fairlead tunnels".into())
                .spawn(move || carry(&thread_waker))?;
            *entrance = Some(Entrance {
                new: vec![tunnel],
                waker,
            });
        }
    }
    Ok(theirs)
}

fn carry(waker: &OwnedFd) {
    let mut tunnels: Vec<Tunnel> = Vec::new();
    loop {
        {
            let mut entrance = TUNNELS.lock();
            if let Some(entrance) = &mut *entrance {
                tunnels.append(&mut entrance.new);
            }
            if tunnels.is_empty() {
                *entrance = None;
                return;
            }
        }
        wait(waker, &tunnels);
        let _ = io::read(waker, &mut [0u8; 8]);
        for pipe in tunnels.iter_mut().flat_map(|tunnel| &mut tunnel.pipes) {
            if pipe.carry().is_err() {
                pipe.has_ended = true;
                let _ = shutdown(&pipe.from, Shutdown::Both);
                let _ = shutdown(&pipe.to, Shutdown::Both);
            }
        }
        tunnels.retain(|tunnel| !tunnel.pipes.iter().all(|pipe| pipe.has_ended));
    }
}

/// Waits until some pipe can go on.
fn wait(waker: &OwnedFd, tunnels: &[Tunnel]) {
    let mut fds = vec![PollFd::new(waker, PollFlags::IN)];
    for pipe in tunnels.iter().flat_map(|tunnel| &tunnel.pipes) {
        match pipe.waits_for() {
            Some(PollFlags::OUT) => fds.push(PollFd::new(&*pipe.to, PollFlags::OUT)),
            Some(flags) => fds.push(PollFd::new(&*pipe.from, flags)),
            None => {}
        }
    }
    let _ = poll(&mut fds, None);
}

impl Pipe {
    fn new(from: &Arc<OwnedFd>, to: &Arc<OwnedFd>) -> Pipe {
        Pipe {
            from: Arc::clone(from),
            to: Arc::clone(to),
            bytes: Vec::new(),
            sent: 0,
            is_over: false,
            has_ended: false,
        }
    }

    fn waits_for(&self) -> Option<PollFlags> {
        if self.has_ended {
            None
        } else if self.sent < self.bytes.len() {
            Some(PollFlags::OUT)
        } else {
            Some(PollFlags::IN)
        }
    }

    /// Carries as much as goes without waiting.
    fn carry(&mut self) -> io::Result<()> {
        while !self.has_ended {
            while self.sent < self.bytes.len() {
                match send(
                    &self.to,
                    &self.bytes[self.sent..],
                    SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
                ) {
                    Ok(count) => self.sent += count,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            if self.is_over {
                let _ = shutdown(&self.to, Shutdown::Write);
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
        let received = recv(&self.from, &mut self.bytes[..], RecvFlags::DONTWAIT);
        let count = match received {
            Ok((count, _)) => {
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
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_read_ahead_comes_first_and_both_sides_can_speak_and_end() {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        server.set_nonblocking(true).expect("a socket");
        let socket = Arc::new(OwnedFd::from(server));
        let owner = open(&socket, b"ahead, ".to_vec()).expect("a tunnel");
        drop(socket);
        let mut owner = UnixStream::from(owner);
        owner.set_nonblocking(false).expect("a socket");
        let big = vec![7u8; 3_000_000];
        let sent = big.clone();
        let sender = std::thread::spawn(move || {
            client.write_all(&sent).expect("an open tunnel");
            client.shutdown(std::net::Shutdown::Write).expect("an open tunnel");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("an open tunnel");
            answer
        });
        let mut received = Vec::new();
        owner.read_to_end(&mut received).expect("an open tunnel");
        assert!(received[..7] == *b"ahead, " && received[7..] == big);
        owner.write_all(b"and back").expect("an open tunnel");
        drop(owner);
        assert_eq!(sender.join().expect("it does not panic"), "and back");
    }
}
