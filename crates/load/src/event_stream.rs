//! Server-sent events, the client's side: `content` takes the stream out of its HTTP framing, `events` finds events in it.

pub(crate) mod content;
pub(crate) mod events;

use crate::real_time::head::Head;
use content::Content;
use events::Events;

/// What a server sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// The data of an event.
    Event(&'a [u8]),
    /// The stream has ended; the connection may stay open behind it.
    End,
}

/// Reads the events of one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    content: Content,
    events: Events,
}

impl Reader {
    /// The stream that follows an answer with status 200. The error says why none does.
    pub(crate) fn new(head: &Head) -> Result<Reader, &'static str> {
        let mut types = head
            .values("content-type")
            .map(|value| value.split(';').next().unwrap_or_default());
        if !types
            .next()
            .is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
        {
            return Err("not text/event-stream");
        }
        Ok(Reader {
            content: Content::of(head)?,
            events: Events::default(),
        })
    }

    /// Takes from `bytes` to the end of the next event, or all there is (`None`).
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Item<'_>>, &'static str> {
        loop {
            let length = self.content.stretch(bytes)?;
            if length == 0 {
                return Ok(self.content.has_ended().then_some(Item::End));
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

    /// Whether the stream is whole as it is, if the connection ended now.
    pub(crate) fn may_end(&self) -> bool {
        self.content.may_end()
    }
}
