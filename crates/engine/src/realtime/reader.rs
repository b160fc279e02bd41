//! The reader of a client: decodes frames of a WebSocket into messages and control frames. Other clients send nothing.

use super::client::Protocol;
use super::inbox::{Event, Room};
use super::unfinished::{Growth, Unfinished};
use crate::clock::Millis;
use crate::transport::poller::Key;
use crate::transport::{Link, READ_TURN};
use fairlead_wire::websocket::{Decoder, Deflate, Failure, Incoming, Limits, Role};
use std::mem::take;
use std::ops::ControlFlow;

/// Most fragments of one message.
const MOST_FRAGMENTS: usize = 1 << 18;

/// The failure of a peer that keeps the server busy with replies.
const TOO_MANY_CONTROLS: Failure = Failure {
    code: 1008,
    reason: "too many control frames",
};

pub(super) struct Reader {
    /// `None` once the client is released.
    pub(super) transport: Option<Link>,
    /// `None` for a peer that sends nothing, or has violated the protocol.
    decoder: Option<Decoder>,
    /// Bytes that were read and not decoded, of one read at most; nothing else is read before they are decoded.
    rest: Rest,
    /// The peer has sent its close frame, or has failed. The end of its input, which may follow at once, must not
    /// discard our reply.
    pub(super) is_done: bool,
    pub(super) unfinished: Unfinished,
    controls: ControlRate,
}

/// The undecoded end of a read.
#[derive(Default)]
pub(super) struct Rest {
    bytes: Vec<u8>,
    /// Bytes that have been decoded.
    decoded: usize,
}

/// The control frames of the current second.
#[derive(Default)]
struct ControlRate {
    second: u64,
    count: u32,
}

/// The progress of one turn.
#[derive(Default)]
pub(super) struct ReadTurn {
    pub(super) read: usize,
    /// Bytes of decoded messages: up to a thousand times as many as were read, if they were compressed.
    decoded: usize,
}

/// A control frame: concerns the connection, and not the app.
pub(super) enum Control {
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
}

/// The frames in some bytes of a peer.
pub(super) struct Decoded {
    /// Messages for the app.
    pub(super) messages: Vec<Event>,
    pub(super) controls: Vec<Control>,
    /// The number of bytes that were decoded.
    pub(super) taken: Result<usize, Failure>,
    /// The message that is not complete yet.
    pub(super) growth: Growth,
}

impl Rest {
    pub(super) fn is_empty(&self) -> bool {
        self.decoded == self.bytes.len()
    }

    /// The bytes that wait.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.decoded..]
    }

    pub(super) fn advance(&mut self, taken: usize) {
        self.decoded += taken;
    }
}

impl ReadTurn {
    pub(super) fn is_over(&self) -> bool {
        self.read >= READ_TURN || self.decoded >= READ_TURN
    }
}

impl ControlRate {
    /// Counts a control frame. Returns false if there are more than `most` in this second. 0 means no limit.
    fn count(&mut self, now: Millis, most: u32) -> bool {
        let second = now.second();
        if std::mem::replace(&mut self.second, second) != second {
            self.count = 0;
        }
        self.count += 1;
        most == 0 || self.count <= most
    }
}

impl Control {
    fn of(incoming: &Incoming<'_>) -> Option<Control> {
        match incoming {
            Incoming::Ping(data) => Some(Control::Ping(data.to_vec())),
            Incoming::Pong(data) => Some(Control::Pong(data.to_vec())),
            Incoming::Close(code, _) => Some(Control::Close(*code)),
            Incoming::Text(_) | Incoming::Binary(_) => None,
        }
    }
}

impl Reader {
    pub(super) fn new(transport: Link, key: Key, protocol: Protocol, deflate: Option<Deflate>) -> Reader {
        Reader {
            unfinished: Unfinished::new(key, transport.budget().cloned()),
            transport: Some(transport),
            decoder: (protocol == Protocol::WebSocket).then(|| Decoder::new(Role::Server, deflate)),
            rest: Rest::default(),
            is_done: false,
            controls: ControlRate::default(),
        }
    }

    /// The state of the decoder, if there is one, and the bytes that it has not decoded, for another process. `None` after the
    /// peer's last frame.
    pub(super) fn save(&self) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
        if self.is_done {
            return None;
        }
        let decoder = match &self.decoder {
            Some(decoder) => Some(decoder.save()?),
            None => None,
        };
        Some((decoder, self.rest.bytes[self.rest.decoded..].to_vec()))
    }

    /// Continues with the state of another process. Returns false if it is not valid.
    pub(super) fn restore(&mut self, decoder: Option<&[u8]>, undecoded: &[u8], deflate: Option<Deflate>) -> bool {
        if let Some(saved) = decoder {
            let Some(decoder) = Decoder::restore(Role::Server, deflate, saved) else {
                return false;
            };
            self.decoder = Some(decoder);
        }
        self.keep_bytes(undecoded);
        true
    }

    /// The incomplete message of another process.
    pub(super) fn restored_message(&self) -> Option<Growth> {
        let decoder = self.decoder.as_ref()?;
        (decoder.held() > 0).then(|| Growth {
            held: decoder.held(),
            more: decoder.unfinished(),
            is_new: true,
        })
    }

    /// Releases everything.
    pub(super) fn end(&mut self) {
        self.transport = None;
        self.rest = Rest::default();
        self.forget_message();
    }

    /// Gives back the memory of an incomplete message. Nothing is decoded after that.
    pub(super) fn forget_message(&mut self) {
        self.decoder = None;
        self.unfinished.forget();
    }

    /// Returns true if further input has to be decoded.
    pub(super) fn decodes(&self) -> bool {
        self.decoder.is_some()
    }

    /// Returns true if an earlier turn has left bytes.
    pub(super) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Takes the bytes that an earlier turn has left.
    pub(super) fn take_rest(&mut self) -> Rest {
        take(&mut self.rest)
    }

    /// Keeps undecoded bytes.
    pub(super) fn keep_rest(&mut self, rest: Rest) {
        self.rest = rest;
    }

    /// Keeps a copy of undecoded bytes.
    pub(super) fn keep_bytes(&mut self, bytes: &[u8]) {
        self.rest = Rest {
            bytes: bytes.to_vec(),
            decoded: 0,
        };
    }

    /// Decodes as much as fits into the turn, and into the room of the app; `None` if messages do not go to the app.
    /// Nothing is decoded after a failure.
    pub(super) fn decode(
        &mut self,
        bytes: &mut [u8],
        turn: &mut ReadTurn,
        room: Option<Room>,
        message_bytes: usize,
    ) -> Option<Decoded> {
        let decoder = self.decoder.as_mut()?;
        let limits = Limits {
            message_bytes,
            fragments: MOST_FRAGMENTS,
        };
        let (mut messages, mut controls) = (Vec::new(), Vec::new());
        let mut room = room;
        let before = decoder.unfinished();
        let mut has_message = false;
        let taken = decoder.feed_while(bytes, &limits, &mut |incoming| {
            let (text, data) = match incoming {
                Incoming::Text(data) => (true, data),
                Incoming::Binary(data) => (false, data),
                other => {
                    controls.extend(Control::of(&other));
                    return ControlFlow::Continue(());
                }
            };
            has_message = true;
            turn.decoded += data.len();
            if let Some(room) = &mut room {
                let data = data.into_owned();
                let message = Event::Message { text, data };
                *room = room.less(&message);
                messages.push(message);
            }
            if turn.is_over() || room.is_some_and(Room::is_empty) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let left = decoder.unfinished();
        Some(Decoded {
            messages,
            controls,
            taken,
            growth: Growth {
                held: decoder.held(),
                more: if has_message { left } else { left.saturating_sub(before) },
                is_new: has_message,
            },
        })
    }

    /// Counts a control frame.
    ///
    /// # Errors
    /// If the peer has sent too many in this second.
    pub(super) fn count_control(&mut self, now: Millis, most: u32) -> Result<(), Failure> {
        self.controls.count(now, most).then_some(()).ok_or(TOO_MANY_CONTROLS)
    }
}
