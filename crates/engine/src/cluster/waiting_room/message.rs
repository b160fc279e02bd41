//! The format of a connection in the waiting room, with its request or without one: one datagram with its metadata and
//! the bytes that were read, and the descriptor of its socket. A body in a temporary file travels as a second descriptor.
//! Long input travels in a file in memory (memfd), which is one more descriptor, because the kernel only takes short
//! datagrams.

use crate::clock::{Millis, Nanos};
use crate::http::body::Body;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Longest datagram.
pub(super) const DATAGRAM_BYTES: usize = 32 * 1024;

/// Most descriptors of a message.
pub(crate) const DESCRIPTORS: usize = 3;

/// The number of this format. Whoever changes the format changes it, so that processes of two versions do not share a
/// room.
pub(super) const FORMAT: u32 = 2;

/// How many numbers it begins with: since when it is where it is ([`Stage`]), requests served, lengths of input and body,
/// origin and kind, the peer (three numbers), how long the body was waited for, and when it went into the room.
const NUMBERS: usize = 10;
const HEADER: usize = 8 * NUMBERS;

/// Offset of the byte that holds the kind.
const KIND: usize = 32;

/// Where the body is, whether input and body travel in a file in memory, and how far the connection is.
mod kind {
    pub(super) const MEMORY: u64 = 1;
    pub(super) const FILE: u64 = 2;
    pub(super) const BODY: u64 = 3;
    pub(super) const LONG: u64 = 4;
    /// What the peer says of its client is trusted.
    pub(super) const TRUSTED: u64 = 8;
    /// No byte of a request is here.
    pub(super) const IDLE: u64 = 16;
    /// Not all of a head, or not known to be all of it.
    pub(super) const HEAD: u64 = 32;
    /// The line of a proxy is still to come.
    pub(super) const PROXY: u64 = 64;
}

/// How far a connection is with its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The request is complete.
    Request {
        /// When it was.
        arrived: Nanos,
    },
    /// Nothing of it has arrived.
    Idle {
        /// When the connection became idle.
        since: Millis,
    },
    /// Some bytes of its head have arrived.
    Head {
        /// When the first one did.
        since: Millis,
    },
}

impl Stage {
    fn kind(self) -> u64 {
        match self {
            Stage::Request { .. } => 0,
            Stage::Idle { .. } => kind::IDLE,
            Stage::Head { .. } => kind::HEAD,
        }
    }

    fn moment(self) -> u64 {
        match self {
            Stage::Request { arrived } => arrived.to_number(),
            Stage::Idle { since } | Stage::Head { since } => since.to_number(),
        }
    }

    fn of(kind: u64, moment: u64) -> Stage {
        let since = Millis::from_number(moment);
        match kind {
            _ if kind & kind::IDLE != 0 => Stage::Idle { since },
            _ if kind & kind::HEAD != 0 => Stage::Head { since },
            _ => Stage::Request {
                arrived: Nanos::from_number(moment),
            },
        }
    }
}

/// What was received, before it becomes a connection again.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) socket: OwnedFd,
    /// See [`Origin::fingerprint`](crate::Origin::fingerprint).
    pub(crate) origin: u32,
    /// `None` for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_peer_trusted: bool,
    pub(crate) awaits_proxy_line: bool,
    pub(crate) stage: Stage,
    /// When it went into the room; as much earlier as it has been there before.
    pub(crate) entered: Nanos,
    pub(crate) body_wait: Duration,
    pub(crate) served: u64,
    pub(crate) input: Vec<u8>,
    pub(crate) body: Body,
}

/// What is about to be sent.
#[derive(Debug)]
pub(crate) struct Departure<'a> {
    pub(crate) socket: BorrowedFd<'a>,
    pub(crate) origin: u32,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_peer_trusted: bool,
    pub(crate) awaits_proxy_line: bool,
    pub(crate) stage: Stage,
    /// When it went into the room; as much earlier as it has been there before.
    pub(crate) entered: Nanos,
    pub(crate) body_wait: Duration,
    pub(crate) served: u64,
    /// The bytes of the head, and those that came after the request.
    pub(crate) input: [&'a [u8]; 2],
    pub(crate) body: &'a Body,
}

/// A message to be sent.
pub(super) struct Message<'a> {
    header: [u8; HEADER],
    input: [&'a [u8]; 2],
    body: &'a [u8],
    socket: BorrowedFd<'a>,
    /// The file with input and body, if they do not travel in the datagram.
    long: Option<OwnedFd>,
    file: Option<BorrowedFd<'a>>,
}

impl<'a> Message<'a> {
    pub(super) fn new(request: &Departure<'a>) -> Message<'a> {
        let (body_kind, body, file): (u64, &[u8], Option<&File>) = match request.body {
            Body::Empty => (0, &[], None),
            Body::Memory(bytes) => (kind::MEMORY, bytes, None),
            Body::File(file, _) => (kind::FILE, &[], Some(file)),
        };
        let [peer, address_high, address_low] = peer_numbers(request.peer);
        let trusted = if request.is_peer_trusted { kind::TRUSTED } else { 0 };
        let proxy = if request.awaits_proxy_line { kind::PROXY } else { 0 };
        let numbers = [
            request.stage.moment(),
            request.served,
            request.input.map(<[u8]>::len).iter().sum::<usize>() as u64,
            request.body.len(),
            u64::from(request.origin) << 8 | body_kind | trusted | proxy | request.stage.kind(),
            peer,
            address_high,
            address_low,
            request.body_wait.as_millis() as u64,
            request.entered.to_number(),
        ];
        let mut header = [0; HEADER];
        for (space, number) in header.chunks_exact_mut(8).zip(numbers) {
            space.copy_from_slice(&number.to_le_bytes());
        }
        Message {
            header,
            input: request.input,
            body,
            socket: request.socket,
            long: None,
            file: file.map(AsFd::as_fd),
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.long.is_none() && HEADER + self.input[0].len() + self.input[1].len() + self.body.len() <= DATAGRAM_BYTES
    }

    /// Moves input and body to a file in memory.
    pub(super) fn lengthen(&mut self) -> io::Result<()> {
        let mut long = File::from(memfd_create("fairlead request", MemfdFlags::CLOEXEC)?);
        long.write_all(self.input[0])?;
        long.write_all(self.input[1])?;
        long.write_all(self.body)?;
        self.long = Some(long.into());
        self.header[KIND] |= kind::LONG as u8;
        Ok(())
    }

    pub(super) fn datagram(&self) -> [IoSlice<'_>; 4] {
        let [head, ahead, body] = match self.long {
            Some(_) => [&[][..]; 3],
            None => [self.input[0], self.input[1], self.body],
        };
        [&self.header, head, ahead, body].map(IoSlice::new)
    }

    /// In this order: the socket, the file in memory, the file with the body.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let long = self.long.as_ref().map(AsFd::as_fd);
        [Some(self.socket), long, self.file].into_iter().flatten().collect()
    }
}

/// Parses a message. If it is incomplete, returns the socket, provided that it has arrived.
pub(super) fn open(datagram: &[u8], descriptors: Vec<OwnedFd>) -> Result<Transfer, Option<OwnedFd>> {
    let mut descriptors = descriptors.into_iter();
    let Some(socket) = descriptors.next() else {
        return Err(None);
    };
    match read(datagram, descriptors) {
        Some(request) => Ok(request.of(socket)),
        None => Err(Some(socket)),
    }
}

/// A transfer without its socket.
struct Contents {
    numbers: [u64; NUMBERS],
    input: Vec<u8>,
    body: Body,
}

impl Contents {
    fn of(self, socket: OwnedFd) -> Transfer {
        let [moment, served, _, _, origin_and_kind, peer, high, low, wait, entered] = self.numbers;
        Transfer {
            socket,
            origin: (origin_and_kind >> 8) as u32,
            peer: self::peer([peer, high, low]),
            is_peer_trusted: origin_and_kind & kind::TRUSTED != 0,
            awaits_proxy_line: origin_and_kind & kind::PROXY != 0,
            stage: Stage::of(origin_and_kind, moment),
            body_wait: Duration::from_millis(wait),
            entered: Nanos::from_number(entered),
            served,
            input: self.input,
            body: self.body,
        }
    }
}

fn read(datagram: &[u8], mut files: impl Iterator<Item = OwnedFd>) -> Option<Contents> {
    let (header, bytes) = datagram.split_first_chunk::<HEADER>()?;
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(header.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [_, _, input_length, body_length, origin_and_kind, ..] = numbers;
    let long = if origin_and_kind & kind::LONG != 0 {
        Some(files.next()?)
    } else {
        None
    };
    let (input, body) = match long {
        Some(file) => read_file(&file.into(), usize::try_from(input_length).ok()?)?,
        None => {
            let (input, body) = bytes.split_at_checked(usize::try_from(input_length).ok()?)?;
            (input.to_vec(), body.to_vec())
        }
    };
    let body = match origin_and_kind & kind::BODY {
        0 => Body::Empty,
        kind::MEMORY => Body::Memory(body),
        _ => Body::File(File::from(files.next()?), body_length),
    };
    (body.len() == body_length).then_some(Contents { numbers, input, body })
}

/// The first `input_length` bytes, and the rest.
fn read_file(file: &File, input_length: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let mut input = vec![0; input_length.min(length)];
    let mut body = vec![0; length.checked_sub(input_length)?];
    file.read_exact_at(&mut input, 0).ok()?;
    file.read_exact_at(&mut body, input_length as u64).ok()?;
    Some((input, body))
}

/// First the scope, port and family (0: a Unix socket), then the address; IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
fn peer_numbers(peer: Option<SocketAddr>) -> [u64; 3] {
    let Some(peer) = peer else { return [0; 3] };
    let (family, scope, address) = match peer {
        SocketAddr::V4(peer) => (4, 0, peer.ip().to_ipv6_mapped()),
        SocketAddr::V6(peer) => (6, u64::from(peer.scope_id()), *peer.ip()),
    };
    let bits = address.to_bits();
    [
        scope << 32 | u64::from(peer.port()) << 8 | family,
        (bits >> 64) as u64,
        bits as u64,
    ]
}

fn peer([numbers, high, low]: [u64; 3]) -> Option<SocketAddr> {
    let address = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    let (scope, port) = ((numbers >> 32) as u32, (numbers >> 8) as u16);
    match (numbers & 0xff, address.to_ipv4_mapped()) {
        (4, Some(address)) => Some((IpAddr::V4(address), port).into()),
        (6, _) => Some(SocketAddrV6::new(address, port, 0, scope).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{eventfd, EventfdFlags};
    use std::io::{Read, Seek};

    const PEER: &str = "[fe80::1%7]:9292";

    fn descriptor() -> OwnedFd {
        eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor")
    }

    fn departure<'a>(socket: &'a OwnedFd, input: [&'a [u8]; 2], body: &'a Body) -> Departure<'a> {
        Departure {
            socket: socket.as_fd(),
            origin: u32::MAX,
            peer: Some(PEER.parse().expect("an address")),
            is_peer_trusted: true,
            awaits_proxy_line: false,
            stage: Stage::Request { arrived: Nanos::START },
            entered: Nanos::START + Duration::from_nanos(9),
            body_wait: Duration::from_millis(7),
            served: 2,
            input,
            body,
        }
    }

    fn sent(message: &Message<'_>) -> (Vec<u8>, Vec<OwnedFd>) {
        let copy = |one: BorrowedFd<'_>| one.try_clone_to_owned().expect("a copy");
        (
            message.datagram().iter().flat_map(|part| part.to_vec()).collect(),
            message.descriptors().into_iter().map(copy).collect(),
        )
    }

    fn file(text: &str) -> Body {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        file.rewind().expect("rewound");
        Body::File(file, text.len() as u64)
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let bodies: [fn() -> Body; 3] = [|| Body::Empty, || Body::Memory(b"body".to_vec()), || file("body")];
        for (body, is_long) in bodies.into_iter().flat_map(|body| [(body, false), (body, true)]) {
            let (socket, stored) = (descriptor(), body());
            let departure = departure(&socket, [b"GET /", b" and more"], &stored);
            let mut message = Message::new(&departure);
            if is_long {
                message.lengthen().expect("a file in memory");
            }
            let (datagram, descriptors) = sent(&message);
            let transfer = open(&datagram, descriptors).expect("whole");
            assert_eq!((transfer.origin, transfer.peer), (u32::MAX, departure.peer));
            assert_eq!((transfer.stage, transfer.served), (departure.stage, 2));
            assert_eq!(transfer.entered, departure.entered);
            assert_eq!(
                (transfer.is_peer_trusted, transfer.body_wait),
                (true, departure.body_wait)
            );
            assert_eq!(transfer.input, departure.input.concat());
            let mut text = String::new();
            match (transfer.body, body()) {
                (Body::Empty, Body::Empty) => continue,
                (Body::Memory(bytes), Body::Memory(_)) => text = String::from_utf8(bytes).expect("text"),
                (Body::File(mut file, 4), Body::File(..)) => _ = file.read_to_string(&mut text).expect("text"),
                (got, sent) => panic!("{got:?} instead of {sent:?}"),
            }
            assert_eq!(text, "body");
        }
    }

    #[test]
    fn a_connection_without_a_request_keeps_its_stage_and_its_age() {
        let since = Millis::START;
        for (stage, awaits_proxy_line) in [
            (Stage::Idle { since }, false),
            (Stage::Idle { since }, true),
            (Stage::Head { since }, false),
            (Stage::Head { since }, true),
        ] {
            let socket = descriptor();
            let departure = Departure {
                stage,
                awaits_proxy_line,
                is_peer_trusted: !awaits_proxy_line,
                ..departure(&socket, [b"", b"GET /"], &Body::Empty)
            };
            let (datagram, descriptors) = sent(&Message::new(&departure));
            let transfer = open(&datagram, descriptors).expect("whole");
            assert_eq!((transfer.stage, transfer.awaits_proxy_line), (stage, awaits_proxy_line));
            assert_eq!((transfer.is_peer_trusted, transfer.served), (!awaits_proxy_line, 2));
            assert_eq!((&transfer.input[..], transfer.body.len()), (&b"GET /"[..], 0));
        }
    }

    #[test]
    fn a_message_longer_than_a_datagram_is_not_short() {
        for (length, is_short) in [(DATAGRAM_BYTES - HEADER, true), (DATAGRAM_BYTES - HEADER + 1, false)] {
            let (socket, body) = (descriptor(), Body::Memory(vec![7; length - length / 2]));
            let input = vec![7; length / 4];
            let rest = vec![7; length / 2 - length / 4];
            assert_eq!(
                Message::new(&departure(&socket, [&input, &rest], &body)).is_short(),
                is_short
            );
        }
    }

    #[test]
    fn an_incomplete_message_gives_back_its_socket() {
        let (socket, body) = (descriptor(), file("body"));
        let departure = departure(&socket, [b"GET /", b""], &body);
        let mut message = Message::new(&departure);
        message.lengthen().expect("a file in memory");
        for count in 0..DESCRIPTORS {
            let (datagram, mut descriptors) = sent(&message);
            descriptors.truncate(count);
            let rest = open(&datagram, descriptors).expect_err("not whole");
            assert_eq!(rest.is_some(), count > 0);
        }
        let short = Message::new(&departure);
        for length in 0..HEADER + departure.input.concat().len() {
            let (datagram, descriptors) = sent(&short);
            assert!(open(&datagram[..length], descriptors).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_peer_address_survives_the_round_trip() {
        for text in ["127.0.0.2:80", "[2001:db8::7]:65535", "[::ffff:10.0.0.1]:1", PEER] {
            let one: SocketAddr = text.parse().expect("an address");
            assert_eq!(peer(peer_numbers(Some(one))), Some(one));
        }
        assert_eq!(peer(peer_numbers(None)), None);
    }
}
