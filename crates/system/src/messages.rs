//! Messages with descriptors between two processes, over a pair of sockets. When a process ends, the other end reads the end.
//!
//! Linux: sockets of type SEQPACKET, which keep messages apart. Elsewhere: of type STREAM, with the length in front of each message.
//! (Sockets of type DGRAM keep messages apart, too, but do not report the end of the other side.) Their buffers hold many messages, so
//! that one call sends a whole message, and the messages of several threads stay apart.

pub use system::{receive, send};

use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::net::SocketType;

/// Most descriptors that one message can carry (SCM_MAX_FD).
pub const MOST_DESCRIPTORS: usize = 253;

const KIND: SocketType = match cfg!(native_linux) {
    true => SocketType::SEQPACKET,
    false => SocketType::STREAM,
};

/// The result of reading.
#[derive(Debug)]
pub enum Received {
    /// A message: the number of its bytes, and its descriptors, closed on exec.
    Message(usize, Vec<OwnedFd>),
    /// No message is available now.
    Nothing,
    /// The other end is closed.
    Gone,
}

/// The two ends, closed on exec.
///
/// # Errors
/// If descriptors are short.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let (first, second) = crate::sockets::pair(KIND, true)?;
    #[cfg(not(native_linux))]
    [&first, &second].into_iter().for_each(system::enlarge);
    Ok((first, second))
}

#[cfg(native_linux)]
mod system {
    use super::{Received, MOST_DESCRIPTORS};
    use crate::sockets::{RECEIVE_DESCRIPTORS, SEND};
    use rustix::fd::{AsFd, BorrowedFd};
    use rustix::io::Errno;
    use rustix::net::{
        recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage,
    };
    use std::io::{IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;

    /// Sends a message, without waiting. Returns false if the other end is closed, or accepts no more messages.
    pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return false;
        }
        sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SEND).is_ok()
    }

    /// Reads one message into `space`, without waiting. A longer message is lost.
    pub fn receive(socket: impl AsFd, space: &mut [u8]) -> Received {
        let mut control = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut control);
        let taken = loop {
            match recvmsg(
                &socket,
                &mut [IoSliceMut::new(space)],
                &mut control,
                RECEIVE_DESCRIPTORS,
            ) {
                Ok(taken) => break taken,
                Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
                // The other side has ended without reading everything. Its own messages can still be read.
                Err(Errno::CONNRESET) => {}
                Err(_) => return Received::Gone,
            }
        };
        if taken.bytes == 0 {
            return Received::Gone;
        }
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors = rights.flatten().collect();
        if taken.flags.contains(ReturnFlags::TRUNC) {
            return Received::Nothing;
        }
        Received::Message(taken.bytes, descriptors)
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::{Received, MOST_DESCRIPTORS};
    use crate::sockets::{received, RECEIVE_DESCRIPTORS, SEND};
    use rustix::event::{poll, PollFd, PollFlags, Timespec};
    use rustix::fd::AsFd;
    use rustix::fd::{BorrowedFd, OwnedFd};
    use rustix::io::Errno;
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
    use rustix::net::{
        recv, recvmsg, sendmsg, shutdown, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, Shutdown,
    };
    use std::io::{IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;

    /// Bytes of the length.
    const LENGTH: usize = 4;

    /// Buffer size requested from the system, which may refuse a large one.
    const BUFFER_BYTES: usize = 1024 * 1024;

    const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    /// Longest time for the rest of a message: its other end is in the middle of a call.
    const REST: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

    /// Gives an end of a pair as large buffers as possible.
    pub(super) fn enlarge(socket: &OwnedFd) {
        let sizes = (0..5).map(|shift| BUFFER_BYTES >> shift);
        let _ = sizes
            .clone()
            .find(|bytes| set_socket_send_buffer_size(socket, *bytes).is_ok());
        let _ = sizes
            .clone()
            .find(|bytes| set_socket_recv_buffer_size(socket, *bytes).is_ok());
    }

    /// Sends a message, without waiting. Returns false if the other end is closed, or accepts no more messages.
    pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return false;
        }
        let Ok(length) = u32::try_from(bytes.len()) else {
            return false;
        };
        if !is_ready(&socket, PollFlags::OUT, &NOW) {
            return false;
        }
        let length = length.to_ne_bytes();
        let parts = [IoSlice::new(&length), IoSlice::new(bytes)];
        let Ok(sent) = sendmsg(&socket, &parts, &mut control, SEND) else {
            return false;
        };
        // A socket that is ready has room. Should the system take only a part, then nothing may follow, and nobody waits.
        let is_whole = sent == LENGTH + bytes.len();
        if !is_whole {
            let _ = shutdown(&socket, Shutdown::Both);
        }
        is_whole
    }

    fn is_ready(socket: impl AsFd, event: PollFlags, time: &Timespec) -> bool {
        loop {
            match poll(&mut [PollFd::new(&socket, event)], Some(time)) {
                Err(Errno::INTR) => {}
                result => return result == Ok(1),
            }
        }
    }

    /// Reads one message into `space`, without waiting for its beginning. A longer message ends the connection.
    pub fn receive(socket: impl AsFd, space: &mut [u8]) -> Received {
        let mut control = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut control);
        let mut length = [0; LENGTH];
        let count = loop {
            match recvmsg(
                &socket,
                &mut [IoSliceMut::new(&mut length)],
                &mut control,
                RECEIVE_DESCRIPTORS,
            ) {
                Ok(taken) => break taken.bytes,
                Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
                // The other side has ended without reading everything. Its own messages can still be read.
                Err(Errno::CONNRESET) => {}
                Err(_) => return Received::Gone,
            }
        };
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors.map(received)),
            _ => None,
        });
        let descriptors: Vec<OwnedFd> = rights.flatten().collect();
        if count == 0 || !receive_rest(&socket, &mut length[count..]) {
            return Received::Gone;
        }
        let length = u32::from_ne_bytes(length) as usize;
        match space
            .get_mut(..length)
            .is_some_and(|space| receive_rest(&socket, space))
        {
            true => Received::Message(length, descriptors),
            false => Received::Gone,
        }
    }

    fn receive_rest(socket: impl AsFd, mut space: &mut [u8]) -> bool {
        while !space.is_empty() {
            match recv(&socket, &mut *space, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((count, _)) => space = &mut space[count..],
                Err(Errno::AGAIN) if is_ready(&socket, PollFlags::IN, &REST) => {}
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(_) => return false,
            }
        }
        true
    }
}
