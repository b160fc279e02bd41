//! Server-sent events, the client's side: `events` finds events in the content of a response.

pub(crate) mod events;

use crate::response::content::{Content, Framing};
use crate::response::head::Head;
use events::Events;

/// An event, or the end of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// The data of an event.
    Event(&'a [u8]),
    /// The stream has ended; the connection may stay open.
    End,
}

/// Reads the events of one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    content: Content,
    events: Events,
}

impl Reader {
    /// The stream after a response with status 200. The error says why there is none.
    pub(crate) fn new(head: &Head<'_>) -> Result<Reader, &'static str> {
        let mut types = head
            .values("content-type")
            .map(|value| value.split(';').next().unwrap_or_default());
        if !types
            .next()
            .is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
        {
            return Err("not text/event-stream");
        }
        let coded = |coding: &str| !coding.eq_ignore_ascii_case("chunked");
        if head.members("transfer-encoding").any(coded) {
            return Err("a transfer coding other than chunked");
        }
        Ok(Reader {
            content: Content::new(Framing::of(head)?),
            events: Events::default(),
        })
    }

    /// Consumes `bytes` up to the end of the next event, or all of it (`None`).
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Item<'_>>, &'static str> {
        loop {
            let length = self.content.stretch(bytes)?;
            if length == 0 {
                return match self.content.has_ended() {
                    true if !bytes.is_empty() => Err("data after the end of the stream"),
                    ended => Ok(ended.then_some(Item::End)),
                };
            }
            let mut stretch = &bytes[..length];
            let found = self.events.find(&mut stretch)?;
            let taken = length - stretch.len();
            *bytes = &bytes[taken..];
            self.content.took(taken);
            if found {
                return Ok(Some(Item::Event(self.events.data())));
            }
        }
    }

    /// Returns `true` if the stream would be complete if the connection ended now.
    pub(crate) fn may_end(&self) -> bool {
        self.content.may_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(fields: &str) -> Result<Reader, &'static str> {
        let text = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{fields}\r\n\r\n");
        let made = Head::parse(text.as_bytes(), Reader::new);
        made.expect("valid").expect("whole").0
    }

    #[test]
    fn a_coding_that_hides_the_events_is_refused() {
        for fields in ["transfer-encoding: gzip", "transfer-encoding: gzip, chunked"] {
            assert_eq!(
                reader(fields).map(drop),
                Err("a transfer coding other than chunked"),
                "{fields}"
            );
        }
    }

    #[test]
    fn nothing_may_follow_the_end_of_a_stream() {
        let end = |bytes: &[u8]| {
            let mut reader = reader("transfer-encoding: chunked").expect("valid");
            reader.next(&mut &bytes[..]).map(|item| item == Some(Item::End))
        };
        assert_eq!(end(b"0\r\n\r\n"), Ok(true));
        assert_eq!(end(b"0\r\n\r\nmore"), Err("data after the end of the stream"));
    }
}
