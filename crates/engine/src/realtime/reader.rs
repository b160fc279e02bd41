//! What a client sends: WebSocket frames become messages for the app, and answers that the app never sees. Other clients
//! have nothing to say; that their input ends is all there is to notice.

use super::client::{Client, Events, Protocol, State};
use super::inbox::{Event, Farewell};
use crate::clock::milliseconds;
use crate::engine::Engine;
use fairlead_wire::websocket::{Decoder, Deflate, Failure, Incoming, Limits, Role};
use rustix::io::Errno;
use rustix::net::{recv, RecvFlags};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Bytes of one turn: a peer that sends faster than this lets others have theirs.
const READ_TURN: usize = 256 * 1024;

/// Pieces that one message may have.
const MOST_FRAGMENTS: usize = 1 << 18;

pub(super) struct Reader {
    /// Gone once the client is.
    pub(super) socket: Option<Arc<OwnedFd>>,
    /// None for a peer that has nothing to say, or has broken the protocol.
    decoder: Option<Decoder>,
    /// The current second, and the control frames that came in it.
    second: u64,
    controls: u32,
}

impl Reader {
    /// Gives everything back.
    pub(super) fn end(&mut self) {
        self.socket = None;
        self.decoder = None;
    }

    pub(super) fn new(socket: Arc<OwnedFd>, protocol: Protocol, deflate: Option<Deflate>) -> Reader {
        Reader {
            socket: Some(socket),
            decoder: (protocol == Protocol::WebSocket).then(|| Decoder::new(Role::Server, deflate)),
            second: 0,
            controls: 0,
        }
    }

    fn count_control(&mut self, now: u64, most: u32) -> bool {
        let second = now / 1000;
        if std::mem::replace(&mut self.second, second) != second {
            self.controls = 0;
        }
        self.controls += 1;
        most == 0 || self.controls <= most
    }
}

/// What the peer says about the connection rather than to the app.
enum Remark {
    Ping(Vec<u8>),
    Pong,
    Close(Option<u16>),
}

impl Client {
    /// The socket is readable: takes what has come. Called by the poller alone; true when the client has to be put into
    /// the ready queue.
    pub(crate) fn read(&self, scratch: &mut [u8], engine: &Engine, now: u64) -> bool {
        let mut schedule = false;
        let mut turn = 0;
        let mut reader = self.reader.lock();
        let Some(socket) = reader.socket.clone() else {
            return false;
        };
        while turn < READ_TURN && !self.paused.load(Relaxed) {
            match recv(&socket, &mut *scratch, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    drop(reader);
                    self.end();
                    return schedule;
                }
                Ok((count, _)) => {
                    self.heard.store(now, Relaxed);
                    turn += count;
                    if self.state() < State::Failed {
                        schedule |= self.take_in(&mut reader, &mut scratch[..count], engine, now);
                    }
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
        schedule
    }

    /// Bytes that came with the handshake.
    pub(super) fn read_ahead(&self, bytes: &mut [u8], engine: &Engine) -> bool {
        let mut reader = self.reader.lock();
        self.take_in(&mut reader, bytes, engine, milliseconds())
    }

    /// From now on the poller reads, unless the app has enough to do already.
    pub(super) fn start_reading(&self) {
        let mut outbox = self.outbox.lock();
        outbox.reads = !self.paused.load(Relaxed);
        self.watch(&mut outbox);
    }

    fn take_in(&self, reader: &mut Reader, bytes: &mut [u8], engine: &Engine, now: u64) -> bool {
        let Some(decoder) = &mut reader.decoder else {
            return false;
        };
        let limits = Limits {
            message_bytes: engine.config.message_max_bytes,
            fragments: MOST_FRAGMENTS,
        };
        let mut messages = Vec::new();
        let mut remarks = Vec::new();
        let wanted = self.wants(Events::MESSAGE);
        let fed = decoder.feed(bytes, &limits, &mut |incoming| match incoming {
            Incoming::Text(data) if wanted => messages.push(Event::Message {
                text: true,
                data: data.into_owned(),
            }),
            Incoming::Binary(data) if wanted => messages.push(Event::Message {
                text: false,
                data: data.into_owned(),
            }),
            Incoming::Text(_) | Incoming::Binary(_) => {}
            Incoming::Ping(data) => remarks.push(Remark::Ping(data.to_vec())),
            Incoming::Pong(_) => remarks.push(Remark::Pong),
            Incoming::Close(code, _) => remarks.push(Remark::Close(code)),
        });
        // A pong does not wait for the app, not even for one that runs right now and takes the messages at once.
        let heard = remarks
            .iter()
            .try_for_each(|remark| self.answer(reader, remark, engine, now));
        let schedule = !messages.is_empty() && self.state() == State::Open && self.hand_in(messages, engine);
        if let Err(failure) = fed.and(heard) {
            reader.decoder = None;
            self.hear_last(Farewell::Fault(failure));
        } else if let Some(Remark::Close(code)) = remarks.last() {
            self.hear_last(Farewell::Goodbye(*code));
        }
        schedule
    }

    /// Gives messages to the app, and stops reading when it does not keep up.
    fn hand_in(&self, messages: Vec<Event>, engine: &Engine) -> bool {
        let mut inbox = self.inbox.lock();
        let mut schedule = false;
        for message in messages {
            schedule |= inbox.push(message);
        }
        if !inbox.has_room(engine.config.message_max_bytes) {
            drop(inbox);
            self.pause(engine);
        }
        schedule
    }

    fn pause(&self, engine: &Engine) {
        let mut outbox = self.outbox.lock();
        self.paused.store(true, Relaxed);
        outbox.reads = false;
        self.watch(&mut outbox);
        drop(outbox);
        // The app may have caught up meanwhile, and then it has not seen that there was a pause to end.
        self.resume(engine);
    }

    fn answer(&self, reader: &mut Reader, remark: &Remark, engine: &Engine, now: u64) -> Result<(), Failure> {
        if let Remark::Close(_) = remark {
            return Ok(());
        }
        if !reader.count_control(now, engine.config.max_pings) {
            return Err(Failure {
                code: 1008,
                reason: "too many control frames",
            });
        }
        if let Remark::Ping(data) = remark {
            self.pong(data);
        }
        Ok(())
    }

    /// What came before is answered first.
    fn hear_last(&self, farewell: Farewell) {
        let waits = self.state() == State::Open && self.inbox.lock().put_off(farewell);
        if !waits {
            self.part(farewell);
        }
    }

    /// The app has caught up: goes on reading.
    pub(super) fn resume(&self, engine: &Engine) {
        if self.paused.load(Relaxed) && self.inbox.lock().has_room(engine.config.message_max_bytes / 2) {
            let mut outbox = self.outbox.lock();
            self.paused.store(false, Relaxed);
            // What the peer has sent meanwhile is still to be read.
            self.heard.store(milliseconds(), Relaxed);
            outbox.reads = true;
            self.watch(&mut outbox);
        }
    }
}
