//! Begins to connect a socket.

use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use rustix::net::{self, AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4};

/// A socket on its way to `address`, and whether it has arrived already. `source` is the address it comes from, where
/// that matters.
pub(crate) fn dial(address: &SocketAddrAny, source: Option<Ipv4Addr>) -> io::Result<(OwnedFd, bool)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(address.address_family(), SocketType::STREAM, flags, None)?;
    if address.address_family() != AddressFamily::UNIX {
        net::sockopt::set_tcp_nodelay(&socket, true)?;
    }
    if let Some(source) = source {
        net::bind(&socket, &SocketAddrV4::new(source, 0))?;
    }
    match net::connect(&socket, address) {
        Ok(()) => Ok((socket, true)),
        Err(Errno::INPROGRESS | Errno::INTR) => Ok((socket, false)),
        Err(error) => Err(error),
    }
}
