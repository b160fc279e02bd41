//! Messages from frames: joins fragments (RFC 6455 §5.4), handles control frames between them, inflates compressed
//! messages. A message of one frame is returned in place.

use super::deflate::Inflater;
use super::frame::{self, Frame};
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Close codes that are never sent (RFC 6455 §7.4.1): the close frame had none; there was no close frame.
pub(crate) const NO_CODE: u16 = 1005;
pub(crate) const NO_FRAME: u16 = 1006;
/// Longest accepted fragmented message.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// A message or control frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Message { binary: bool, payload: &'a [u8] },
    Ping(&'a [u8]),
    Pong,
    Close(u16),
}

/// Reads the messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The incomplete message.
    begun: Option<Begun>,
    parts: Vec<u8>,
    /// Present if permessage-deflate was agreed on.
    inflater: Option<Inflater>,
    inflated: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    binary: bool,
    compressed: bool,
}

impl Reader {
    pub(crate) fn new(inflater: Option<Inflater>) -> Reader {
        Reader {
            inflater,
            ..Reader::default()
        }
    }

    /// Consumes `bytes` until there is an item to return; `None` if no complete frame is left.
    pub(crate) fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Result<Option<Item<'a>>, &'static str> {
        loop {
            let Some(frame) = frame::take(bytes)? else {
                return Ok(None);
            };
            let (compressed, is_final) = (frame.header.rsv1, frame.header.is_final);
            let begins = matches!(frame.header.opcode, OpCode::Data(Data::Text | Data::Binary));
            if compressed && (self.inflater.is_none() || !begins) {
                return Err("an unexpected compressed frame");
            }
            match frame.header.opcode {
                OpCode::Control(Control::Close) => return close(frame.payload).map(Some),
                OpCode::Control(Control::Ping) => return Ok(Some(Item::Ping(frame.payload))),
                OpCode::Control(_) => return Ok(Some(Item::Pong)),
                OpCode::Data(Data::Continue) => {
                    let begun = self.begun.ok_or("a continuation frame without a message")?;
                    self.add(frame.payload)?;
                    if is_final {
                        self.begun = None;
                        return self.whole(begun).map(Some);
                    }
                }
                _ if self.begun.is_some() => return Err("a new message inside another"),
                _ if is_final => return self.single(frame).map(Some),
                OpCode::Data(kind) => {
                    self.begun = Some(Begun {
                        binary: kind == Data::Binary,
                        compressed,
                    });
                    self.parts.clear();
                    self.add(frame.payload)?;
                }
            }
        }
    }

    fn add(&mut self, part: &[u8]) -> Result<(), &'static str> {
        if self.parts.len() + part.len() > MESSAGE_BYTES {
            return Err("a message too long");
        }
        self.parts.extend_from_slice(part);
        Ok(())
    }

    fn single<'a, 'b: 'a>(&'a mut self, frame: Frame<'b>) -> Result<Item<'a>, &'static str> {
        let payload = match &mut self.inflater {
            Some(inflater) if frame.header.rsv1 => inflate(inflater, frame.payload, &mut self.inflated)?,
            _ => frame.payload,
        };
        Ok(Item::Message {
            binary: frame.header.opcode == OpCode::Data(Data::Binary),
            payload,
        })
    }

    fn whole(&mut self, begun: Begun) -> Result<Item<'_>, &'static str> {
        let payload = match &mut self.inflater {
            Some(inflater) if begun.compressed => inflate(inflater, &self.parts, &mut self.inflated)?,
            _ => &self.parts,
        };
        Ok(Item::Message {
            binary: begun.binary,
            payload,
        })
    }
}

fn inflate<'a>(inflater: &mut Inflater, payload: &[u8], out: &'a mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    inflater.message(payload, out, MESSAGE_BYTES)?;
    Ok(out)
}

/// RFC 6455 §5.5.1, §7.4: empty, or a code that may be sent.
fn close(payload: &[u8]) -> Result<Item<'static>, &'static str> {
    match payload {
        [] => Ok(Item::Close(NO_CODE)),
        [_] => Err("an incomplete close code"),
        [high, low, ..] => match u16::from_be_bytes([*high, *low]) {
            code @ (1000..=1003 | 1007..=1014 | 3000..=4999) => Ok(Item::Close(code)),
            _ => Err("a close code that must not be sent"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<String>, &'static str> {
        let (mut reader, mut bytes, mut found) = (Reader::default(), bytes, Vec::new());
        while let Some(item) = reader.next(&mut bytes)? {
            found.push(match item {
                Item::Message { binary, payload } => {
                    format!(
                        "{} {}",
                        if binary { "binary" } else { "text" },
                        String::from_utf8_lossy(payload)
                    )
                }
                other => format!("{other:?}"),
            });
        }
        Ok(found)
    }

    #[test]
    fn parts_make_a_message_with_control_frames_between_them() {
        let bytes = b"\x01\x02he\x89\x01!\x00\x01l\x8a\x00\x80\x02lo\x82\x01b\x88\x02\x03\xe8";
        let expected = ["Ping([33])", "Pong", "text hello", "binary b", "Close(1000)"];
        assert_eq!(read(bytes), Ok(expected.map(String::from).to_vec()));
    }

    #[test]
    fn what_makes_no_message_is_named() {
        let table: [(&[u8], &str); 6] = [
            (b"\x80\x01x", "a continuation frame without a message"),
            (b"\x01\x01x\x81\x01y", "a new message inside another"),
            (b"\xc1\x01x", "an unexpected compressed frame"),
            (b"\x88\x01\x03", "an incomplete close code"),
            (b"\x88\x02\x03\xed", "a close code that must not be sent"),
            (b"\x88\x02\x00\x00", "a close code that must not be sent"),
        ];
        for (bytes, reason) in table {
            assert_eq!(read(bytes), Err(reason));
        }
        assert_eq!(read(b"\x88\x00"), Ok(vec!["Close(1005)".into()]));
    }
}
