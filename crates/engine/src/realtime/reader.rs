//! Reads what a client sends: WebSocket frames become messages for the app, or are answered without it. Other clients
//! send nothing; for them only the end of their input counts.

use super::client::{Client, Protocol};
use super::encoding;
use super::outbox::Outbox;
use super::Realtime;
use crate::clock::Millis;
use crate::limits::budget::Share;
use crate::limits::meter::Meter;
use crate::limits::request_totals::Taken;
use crate::sync::MutexGuard;
use crate::transport::Link;
use crate::transport::READ_TURN;
use fairlead_wire::websocket::{Decoder, Deflate, Role};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::mem::take;
use std::time::Duration;

/// How often the kernel asks a peer that has ended its half whether it is still there: as long as a system remembers a
/// socket that was closed, by default.
const KEEPALIVE: Duration = Duration::from_secs(60);

pub(super) struct Reader {
    /// `None` once the client is released.
    pub(super) transport: Option<Link>,
    /// `None` for a peer that sends nothing, or has violated the protocol.
    pub(super) decoder: Option<Decoder>,
    /// What was read and not decoded, of one read at most; nothing else is read before it is decoded.
    rest: Rest,
    /// Whether the peer has had its last word: the end of its input, which may come at once, takes no answer away.
    pub(super) is_done: bool,
    /// Counts the memory of an incomplete message.
    pub(super) taken: Taken,
    /// Its place among those of all clients, once it takes memory.
    pub(super) standing: Option<Share>,
    /// Measures how fast it grows.
    pub(super) meter: Meter,
    /// The current second, and the control frames in it.
    second: u64,
    controls: u32,
}

/// The undecoded end of a read.
#[derive(Default)]
struct Rest {
    bytes: Vec<u8>,
    /// Bytes that have been decoded.
    decoded: usize,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.decoded == self.bytes.len()
    }
}

/// The progress of one turn.
#[derive(Default)]
pub(super) struct ReadTurn {
    read: usize,
    /// Bytes of decoded messages: up to a thousand times as many as were read, if they were compressed.
    pub(super) decoded: usize,
}

impl ReadTurn {
    pub(super) fn is_over(&self) -> bool {
        self.read >= READ_TURN || self.decoded >= READ_TURN
    }
}

/// Whether the connection was reset, even behind bytes that were not received.
fn is_gone(transport: &Link) -> bool {
    let mut polled = [PollFd::new(transport, PollFlags::empty())];
    let ended = PollFlags::HUP | PollFlags::ERR;
    poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().intersects(ended)
}

impl Reader {
    /// Releases everything.
    pub(super) fn end(&mut self) {
        self.transport = None;
        self.rest = Rest::default();
        self.forget_message();
    }

    /// Gives back the memory of an incomplete message.
    pub(super) fn forget_message(&mut self) {
        self.decoder = None;
        self.taken = Taken::default();
        self.standing = None;
    }

    pub(super) fn new(transport: Link, protocol: Protocol, deflate: Option<Deflate>) -> Reader {
        Reader {
            taken: Taken::of_message(transport.budget().cloned()),
            standing: None,
            meter: Meter::begin(Millis::now()),
            transport: Some(transport),
            decoder: (protocol == Protocol::WebSocket).then(|| Decoder::new(Role::Server, deflate)),
            rest: Rest::default(),
            is_done: false,
            second: 0,
            controls: 0,
        }
    }

    pub(super) fn count_control(&mut self, now: Millis, most: u32) -> bool {
        let second = now.second();
        if std::mem::replace(&mut self.second, second) != second {
            self.controls = 0;
        }
        self.controls += 1;
        most == 0 || self.controls <= most
    }
}

impl Client {
    /// The socket is readable, or there are undecoded bytes: decodes them and reads more. Called only by the poller.
    /// True if the client has to be put into the ready queue.
    pub(crate) fn read(&self, scratch: &mut [u8], realtime: &Realtime, now: Millis) -> bool {
        let mut schedule = false;
        let mut turn = ReadTurn::default();
        let mut reader = self.reader.lock();
        let Some(transport) = reader.transport.clone() else {
            return false;
        };
        if self.is_lent() {
            drop(reader);
            self.look_for_end(&transport);
            return false;
        }
        if self.keeps_messages() && realtime.intake.room() == 0 {
            self.pause(realtime);
        }
        if reader.rest.is_empty() {
            self.flow.catch_up();
        } else if !self.flow.is_paused() {
            schedule |= self.take_in_rest(&mut reader, &mut turn, realtime, now);
        }
        while reader.rest.is_empty() && !turn.is_over() && !self.flow.is_paused() {
            match transport.receive(scratch) {
                Ok(0) if reader.is_done || !self.is_web_socket() => {
                    drop(reader);
                    self.end_when_answered(&transport);
                    return schedule;
                }
                Ok(0) => {
                    drop(reader);
                    self.end();
                    return schedule;
                }
                Ok(count) => {
                    self.keep_alive.hear(now);
                    turn.read += count;
                    schedule |= self.take_in_read(&mut reader, &mut scratch[..count], &mut turn, realtime, now);
                    if count < scratch.len() {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    drop(reader);
                    self.end();
                    return schedule;
                }
            }
        }
        if reader.rest.is_empty() && transport.holds_received() {
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Decodes bytes that arrived with the handshake.
    pub(super) fn read_ahead(&self, bytes: &mut [u8], realtime: &Realtime) -> bool {
        let mut reader = self.reader.lock();
        self.take_in_read(&mut reader, bytes, &mut ReadTurn::default(), realtime, Millis::now())
    }

    /// The poller reads from now on, unless the app has enough to do already.
    pub(super) fn start_reading(&self, realtime: &Realtime) {
        let mut outbox = self.outbox.lock();
        outbox.reads = !self.flow.is_paused();
        self.watch(&mut outbox);
        drop(outbox);
        let reader = self.reader.lock();
        if reader
            .transport
            .as_ref()
            .is_some_and(|transport| transport.holds_received())
        {
            self.stay_behind(realtime);
        }
    }

    /// The peer has ended its half of the connection: after its last word, or after a request whose response goes on. It
    /// may wait for the rest. Until that is sent, nothing is read.
    fn end_when_answered(&self, transport: &Link) {
        let mut outbox = self.outbox.lock();
        if outbox.ending.is_some() && outbox.frames.is_empty() {
            drop(outbox);
            return self.end();
        }
        if take(&mut outbox.reads) {
            self.watch(&mut outbox);
        }
        self.probe(outbox, transport);
    }

    /// Finds out whether a peer that has ended its half still receives: one that has closed its socket answers the next
    /// bytes with a reset. An event stream takes a comment for that. What the app sends on another stream is for the app to
    /// decide, so the kernel asks for it: a socket is forgotten some time after it was closed.
    fn probe(&self, outbox: MutexGuard<'_, Outbox>, transport: &Link) {
        match self.protocol() {
            Protocol::EventStream { chunked } if self.is_open() => {
                self.send_quietly(outbox, encoding::comment(chunked));
            }
            Protocol::Stream { .. } => {
                let _ = sockopt::set_socket_keepalive(transport, true);
                let _ = sockopt::set_tcp_keepidle(transport, KEEPALIVE);
                let _ = sockopt::set_tcp_keepintvl(transport, KEEPALIVE);
            }
            _ => {}
        }
    }

    /// Looks for the end of the peer without receiving anything: what it sends is its next request.
    fn look_for_end(&self, transport: &Link) {
        let received = transport.has_received();
        if matches!(received, Err(Errno::AGAIN | Errno::INTR)) {
            return;
        }
        if received.is_err() || is_gone(transport) {
            return self.end();
        }
        let mut outbox = self.outbox.lock();
        if !take(&mut outbox.reads) {
            return;
        }
        self.watch(&mut outbox);
        if received == Ok(false) {
            self.probe(outbox, transport);
        }
    }

    /// Decodes what was just read, and keeps the rest.
    fn take_in_read(
        &self,
        reader: &mut Reader,
        bytes: &mut [u8],
        turn: &mut ReadTurn,
        realtime: &Realtime,
        now: Millis,
    ) -> bool {
        let (schedule, taken) = self.take_in(reader, bytes, turn, realtime, now);
        if taken < bytes.len() {
            reader.rest = Rest {
                bytes: bytes[taken..].to_vec(),
                decoded: 0,
            };
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Decodes what an earlier turn has left.
    fn take_in_rest(&self, reader: &mut Reader, turn: &mut ReadTurn, realtime: &Realtime, now: Millis) -> bool {
        let mut rest = take(&mut reader.rest);
        self.flow.catch_up();
        let (schedule, taken) = self.take_in(reader, &mut rest.bytes[rest.decoded..], turn, realtime, now);
        rest.decoded += taken;
        if !rest.is_empty() {
            reader.rest = rest;
            self.stay_behind(realtime);
        }
        schedule
    }
}
