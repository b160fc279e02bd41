//! Reads the input of a client: messages for the app, control frames with an immediate reply, and the close frame or
//! protocol violation that ends the connection. For clients that send nothing, only the end of their input counts.

use super::client::Client;
use super::encoding;
use super::ending::EndState;
use super::inbox::{Event, LastEvent};
use super::reader::{Control, Decoded, ReadTurn, Reader};
use super::unfinished::NO_MEMORY;
use super::Realtime;
use crate::clock::Millis;
use crate::transport::Link;
use fairlead_wire::websocket::{Failure, Opcode};
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;

impl Client {
    /// Decodes bytes that are left, and reads more, because the socket is readable or there are undecoded bytes. Called
    /// only by the poller. Returns true if the client has to be put into the ready queue.
    pub(crate) fn read(&self, scratch: &mut [u8], realtime: &Realtime, now: Millis) -> bool {
        let mut schedule = false;
        let mut turn = ReadTurn::default();
        let mut reader = self.reader.lock();
        let Some(transport) = reader.transport.clone() else {
            return false;
        };
        if self.is_in_wait() {
            drop(reader);
            self.look_for_end(&transport);
            return false;
        }
        if self.keeps_messages() && realtime.intake.room() == 0 {
            self.pause(realtime);
        }
        if !reader.has_rest() {
            self.backpressure.catch_up();
        } else if !self.backpressure.is_paused() {
            schedule |= self.take_in_rest(&mut reader, &mut turn, realtime, now);
        }
        while !reader.has_rest() && !turn.is_over() && !self.backpressure.is_paused() {
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
        if !reader.has_rest() && transport.holds_received() {
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Decodes bytes that arrived with the handshake.
    pub(super) fn read_ahead(&self, bytes: &mut [u8], realtime: &Realtime) -> bool {
        let mut reader = self.reader.lock();
        self.take_in_read(&mut reader, bytes, &mut ReadTurn::default(), realtime, Millis::now())
    }

    /// Counts the incomplete message of another process.
    pub(super) fn recount_message(&self, realtime: &Realtime) {
        let mut reader = self.reader.lock();
        let Some(growth) = reader.restored_message() else {
            return;
        };
        if !reader.unfinished.keep(growth, self, realtime, Millis::now()) {
            reader.forget_message();
            reader.is_done = true;
            drop(reader);
            self.receive_last(LastEvent::Failure(NO_MEMORY));
        }
    }

    /// Makes the poller read from now on, unless the app has enough to do already.
    pub(super) fn start_reading(&self, realtime: &Realtime) {
        let mut outbox = self.outbox.lock();
        outbox.reads = !self.backpressure.is_paused();
        self.watch(&mut outbox);
        drop(outbox);
        let reader = self.reader.lock();
        let holds_received = |transport: &Link| transport.holds_received();
        if reader.has_rest() || reader.transport.as_ref().is_some_and(holds_received) {
            self.stay_behind(realtime);
        }
    }

    /// Decodes the bytes of a read, and keeps the rest.
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
            reader.keep_bytes(&bytes[taken..]);
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Decodes bytes that an earlier turn has left.
    fn take_in_rest(&self, reader: &mut Reader, turn: &mut ReadTurn, realtime: &Realtime, now: Millis) -> bool {
        let mut rest = reader.take_rest();
        self.backpressure.catch_up();
        let (schedule, taken) = self.take_in(reader, rest.bytes(), turn, realtime, now);
        rest.advance(taken);
        if !rest.is_empty() {
            reader.keep_rest(rest);
            self.stay_behind(realtime);
        }
        schedule
    }

    /// Decodes as much as may wait for the app and fits into one turn. Returns true if the client has to be put into
    /// the ready queue, and the number of decoded bytes.
    fn take_in(
        &self,
        reader: &mut Reader,
        bytes: &mut [u8],
        turn: &mut ReadTurn,
        realtime: &Realtime,
        now: Millis,
    ) -> (bool, usize) {
        if !reader.decodes() || self.state() >= EndState::Failed {
            return (false, bytes.len());
        }
        let room = self.keeps_messages().then(|| self.room(realtime));
        let most_bytes = realtime.worker.config.message_max_bytes;
        let Some(mut decoded) = reader.decode(bytes, turn, room, most_bytes) else {
            return (false, bytes.len());
        };
        if !reader.unfinished.keep(decoded.growth, self, realtime, now) {
            decoded.taken = decoded.taken.and(Err(NO_MEMORY));
        }
        let taken = decoded.taken;
        let schedule = self.pass_on(reader, decoded, realtime, now);
        match taken {
            Ok(taken) if reader.decodes() => (schedule, taken),
            _ => (schedule, bytes.len()),
        }
    }

    /// Handles decoded frames, and the failure, if any. Returns true if the client has to be put into the ready queue.
    fn pass_on(&self, reader: &mut Reader, decoded: Decoded, realtime: &Realtime, now: Millis) -> bool {
        let Decoded {
            messages,
            controls,
            taken,
            ..
        } = decoded;
        // A pong does not wait for the app, not even for an event that runs now and would take the messages at once.
        let heard = controls
            .iter()
            .try_for_each(|control| self.answer(reader, control, realtime, now));
        let schedule = !messages.is_empty() && self.state() == EndState::Open && self.hand_in(messages, realtime);
        let last_event = match (taken.and(heard), controls.last()) {
            (Err(failure), _) => LastEvent::Failure(failure),
            (Ok(()), Some(Control::Close(code))) => LastEvent::Close(*code),
            _ => return schedule,
        };
        reader.is_done = true;
        if let LastEvent::Failure(_) = last_event {
            reader.forget_message();
            self.message_due.clear();
        }
        self.receive_last(last_event);
        schedule
    }

    /// Adds messages to the inbox, and pauses the client if the app does not keep up.
    fn hand_in(&self, messages: Vec<Event>, realtime: &Realtime) -> bool {
        let received = &realtime.worker.counters().messages_received;
        received.fetch_add(messages.len() as u64, Relaxed);
        self.let_wait(messages, realtime)
    }

    /// The same, for messages that were counted.
    pub(super) fn let_wait(&self, messages: Vec<Event>, realtime: &Realtime) -> bool {
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

    /// Replies to a ping at once.
    ///
    /// # Errors
    /// If the peer sends too many control frames.
    fn answer(&self, reader: &mut Reader, control: &Control, realtime: &Realtime, now: Millis) -> Result<(), Failure> {
        match control {
            Control::Close(_) => return Ok(()),
            Control::Pong(data) if self.hear_receipt(data, realtime) => return Ok(()),
            _ => {}
        }
        reader.count_control(now, realtime.worker.config.max_pings)?;
        if let Control::Ping(data) = control {
            self.pong(data);
        }
        Ok(())
    }

    fn pong(&self, data: &[u8]) {
        let outbox = self.outbox.lock();
        if self.is_open() && outbox.frames.bytes() <= self.most_bytes() {
            self.send_quietly(outbox, encoding::plain(Opcode::Pong, data));
        }
    }

    /// Replies to a last word after all earlier messages.
    fn receive_last(&self, last_event: LastEvent) {
        let waits = self.state() == EndState::Open && self.inbox.lock().put_off(last_event);
        if !waits {
            self.answer_last(last_event);
        }
    }

    /// Gives back the memory of its incomplete message, and ends the client. Returns false if it has none, or is being
    /// read.
    pub(crate) fn give_message_up(&self) -> bool {
        self.drop_message(NO_MEMORY)
    }

    /// Like [`Client::give_message_up`], for another reason. This thread may have locked the reader of another client,
    /// so this must not wait for a reader.
    pub(super) fn drop_message(&self, failure: Failure) -> bool {
        let Some(mut reader) = self.reader.try_lock() else {
            return false;
        };
        if !reader.unfinished.is_counted() {
            return false;
        }
        reader.forget_message();
        reader.is_done = true;
        self.message_due.clear();
        drop(reader);
        self.receive_last(LastEvent::Failure(failure));
        true
    }
}
