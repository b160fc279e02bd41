//! Decodes what a client sends: messages for the app, control frames that are answered at once, and the close frame or
//! protocol violation that ends the connection.

use super::client::Client;
use super::ending::State;
use super::inbox::{Event, LastWord};
use super::reader::{ReadTurn, Reader};
use super::unfinished::NO_MEMORY;
use super::Realtime;
use crate::clock::Millis;
use fairlead_wire::websocket::{Failure, Incoming, Limits};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;

/// Most fragments of one message.
const MOST_FRAGMENTS: usize = 1 << 18;

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
    /// Decodes as much as may wait for the app and fits into one turn. Returns whether the client has to be put into
    /// the ready queue, and how many bytes were decoded.
    pub(super) fn take_in(
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
        let before = decoder.unfinished();
        let mut has_message = false;
        let fed = decoder.feed_while(bytes, &limits, &mut |incoming| {
            let (text, data) = match incoming {
                Incoming::Text(data) => (true, data),
                Incoming::Binary(data) => (false, data),
                other => {
                    remarks.extend(Remark::of(&other));
                    return ControlFlow::Continue(());
                }
            };
            has_message = true;
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
        let (left, held) = (decoder.unfinished(), decoder.held());
        let more = if has_message { left } else { left.saturating_sub(before) };
        let has_room = self.keep_unfinished(reader, held, (more, has_message), realtime, now);
        let fed = fed.and_then(|taken| has_room.then_some(taken).ok_or(NO_MEMORY));
        let (schedule, is_sound) = self.pass_on(reader, messages, &remarks, fed.map(|_| ()), realtime, now);
        let taken = if is_sound {
            fed.unwrap_or(bytes.len())
        } else {
            bytes.len()
        };
        (schedule, taken)
    }

    /// Handles what was decoded, and the failure in `fed`, if any. Returns whether the client has to be put into the
    /// ready queue, and whether there is more to decode.
    fn pass_on(
        &self,
        reader: &mut Reader,
        messages: Vec<Event>,
        remarks: &[Remark],
        fed: Result<(), Failure>,
        realtime: &Realtime,
        now: Millis,
    ) -> (bool, bool) {
        // A pong does not wait for the app, not even for an event that runs now and would take the messages at once.
        let heard = remarks
            .iter()
            .try_for_each(|remark| self.answer(reader, remark, realtime, now));
        let schedule = !messages.is_empty() && self.state() == State::Open && self.hand_in(messages, realtime);
        let failed = fed.and(heard).err();
        reader.is_done |= failed.is_some() || matches!(remarks.last(), Some(Remark::Close(_)));
        if let Some(failure) = failed {
            reader.forget_message();
            self.message_due.store(Millis::NEVER, Relaxed);
            self.receive_last(LastWord::Failure(failure));
        } else if let Some(Remark::Close(code)) = remarks.last() {
            self.receive_last(LastWord::Close(*code));
        }
        (schedule, reader.decoder.is_some())
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
    pub(super) fn receive_last(&self, last_word: LastWord) {
        let waits = self.state() == State::Open && self.inbox.lock().put_off(last_word);
        if !waits {
            self.answer_last(last_word);
        }
    }
}
