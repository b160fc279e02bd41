//! Reads what a client sends: WebSocket frames become messages for the app, or are answered without it. Other clients
//! send nothing; for them only the end of their input counts.

use super::client::{Client, Events, Protocol, State};
use super::inbox::{Event, LastWord, Room};
use super::Realtime;
use crate::clock::Millis;
use crate::limits::request_totals::Taken;
use crate::transport::Link;
use fairlead_wire::websocket::{Decoder, Deflate, Failure, Incoming, Limits, Role};
use rustix::io::Errno;
use std::mem::take;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Bytes read in one turn: a peer that sends faster than this must let others have their turn.
const READ_TURN: usize = 256 * 1024;

/// Most fragments of one message.
const MOST_FRAGMENTS: usize = 1 << 18;

/// The failure of a peer whose message grows while the messages of others take all the memory for them.
const NO_MEMORY: Failure = Failure {
    code: 1013,
    reason: "no memory for a message as large",
};

pub(super) struct Reader {
    /// `None` once the client is released.
    pub(super) transport: Option<Link>,
    /// `None` for a peer that sends nothing, or has violated the protocol.
    decoder: Option<Decoder>,
    /// What was read and not decoded, of one read at most; nothing else is read before it is decoded.
    rest: Rest,
    /// Counts the memory of an incomplete message.
    taken: Taken,
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
struct ReadTurn {
    read: usize,
    /// Bytes of decoded messages: up to a thousand times as many as were read, if they were compressed.
    decoded: usize,
}

impl ReadTurn {
    fn is_over(&self) -> bool {
        self.read >= READ_TURN || self.decoded >= READ_TURN
    }
}

impl Reader {
    /// Releases everything.
    pub(super) fn end(&mut self) {
        self.transport = None;
        self.decoder = None;
        self.rest = Rest::default();
        self.taken = Taken::default();
    }

    pub(super) fn new(transport: Link, protocol: Protocol, deflate: Option<Deflate>) -> Reader {
        Reader {
            transport: Some(transport),
            decoder: (protocol == Protocol::WebSocket).then(|| Decoder::new(Role::Server, deflate)),
            rest: Rest::default(),
            taken: Taken::default(),
            second: 0,
            controls: 0,
        }
    }

    fn count_control(&mut self, now: Millis, most: u32) -> bool {
        let second = now.second();
        if std::mem::replace(&mut self.second, second) != second {
            self.controls = 0;
        }
        self.controls += 1;
        most == 0 || self.controls <= most
    }
}

/// A control frame: concerns the connection, not the app.
enum Remark {
    Ping(Vec<u8>),
    Pong,
    Close(Option<u16>),
}

impl Remark {
    fn of(incoming: &Incoming<'_>) -> Option<Remark> {
        match incoming {
            Incoming::Ping(data) => Some(Remark::Ping(data.to_vec())),
            Incoming::Pong(_) => Some(Remark::Pong),
            Incoming::Close(code, _) => Some(Remark::Close(*code)),
            Incoming::Text(_) | Incoming::Binary(_) => None,
        }
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
        if self.keeps_messages() && realtime.intake.room() == 0 {
            self.pause(realtime);
        }
        if !reader.rest.is_empty() && !self.paused.load(SeqCst) {
            schedule |= self.take_in_rest(&mut reader, &mut turn, realtime, now);
        }
        while reader.rest.is_empty() && !turn.is_over() && !self.paused.load(SeqCst) {
            match transport.receive(scratch) {
                Ok(0) => {
                    drop(reader);
                    self.end();
                    return schedule;
                }
                Ok(count) => {
                    self.heard.store(now, Relaxed);
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
        schedule
    }

    /// Decodes bytes that arrived with the handshake.
    pub(super) fn read_ahead(&self, bytes: &mut [u8], realtime: &Realtime) -> bool {
        let mut reader = self.reader.lock();
        self.take_in_read(&mut reader, bytes, &mut ReadTurn::default(), realtime, Millis::now())
    }

    /// The poller reads from now on, unless the app has enough to do already.
    pub(super) fn start_reading(&self) {
        let mut outbox = self.outbox.lock();
        outbox.reads = !self.paused.load(SeqCst);
        self.watch(&mut outbox);
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
        self.is_behind.store(false, SeqCst);
        let (schedule, taken) = self.take_in(reader, &mut rest.bytes[rest.decoded..], turn, realtime, now);
        rest.decoded += taken;
        if !rest.is_empty() {
            reader.rest = rest;
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Undecoded bytes are left. They are decoded in the next turn, or, if the client is paused, when it is resumed.
    fn stay_behind(&self, realtime: &Realtime) {
        self.is_behind.store(true, SeqCst);
        if !self.paused.load(SeqCst) {
            self.catch_up(realtime);
        }
    }

    /// Decodes as much as may wait for the app and fits into one turn. Returns whether the client has to be put into
    /// the ready queue, and how many bytes were decoded.
    fn take_in(
        &self,
        reader: &mut Reader,
        bytes: &mut [u8],
        turn: &mut ReadTurn,
        realtime: &Realtime,
        now: Millis,
    ) -> (bool, usize) {
        let (Some(decoder), true) = (&mut reader.decoder, self.state() < State::Failed) else {
            return (false, bytes.len());
        };
        let limits = Limits {
            message_bytes: realtime.worker.config.message_max_bytes,
            fragments: MOST_FRAGMENTS,
        };
        let mut messages = Vec::new();
        let mut remarks = Vec::new();
        let keeps = self.keeps_messages();
        let mut room = self.room(realtime);
        let fed = decoder.feed_while(bytes, &limits, &mut |incoming| {
            let (text, data) = match incoming {
                Incoming::Text(data) => (true, data),
                Incoming::Binary(data) => (false, data),
                other => {
                    remarks.extend(Remark::of(&other));
                    return ControlFlow::Continue(());
                }
            };
            turn.decoded += data.len();
            if keeps {
                let data = data.into_owned();
                let message = Event::Message { text, data };
                room = room.less(&message);
                messages.push(message);
            }
            if turn.is_over() || (keeps && room.is_empty()) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let unfinished = decoder.unfinished();
        let has_room = reader.taken.memory(&realtime.worker.config.request_totals, unfinished);
        let fed = fed.and_then(|taken| has_room.then_some(taken).ok_or(NO_MEMORY));
        let (schedule, is_sound) = self.pass_on(reader, messages, &remarks, (fed.map(|_| ()), now), realtime);
        (
            schedule,
            if is_sound {
                fed.unwrap_or(bytes.len())
            } else {
                bytes.len()
            },
        )
    }

    /// Handles what was decoded, and the failure in `fed`, if any. Returns whether the client has to be put into the
    /// ready queue, and whether there is more to decode.
    fn pass_on(
        &self,
        reader: &mut Reader,
        messages: Vec<Event>,
        remarks: &[Remark],
        (fed, now): (Result<(), Failure>, Millis),
        realtime: &Realtime,
    ) -> (bool, bool) {
        // A pong does not wait for the app, not even for an event that runs now and would take the messages at once.
        let heard = remarks
            .iter()
            .try_for_each(|remark| self.answer(reader, remark, realtime, now));
        let schedule = !messages.is_empty() && self.state() == State::Open && self.hand_in(messages, realtime);
        if let Err(failure) = fed.and(heard) {
            reader.decoder = None;
            reader.taken = Taken::default();
            self.receive_last(LastWord::Failure(failure));
        } else if let Some(Remark::Close(code)) = remarks.last() {
            self.receive_last(LastWord::Close(*code));
        }
        (schedule, reader.decoder.is_some())
    }

    /// Whether messages go to the app.
    fn keeps_messages(&self) -> bool {
        self.wants(Events::MESSAGE) && self.state() == State::Open
    }

    /// How much may still wait for the app.
    fn room(&self, realtime: &Realtime) -> Room {
        let own = self.inbox.lock().room(realtime.worker.config.client_pending_bytes);
        Room {
            bytes: own.bytes.min(realtime.intake.room()),
            ..own
        }
    }

    /// Adds messages to the inbox, and pauses the client if the app does not keep up.
    fn hand_in(&self, messages: Vec<Event>, realtime: &Realtime) -> bool {
        let mut inbox = self.inbox.lock();
        if inbox.is_closed() {
            return false;
        }
        realtime.intake.add(messages.iter().map(Event::own_bytes).sum());
        let mut schedule = false;
        for message in messages {
            schedule |= inbox.push(message);
        }
        drop(inbox);
        if self.room(realtime).is_empty() {
            self.pause(realtime);
        }
        schedule
    }

    fn pause(&self, realtime: &Realtime) {
        let mut outbox = self.outbox.lock();
        self.paused.store(true, SeqCst);
        outbox.reads = false;
        self.watch(&mut outbox);
        drop(outbox);
        // The app may have caught up in between, before it could see the pause.
        self.resume(realtime);
    }

    fn answer(&self, reader: &mut Reader, remark: &Remark, realtime: &Realtime, now: Millis) -> Result<(), Failure> {
        if let Remark::Close(_) = remark {
            return Ok(());
        }
        if !reader.count_control(now, realtime.worker.config.max_pings) {
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

    /// Answers a last word after all earlier messages.
    fn receive_last(&self, last_word: LastWord) {
        let waits = self.state() == State::Open && self.inbox.lock().put_off(last_word);
        if !waits {
            self.answer_last(last_word);
        }
    }

    /// Ends a pause, if the app has caught up or takes no more messages, once there is room in all inboxes.
    pub(crate) fn resume(&self, realtime: &Realtime) {
        if !self.paused.load(SeqCst) {
            return;
        }
        if self.keeps_messages() {
            if !self
                .inbox
                .lock()
                .has_room(realtime.worker.config.client_pending_bytes / 2)
            {
                return;
            }
            if realtime.intake.room() == 0 {
                return self.wait_in_line(realtime);
            }
        }
        let mut outbox = self.outbox.lock();
        self.paused.store(false, SeqCst);
        // What the peer has sent during the pause has not been read yet.
        self.heard.store(Millis::now(), Relaxed);
        outbox.reads = true;
        self.watch(&mut outbox);
        drop(outbox);
        self.catch_up(realtime);
    }

    /// Lets the poller decode what is left of a read.
    fn catch_up(&self, realtime: &Realtime) {
        if self.is_behind.load(SeqCst) {
            if let Some(client) = self.me.upgrade() {
                realtime.intake.read_on(client, &realtime.worker.poller);
            }
        }
    }

    fn wait_in_line(&self, realtime: &Realtime) {
        if !self.in_line.swap(true, SeqCst) {
            if let Some(client) = self.me.upgrade() {
                realtime.intake.wait(client, &realtime.worker.poller);
            }
        }
    }

    /// The client leaves the line, because it is read again.
    pub(super) fn leave_line(&self) {
        self.in_line.store(false, SeqCst);
    }
}
