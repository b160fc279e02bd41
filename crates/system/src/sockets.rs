//! Sockets that are closed on exec, and calls that neither block nor raise SIGPIPE.
//!
//! macOS has no flag against SIGPIPE; Rust's programs ignore this signal, and so does Ruby.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Result;
use rustix::net::{socket_with, socketpair};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType};

/// Sends without raising SIGPIPE.
#[cfg(not(target_vendor = "apple"))]
pub const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// Sends without raising SIGPIPE: this system has no such flag.
#[cfg(target_vendor = "apple")]
pub const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Sends without waiting and without raising SIGPIPE.
pub const SEND: SendFlags = NO_SIGNAL.union(SendFlags::DONTWAIT);

/// More bytes follow at once: the kernel may wait with a short segment.
#[cfg(native_linux)]
pub const MORE: SendFlags = SendFlags::MORE;
/// More bytes follow at once: this system has no such flag.
#[cfg(not(native_linux))]
pub const MORE: SendFlags = SendFlags::empty();

/// Receives without waiting. Descriptors in the message are closed on exec, but see [`received`].
#[cfg(native_linux)]
pub const RECEIVE_DESCRIPTORS: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
/// Receives without waiting. Descriptors in the message are to be closed on exec, see [`received`].
#[cfg(not(native_linux))]
pub const RECEIVE_DESCRIPTORS: RecvFlags = RecvFlags::DONTWAIT;

/// Closes a received descriptor on exec, if [`RECEIVE_DESCRIPTORS`] cannot.
pub fn received(descriptor: OwnedFd) -> OwnedFd {
    #[cfg(not(native_linux))]
    let _ = crate::descriptors::close_on_exec(&descriptor);
    descriptor
}

/// A pair of Unix sockets, closed on exec.
///
/// # Errors
/// If descriptors are short.
pub fn pair(kind: SocketType, blocks: bool) -> Result<(OwnedFd, OwnedFd)> {
    let (first, second) = socketpair(AddressFamily::UNIX, kind, flags(blocks), None)?;
    Ok((prepared(first, blocks)?, prepared(second, blocks)?))
}

/// A socket that does not block and is closed on exec.
///
/// # Errors
/// As socket(2).
pub fn open(family: AddressFamily, kind: SocketType) -> Result<OwnedFd> {
    prepared(socket_with(family, kind, flags(false), None)?, false)
}

/// Accepts a connection: a socket that does not block and is closed on exec, and the address of the peer.
///
/// # Errors
/// As accept(2).
pub fn accept(listener: impl AsFd) -> Result<(OwnedFd, Option<SocketAddrAny>)> {
    #[cfg(not(target_vendor = "apple"))]
    let (socket, address) = rustix::net::acceptfrom_with(listener, flags(false))?;
    #[cfg(target_vendor = "apple")]
    let (socket, address) = rustix::net::acceptfrom(listener)?;
    Ok((prepared(socket, false)?, address))
}

/// A process at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its effective user.
    pub user: u32,
    /// Its id, if the system tells.
    pub process: Option<i32>,
}

/// Asks the system for the process that has connected a Unix socket.
///
/// # Errors
/// If it is another kind of socket.
pub fn owner(socket: impl AsFd) -> Result<Owner> {
    #[cfg(native_linux)]
    {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Owner {
            user: peer.uid.as_raw(),
            process: Some(peer.pid.as_raw_nonzero().get()),
        })
    }
    #[cfg(all(not(native_linux), target_os = "linux"))]
    {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Owner {
            user: peer.uid.as_raw(),
            process: None,
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let peer = nix::unistd::getpeereid(socket);
        let (user, _) = peer.map_err(|error| rustix::io::Errno::from_raw_os_error(error as i32))?;
        Ok(Owner {
            user: user.as_raw(),
            process: None,
        })
    }
}

/// Ends a TCP connection if its peer acknowledges nothing for so many milliseconds. Linux only.
pub fn limit_silence(socket: impl AsFd, milliseconds: u32) {
    #[cfg(native_linux)]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(socket, milliseconds);
    #[cfg(not(native_linux))]
    let _ = (socket.as_fd(), milliseconds);
}

/// The address of a Unix socket without a file.
///
/// # Errors
/// If the system has none, or the name is too long.
pub fn abstract_address(name: &[u8]) -> Result<SocketAddrUnix> {
    #[cfg(target_os = "linux")]
    {
        SocketAddrUnix::new_abstract_name(name)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = name;
        Err(rustix::io::Errno::AFNOSUPPORT)
    }
}

/// The peer of a stream socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It may send more, as far as the system knows.
    There,
    /// It has ended its output, or closed the connection.
    SendsNoMore,
    /// It has reset the connection, or the connection has ended in both directions.
    Gone,
}

/// Asks the system about the peer. Elsewhere than on Linux, unread input hides that it ends.
pub fn peer(socket: impl AsFd) -> Peer {
    #[cfg(native_linux)]
    let asked = PollFlags::RDHUP;
    #[cfg(not(native_linux))]
    let asked = PollFlags::IN;
    let mut polled = [PollFd::new(&socket, asked)];
    if poll(&mut polled, Some(&Timespec::default())).is_err() {
        return Peer::There;
    }
    let events = polled[0].revents();
    #[cfg(native_linux)]
    let sends_no_more = events.contains(PollFlags::RDHUP);
    #[cfg(not(native_linux))]
    let sends_no_more = events.contains(PollFlags::IN) && {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::net::recv(&socket, &mut [0; 1][..], flags).is_ok_and(|(count, _)| count == 0)
    };
    // macOS reports a hang-up as soon as the peer has ended its output.
    let has_hung_up = events.contains(PollFlags::HUP) && (!cfg!(target_vendor = "apple") || is_shut_down(&socket));
    if has_hung_up || events.contains(PollFlags::ERR) {
        Peer::Gone
    } else if sends_no_more {
        Peer::SendsNoMore
    } else {
        Peer::There
    }
}

/// True if the connection was reset, or has ended in both directions, even behind bytes that were not received.
pub fn is_gone(socket: impl AsFd) -> bool {
    #[cfg(native_linux)]
    {
        let mut polled = [PollFd::new(&socket, PollFlags::empty())];
        let ended = PollFlags::HUP | PollFlags::ERR;
        poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().intersects(ended)
    }
    // macOS reports nothing unless it is asked for something.
    #[cfg(not(native_linux))]
    {
        peer(socket) == Peer::Gone
    }
}

/// True if the socket takes no more output.
fn is_shut_down(socket: impl AsFd) -> bool {
    rustix::net::send(socket, &[], SEND).is_err_and(|error| error != rustix::io::Errno::AGAIN)
}

#[cfg(native_linux)]
fn flags(blocks: bool) -> SocketFlags {
    match blocks {
        true => SocketFlags::CLOEXEC,
        false => SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK),
    }
}

#[cfg(not(native_linux))]
fn flags(_blocks: bool) -> SocketFlags {
    SocketFlags::empty()
}

#[cfg(native_linux)]
fn prepared(socket: OwnedFd, _blocks: bool) -> Result<OwnedFd> {
    Ok(socket)
}

#[cfg(not(native_linux))]
fn prepared(socket: OwnedFd, blocks: bool) -> Result<OwnedFd> {
    crate::descriptors::close_on_exec(&socket)?;
    rustix::io::ioctl_fionbio(&socket, !blocks)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{fcntl_getfd, Errno, FdFlags};
    use std::os::unix::net::{UnixListener, UnixStream};

    fn is_closed_on_exec(descriptor: impl AsFd) -> bool {
        fcntl_getfd(descriptor).expect("its flags").contains(FdFlags::CLOEXEC)
    }

    #[test]
    fn an_accepted_socket_does_not_block_and_is_closed_on_exec() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a listener");
        let _client = UnixStream::connect(&path).expect("a connection");
        let (socket, _) = accept(&listener).expect("a connection");
        assert!(is_closed_on_exec(&socket));
        assert_eq!(rustix::io::read(&socket, &mut [0]), Err(Errno::AGAIN));
    }

    #[test]
    fn a_peer_is_there_until_it_ends_its_output_or_the_connection() {
        let (socket, other) = pair(SocketType::STREAM, false).expect("sockets");
        assert_eq!(peer(&socket), Peer::There);
        rustix::io::write(&other, b"x").expect("room");
        assert_eq!(peer(&socket), Peer::There);
        rustix::io::read(&socket, &mut [0]).expect("a byte");
        rustix::net::shutdown(&other, rustix::net::Shutdown::Write).expect("an open socket");
        assert_eq!(peer(&socket), Peer::SendsNoMore);
        assert!(!is_gone(&socket));
        drop(other);
        assert_eq!(peer(&socket), Peer::Gone);
        assert!(is_gone(&socket));
    }

    #[test]
    fn a_pair_is_closed_on_exec_and_blocks_if_asked_for() {
        for blocks in [true, false] {
            let (first, second) = pair(SocketType::STREAM, blocks).expect("sockets");
            assert!(is_closed_on_exec(&first) && is_closed_on_exec(&second));
            let flags = rustix::fs::fcntl_getfl(&second).expect("its flags");
            assert_eq!(!flags.contains(rustix::fs::OFlags::NONBLOCK), blocks);
        }
    }
}
