//! Starts to connect a socket.

use fairlead_system::sockets;
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use rustix::net::{self, AddressFamily, SocketAddrAny, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Returns a socket that connects to `address`, and whether it is connected already. `source` is the local address to
/// bind, if it matters.
pub(crate) fn dial(address: &SocketAddrAny, source: Option<Ipv4Addr>) -> io::Result<(OwnedFd, bool)> {
    let socket = sockets::open(address.address_family(), SocketType::STREAM)?;
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
