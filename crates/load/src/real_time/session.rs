//! One socket of a crowd.
//!
//! ```text
//!   Waiting -> Connecting -> (Securing) -> Shaking -> Subscribing -> Live
//!      ^            \____________\___________\___________\___________\____> Over
//!      |                                                              |
//!      +---- reopened (connections that publish by POST) -------------+
//! ```
//! With TLS, its handshake comes first. A connection that publishes by POST has no WebSocket handshake: it is live when
//! it is connected.

use super::activity::Activity;
use super::ending::Ending;

use super::outbox::Outbox;
use crate::clock::Nanos;
use crate::event_stream;
use crate::poller::{Interest, Poller};
use crate::received::{Received, Trouble};
use crate::response::head::Head;
use crate::response::{Malformed, ResponseReader};
use crate::socket::Socket;
use crate::tls::Client;
use crate::websocket::deflate::Deflater;
use crate::websocket::handshake::{self, Offer};
use crate::websocket::reader::{Item, Reader, NO_CODE, NO_FRAME};
use memchr::memmem::Finder;
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use rustix::net;
use std::cell::RefCell;
use std::rc::Rc;

/// RFC 6455 §7.4.1.
const NORMAL_CLOSURE: u16 = 1000;

/// Handshake settings that all sessions share.
pub(crate) struct Terms {
    pub(crate) offer: Offer,
    /// Text in the message that must arrive before `hello` is sent.
    pub(crate) welcome: Option<Finder<'static>>,
    pub(crate) hello: Option<String>,
    pub(crate) ready: Option<Finder<'static>>,
    pub(crate) deflater: Rc<RefCell<Deflater>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Waiting,
    Connecting,
    /// The TLS handshake is in progress.
    Securing,
    Shaking,
    Subscribing,
    Live,
    Over,
}

/// Protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    WebSocket,
    EventStream,
    /// Requests, one after the other.
    Http,
}

/// Parser for the input of the current stage.
#[derive(Debug)]
enum Stage {
    Head(Protocol),
    Frames(Reader),
    Events(event_stream::Reader),
    Answers(ResponseReader),
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) phase: Phase,
    /// Index of its group in the crowd.
    pub(crate) group: usize,
    /// Index of the address of the group's target to connect to.
    pub(crate) address: usize,
    /// Beginning of the current phase, if the phase can time out.
    pub(crate) since: Nanos,
    /// The handshake succeeded, even if the session ended later.
    pub(crate) opened: bool,
    /// The `--hello` message was sent.
    greeted: bool,
    pub(crate) subscribed: bool,
    pub(crate) outbox: Outbox,
    socket: Option<Socket>,
    interest: Interest,
    key: String,
    stage: Stage,
    /// An incomplete head or frame.
    rest: Vec<u8>,
}

/// Result of a read.
pub(crate) enum Input<'a> {
    Bytes(&'a [u8]),
    End,
    /// The connection ended without close_notify.
    Cut,
    Nothing,
}

impl Session {
    pub(crate) fn new(group: usize, protocol: Protocol, nonce: [u64; 2]) -> Session {
        let [a, b, c, d, ..] = nonce[0].to_be_bytes();
        Session {
            phase: Phase::Waiting,
            group,
            address: 0,
            since: 0,
            opened: false,
            greeted: false,
            subscribed: false,
            outbox: Outbox::new([a | 1, b, c, d]),
            socket: None,
            interest: Interest::Read,
            key: handshake::key(nonce),
            stage: Stage::of(protocol),
            rest: Vec::new(),
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Takes a socket that is connecting or connected.
    pub(crate) fn dialled(&mut self, socket: OwnedFd, poller: &Poller, number: usize) -> io::Result<()> {
        poller.add(&socket, number, Interest::ReadAndWrite)?;
        self.interest = Interest::ReadAndWrite;
        self.socket = Some(Socket::new(socket));
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// The connecting socket became ready: returns the next phase, or why connecting failed.
    pub(crate) fn finish_connecting(
        &mut self,
        client: Option<&Client>,
        poller: &Poller,
        number: usize,
    ) -> Result<(), Trouble> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        net::sockopt::socket_error(&*socket)??;
        match client {
            None => self.connected(),
            Some(client) => {
                socket.secure(client)?;
                self.interest = socket.watch(poller, number, self.interest)?;
                self.phase = Phase::Securing;
            }
        }
        Ok(())
    }

    /// Continues the TLS handshake. `buffer` is space for reading.
    pub(crate) fn go_on_securing(&mut self, buffer: &mut [u8], poller: &Poller, number: usize) -> Result<(), Trouble> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        match socket.shake(buffer)? {
            Some(_) => self.connected(),
            None => self.interest = socket.watch(poller, number, self.interest)?,
        }
        Ok(())
    }

    fn connected(&mut self) {
        let posts = matches!(self.stage, Stage::Answers(_));
        self.phase = if posts { Phase::Live } else { Phase::Shaking };
    }

    /// Drops the socket and its data, and enters `phase`.
    pub(crate) fn close(&mut self, phase: Phase) {
        if let (Some(socket), true) = (self.socket.take(), self.phase > Phase::Securing) {
            socket.leave();
        }
        self.phase = phase;
        self.rest = Vec::new();
        self.outbox.clear();
        if let Stage::Answers(reader) = &mut self.stage {
            reader.reset();
        }
    }

    /// Writes as much as the socket takes, and watches for writability if data is left. The outer error is one of the
    /// poller.
    pub(crate) fn write(&mut self, poller: &Poller, number: usize) -> io::Result<Result<(), Ending>> {
        let Some(socket) = &mut self.socket else {
            return Ok(Ok(()));
        };
        let mut blocked = false;
        while !self.outbox.is_empty() && !blocked {
            match socket.send(self.outbox.pending()) {
                Ok(sent) => self.outbox.took(sent),
                Err(Errno::AGAIN) => blocked = true,
                Err(Errno::INTR) => {}
                // Data that the server sent before may still be read; the session ends when that data ends.
                Err(_) => {
                    self.outbox.clear();
                    return Ok(Err(Ending::Write));
                }
            }
        }
        if let Err(error) = socket.flush() {
            if error != Errno::AGAIN {
                self.outbox.clear();
                return Ok(Err(Ending::Write));
            }
        }
        let wanted = Interest::of(blocked || !socket.is_flushed());
        if self.interest != wanted {
            poller.change(&*socket, number, wanted)?;
            self.interest = wanted;
        }
        Ok(Ok(()))
    }

    /// Number of bytes of an incomplete head or frame.
    pub(crate) fn kept(&self) -> usize {
        self.rest.len()
    }

    /// Reads once; the bytes kept from the last read come first in `buffer`.
    pub(crate) fn read<'a>(&mut self, buffer: &'a mut Vec<u8>, most: usize) -> Result<Input<'a>, Trouble> {
        let Some(socket) = &mut self.socket else {
            return Ok(Input::Nothing);
        };
        let kept = self.rest.len();
        if buffer.len() < kept + most {
            buffer.resize(kept + most, 0);
        }
        match socket.recv(&mut buffer[kept..kept + most])? {
            Received::End => Ok(Input::End),
            Received::Cut => Ok(Input::Cut),
            Received::Bytes(bytes) => {
                buffer[..kept].copy_from_slice(&self.rest);
                self.rest.clear();
                Ok(Input::Bytes(&buffer[..kept + bytes]))
            }
            Received::Nothing => Ok(Input::Nothing),
        }
    }

    /// Returns `true` if the server has announced the end of its data. Its socket may still be open.
    pub(crate) fn has_ended(&self) -> bool {
        self.socket.as_ref().is_some_and(Socket::has_ended)
    }

    /// Returns `true` if data remains to be sent.
    pub(crate) fn has_output(&self) -> bool {
        !self.outbox.is_empty() || self.socket.as_ref().is_some_and(|socket| !socket.is_flushed())
    }

    /// Parses `bytes` as far as possible and keeps the rest.
    pub(crate) fn digest(
        &mut self,
        number: usize,
        mut bytes: &[u8],
        terms: &Terms,
        activity: &mut impl Activity,
        now: Nanos,
    ) -> Result<(), Ending> {
        if let Stage::Head(protocol) = self.stage {
            let shaken = final_head(&mut bytes, |head| self.shake(head, protocol, terms))?;
            let Some(shaken) = shaken else {
                self.rest.extend_from_slice(bytes);
                return Ok(());
            };
            shaken?;
            if self.greeted && terms.ready.is_none() {
                self.subscribed(number, activity, now);
            }
        }
        self.messages(number, &mut bytes, terms, activity, now)?;
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Checks the response to the handshake.
    fn shake(&mut self, head: &Head<'_>, protocol: Protocol, terms: &Terms) -> Result<(), Ending> {
        let wanted = if protocol == Protocol::WebSocket { 101 } else { 200 };
        if head.status != wanted {
            return Err(Ending::Refused(head.status));
        }
        self.stage = if protocol == Protocol::WebSocket {
            let agreement = handshake::check(head, &self.key, &terms.offer).map_err(Ending::Handshake)?;
            if agreement.inflater.is_some() {
                self.outbox.deflater = Some(Rc::clone(&terms.deflater));
            }
            Stage::Frames(Reader::new(agreement.inflater))
        } else {
            Stage::Events(event_stream::Reader::new(head).map_err(Ending::Handshake)?)
        };
        self.opened = true;
        self.phase = Phase::Subscribing;
        if terms.welcome.is_none() {
            self.greet(terms);
        }
        Ok(())
    }

    /// Sends the message that subscribes this connection.
    fn greet(&mut self, terms: &Terms) {
        self.greeted = true;
        if let Some(hello) = &terms.hello {
            self.outbox.message(false, hello.as_bytes());
        }
    }

    fn subscribed(&mut self, number: usize, activity: &mut impl Activity, now: Nanos) {
        self.phase = Phase::Live;
        self.subscribed = true;
        activity.subscribed(number, now);
    }

    fn messages(
        &mut self,
        number: usize,
        bytes: &mut &[u8],
        terms: &Terms,
        activity: &mut impl Activity,
        now: Nanos,
    ) -> Result<(), Ending> {
        loop {
            // The messages that make the connection subscribed do not count as messages of the run.
            let has = |wanted: &Option<Finder<'_>>, payload: &[u8]| {
                wanted.as_ref().is_some_and(|wanted| wanted.find(payload).is_some())
            };
            let greets = |payload: &[u8]| has(&terms.welcome, payload);
            let subscribes = |payload: &[u8]| has(&terms.ready, payload);
            let live = self.phase == Phase::Live;
            match &mut self.stage {
                Stage::Head(_) => return Ok(()),
                Stage::Frames(reader) => match reader.next(bytes).map_err(Ending::Malformed)? {
                    None => return Ok(()),
                    Some(Item::Message { binary, payload }) if live => {
                        activity.message(number, binary, payload, &mut self.outbox, now)?;
                    }
                    Some(Item::Message { payload, .. }) if !self.greeted => {
                        if greets(payload) {
                            self.greet(terms);
                            if terms.ready.is_none() {
                                self.subscribed(number, activity, now);
                            }
                        }
                    }
                    Some(Item::Message { payload, .. }) if subscribes(payload) => {
                        self.subscribed(number, activity, now);
                    }
                    Some(Item::Message { .. } | Item::Pong) => {}
                    Some(Item::Ping(payload)) => self.outbox.pong(payload),
                    Some(Item::Close(code)) => {
                        self.outbox.close(if code == NO_CODE { NORMAL_CLOSURE } else { code });
                        return Err(Ending::Closed(code));
                    }
                },
                Stage::Events(reader) => match reader.next(bytes).map_err(Ending::Malformed)? {
                    None => return Ok(()),
                    Some(event_stream::Item::End) => return Err(Ending::Ended),
                    Some(event_stream::Item::Event(payload)) if live => {
                        activity.message(number, false, payload, &mut self.outbox, now)?
                    }
                    Some(event_stream::Item::Event(payload)) if subscribes(payload) => {
                        self.subscribed(number, activity, now)
                    }
                    Some(event_stream::Item::Event(_)) => {}
                },
                Stage::Answers(reader) => match reader.read(bytes) {
                    Ok(None) => return Ok(()),
                    Ok(Some(answer)) => {
                        activity.answered(number, answer.status, now)?;
                        if !answer.keep_alive {
                            return Err(Ending::Ended);
                        }
                    }
                    Err(Malformed) => return Err(Ending::Malformed("not an HTTP response")),
                },
            }
        }
    }

    /// The server has closed the connection: returns the kind of the end.
    pub(crate) fn end(&mut self, number: usize, activity: &mut impl Activity, now: Nanos) -> Ending {
        match &mut self.stage {
            Stage::Events(reader) if reader.may_end() => Ending::Ended,
            Stage::Answers(reader) => match reader.end() {
                Some(answer) => activity
                    .answered(number, answer.status, now)
                    .err()
                    .unwrap_or(Ending::Ended),
                None => Ending::Ended,
            },
            Stage::Head(_) | Stage::Frames(_) | Stage::Events(_) => Ending::Closed(NO_FRAME),
        }
    }

    /// The connection has ended without close_notify: returns the kind of the end.
    pub(crate) fn cut(&self) -> Ending {
        match self.stage {
            Stage::Answers(_) => Ending::Ended,
            Stage::Head(_) | Stage::Frames(_) | Stage::Events(_) => Ending::Closed(NO_FRAME),
        }
    }

    /// Closes the connection cleanly, as far as the socket takes the closing bytes.
    pub(crate) fn leave(&mut self, poller: &Poller, number: usize) {
        if let (Stage::Frames(_), Phase::Subscribing | Phase::Live) = (&self.stage, self.phase) {
            self.outbox.close(NORMAL_CLOSURE);
        }
        let _ = self.write(poller, number);
        self.close(Phase::Over);
    }
}

impl Stage {
    fn of(protocol: Protocol) -> Stage {
        match protocol {
            Protocol::WebSocket | Protocol::EventStream => Stage::Head(protocol),
            Protocol::Http => Stage::Answers(ResponseReader::new("POST")),
        }
    }
}

/// Removes the head of the response from `bytes`, and any interim responses before it (RFC 9110 §15.2). Returns the
/// result of `look`.
fn final_head<T>(bytes: &mut &[u8], mut look: impl FnMut(&Head<'_>) -> T) -> Result<Option<T>, Ending> {
    loop {
        let look = |head: &Head<'_>| (head.status == 101 || head.status >= 200).then(|| look(head));
        let found = Head::parse(bytes, look).map_err(|Malformed| Ending::Malformed("not an HTTP response"))?;
        let Some((looked, length)) = found else {
            return Ok(None);
        };
        *bytes = &bytes[length..];
        if looked.is_some() {
            return Ok(looked);
        }
    }
}
