//! The events of a client, in order, until a thread of the app runs them. The events of one client run one at a time.
//! After each, the client goes to the end of the ready queue, so that a client with many events gets no more turns than
//! others.

use crate::pubsub::Publication;
use fairlead_wire::websocket::Failure;
use std::collections::VecDeque;
use std::sync::Arc;

/// An event that an app gets about a client.
#[derive(Debug)]
pub enum Event {
    /// The response to the handshake was sent or queued. Always the first event.
    Open,
    /// A complete message has arrived.
    Message {
        /// The message is text; text is valid UTF-8.
        text: bool,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A message was published on a channel that the client has subscribed to with this id.
    Published(u64, Arc<Publication>),
    /// The app has deferred a block with this id until the client's turn.
    Deferred(u64),
    /// The kernel has everything that was written.
    Drained,
    /// The client has another handler.
    Replaced,
    /// The server is about to end.
    Shutdown,
    /// The client is to migrate: the app saves its state, and calls [`Client::hand_over`](super::Client::hand_over).
    HandOver,
    /// The client has migrated to this process, with the state that the app has saved. In place of [`Event::Open`].
    TakeOver(Vec<u8>),
    /// The app needs another turn to take the client over: see [`Client::continue_takeover`](super::Client::continue_takeover).
    ContinueTakeover,
    /// The connection is closed. Always the last event.
    Close,
    /// The client continues in another process. Always the last event, in place of [`Event::Close`].
    Departed,
}

impl Event {
    fn bytes(&self) -> usize {
        match self {
            Event::Published(_, publication) => publication.message.len(),
            _ => self.own_bytes(),
        }
    }

    /// The memory of an event with a size that the peer determines; 0 for others.
    pub(super) fn own_bytes(&self) -> usize {
        match self {
            Event::Message { data, .. } => size_of::<Event>() + data.capacity(),
            _ => 0,
        }
    }
}

/// The room that is left in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) bytes: usize,
    pub(super) events: usize,
}

impl Room {
    pub(super) fn is_empty(self) -> bool {
        self.bytes == 0 || self.events == 0
    }

    /// The room that is left after a message.
    pub(super) fn less(self, message: &Event) -> Room {
        Room {
            bytes: self.bytes.saturating_sub(message.own_bytes()),
            events: self.events.saturating_sub(1),
        }
    }
}

/// The reason for the end of the peer's side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastEvent {
    /// Its close frame, with this code.
    Close(Option<u16>),
    /// A violation of the protocol.
    Failure(Failure),
}

/// Most events that wait for one client.
const MOST_EVENTS: usize = 4096;

/// The same, and most bytes, until the app has resumed the client: others need the room, too.
const HELD_EVENTS: usize = 16;
const HELD_BYTES: usize = 16 * 1024;

/// The capacity that an empty inbox keeps.
const SPARE_PLACES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    events: VecDeque<Event>,
    bytes: usize,
    /// The client is in the ready queue, or one of its events runs.
    scheduled: bool,
    /// The first event was added; the last one was added; the shutdown was announced.
    opened: bool,
    closed: bool,
    dismissed: bool,
    /// No event runs: the client leaves, or the app has to resume it first.
    held: bool,
    /// The peer's last word, and the number of earlier events that have not been taken.
    last_event: Option<(usize, LastEvent)>,
}

impl Inbox {
    /// Adds an event. Returns true if the client has to be put into the ready queue.
    pub(crate) fn push(&mut self, event: Event) -> bool {
        self.opened |= matches!(event, Event::Open | Event::TakeOver(_));
        // The server may end before the client has begun; the shutdown is then announced afterwards.
        let is_shutdown = matches!(event, Event::Shutdown);
        if self.closed || (is_shutdown && (!self.opened || self.dismissed)) {
            return false;
        }
        self.dismissed |= is_shutdown;
        self.closed = matches!(event, Event::Close | Event::Departed);
        self.held &= !self.closed;
        self.bytes += event.bytes();
        match event {
            Event::Drained if self.events.iter().any(|waiting| matches!(waiting, Event::Drained)) => {}
            Event::Replaced | Event::ContinueTakeover => {
                self.events.push_front(event);
                if let Some((before, _)) = &mut self.last_event {
                    *before += 1;
                }
            }
            event => self.events.push_back(event),
        }
        !self.held && !std::mem::replace(&mut self.scheduled, true)
    }

    /// The client has begun, in another process.
    pub(super) fn begin(&mut self) {
        self.opened = true;
    }

    /// Lets no event run until [`Inbox::release`], except the last one. An event that runs now is not stopped.
    pub(super) fn hold(&mut self) {
        self.held = !self.closed;
    }

    /// Lets events run again. Returns true if the client has to be put into the ready queue.
    pub(super) fn release(&mut self) -> bool {
        self.held = false;
        !self.events.is_empty() && !std::mem::replace(&mut self.scheduled, true)
    }

    /// Takes the state of the app, if the app has not resumed the client in this process.
    pub(super) fn take_state(&mut self) -> Option<Vec<u8>> {
        if !self.held || !matches!(self.events.front(), Some(Event::TakeOver(_))) {
            return None;
        }
        match self.events.pop_front() {
            Some(Event::TakeOver(state)) => Some(state),
            _ => None,
        }
    }

    /// The events that wait, if no event runs. Only for a client that leaves.
    pub(super) fn waiting(&self) -> Option<impl Iterator<Item = &Event>> {
        (self.held && !self.scheduled).then(|| self.events.iter())
    }

    /// The room that is left, if `most_bytes` may wait. Reading stops when nothing more fits.
    pub(super) fn room(&self, most_bytes: usize) -> Room {
        let (most_bytes, most_events) = match self.held {
            true => (most_bytes.min(HELD_BYTES), HELD_EVENTS),
            false => (most_bytes, MOST_EVENTS),
        };
        Room {
            bytes: most_bytes.saturating_sub(self.bytes),
            events: most_events.saturating_sub(self.events.len()),
        }
    }

    pub(super) fn has_room(&self, most_bytes: usize) -> bool {
        !self.room(most_bytes).is_empty()
    }

    /// Returns true if a published message fits, if this many messages and bytes may wait.
    pub(super) fn takes_published(&self, most_messages: usize, most_bytes: usize) -> bool {
        self.events.len() < most_messages && self.bytes < most_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns true if the last event was added.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops all events; returns their size, as in [`Event::own_bytes`].
    pub(super) fn clear(&mut self) -> usize {
        self.bytes = 0;
        self.events.drain(..).map(|event| event.own_bytes()).sum()
    }

    /// Takes the next event; called by the thread that runs the client's turn.
    pub(crate) fn take(&mut self) -> Option<Event> {
        if self.held {
            return None;
        }
        let event = self.events.pop_front()?;
        self.bytes -= event.bytes();
        if let Some((before, _)) = &mut self.last_event {
            *before = before.saturating_sub(1);
        }
        Some(event)
    }

    /// Keeps the peer's last word until all earlier messages have run, so that the reply to it follows the app's
    /// replies to those messages. Returns false if there is nothing to wait for.
    pub(crate) fn put_off(&mut self, last_event: LastEvent) -> bool {
        if self.scheduled {
            self.last_event.get_or_insert((self.events.len(), last_event));
        }
        self.scheduled
    }

    /// Returns the last word that was put off, once all earlier events were taken. Must be called with
    /// [`Inbox::end_turn`] under one lock, so that no last word is put off in between.
    pub(crate) fn take_last_word(&mut self) -> Option<LastEvent> {
        let (_, last_event) = self.last_event.take_if(|(before, _)| *before == 0)?;
        Some(last_event)
    }

    /// Ends a turn. Returns true if there are more events, and the client has to be put into the ready queue again.
    pub(crate) fn end_turn(&mut self) -> bool {
        self.scheduled = !self.held && !self.events.is_empty();
        if !self.scheduled && self.events.is_empty() && self.events.capacity() > SPARE_PLACES {
            self.events = VecDeque::new();
        }
        self.scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(byte: u8) -> Event {
        Event::Message {
            text: false,
            data: vec![byte],
        }
    }

    #[test]
    fn a_client_is_scheduled_once_until_its_events_have_run() {
        let mut inbox = Inbox::default();
        assert!(inbox.push(message(1)));
        assert!(!inbox.push(message(2)));
        assert!(matches!(inbox.take(), Some(Event::Message { data, .. }) if data == [1]));
        assert!(!inbox.push(message(3)), "it has its turn");
        assert!(inbox.end_turn());
        assert!(inbox.take().is_some() && inbox.end_turn());
        assert!(inbox.take().is_some() && !inbox.end_turn());
        assert!(inbox.push(message(4)));
    }

    #[test]
    fn no_event_follows_the_close() {
        let mut inbox = Inbox::default();
        inbox.push(Event::Close);
        inbox.push(message(1));
        inbox.push(Event::Close);
        assert!(matches!(inbox.take(), Some(Event::Close)));
        assert!(inbox.take().is_none());
    }

    #[test]
    fn a_shutdown_is_announced_once_and_not_before_the_open() {
        let mut inbox = Inbox::default();
        assert!(!inbox.push(Event::Shutdown));
        inbox.push(Event::Open);
        inbox.push(Event::Shutdown);
        inbox.push(Event::Shutdown);
        assert!(matches!(inbox.take(), Some(Event::Open)));
        assert!(matches!(inbox.take(), Some(Event::Shutdown)));
        assert!(inbox.take().is_none());
    }

    #[test]
    fn a_new_handler_comes_before_waiting_events_and_drained_comes_once() {
        let mut inbox = Inbox::default();
        inbox.push(Event::Drained);
        inbox.push(Event::Drained);
        inbox.push(Event::Replaced);
        assert!(matches!(inbox.take(), Some(Event::Replaced)));
        assert!(matches!(inbox.take(), Some(Event::Drained)));
        assert!(inbox.take().is_none());
    }

    #[test]
    fn a_takeover_goes_on_before_waiting_events() {
        let mut inbox = Inbox::default();
        inbox.push(Event::TakeOver(Vec::new()));
        inbox.push(message(1));
        assert!(matches!(inbox.take(), Some(Event::TakeOver(_))));
        inbox.push(Event::ContinueTakeover);
        assert!(matches!(inbox.take(), Some(Event::ContinueTakeover)));
        inbox.push(Event::ContinueTakeover);
        assert!(inbox.end_turn() && matches!(inbox.take(), Some(Event::ContinueTakeover)));
        assert!(matches!(inbox.take(), Some(Event::Message { .. })));
    }

    #[test]
    fn a_last_word_waits_only_for_the_events_before_it() {
        let mut inbox = Inbox::default();
        let fault = LastEvent::Failure(Failure::UNMASKED);
        assert!(!inbox.put_off(fault), "there is nothing to wait for");
        inbox.push(message(1));
        inbox.push(message(2));
        assert!(inbox.put_off(fault));
        assert!(inbox.put_off(LastEvent::Close(None)), "a second one does not count");
        inbox.push(message(3));
        inbox.push(Event::Replaced);
        for _ in 0..2 {
            assert!(inbox.take().is_some());
            assert_eq!(inbox.take_last_word(), None);
        }
        assert!(matches!(inbox.take(), Some(Event::Message { data, .. }) if data == [2]));
        assert_eq!(inbox.take_last_word(), Some(fault));
        assert!(inbox.take().is_some());
        assert_eq!(inbox.take_last_word(), None);
    }

    #[test]
    fn an_inbox_is_limited_in_bytes_and_in_events() {
        let mut inbox = Inbox::default();
        let own = message(1).own_bytes();
        assert!(own > 1, "an event has a size itself");
        inbox.push(message(1));
        assert!(inbox.has_room(own + 1) && !inbox.has_room(own));
        inbox.take();
        assert!(inbox.has_room(1));
        (0..MOST_EVENTS).for_each(|_| _ = inbox.push(message(1)));
        assert!(!inbox.has_room(usize::MAX));
        assert_eq!(inbox.clear(), MOST_EVENTS * own);
        assert!(inbox.has_room(1));
    }

    #[test]
    fn no_event_of_a_held_inbox_runs_but_the_last_one() {
        let mut inbox = Inbox::default();
        inbox.push(Event::Open);
        assert!(matches!(inbox.take(), Some(Event::Open)));
        inbox.hold();
        assert!(!inbox.push(message(1)) && !inbox.end_turn());
        assert!(inbox.take().is_none() && inbox.waiting().is_some_and(|events| events.count() == 1));
        assert!(inbox.release(), "it has to be scheduled");
        assert!(inbox.waiting().is_none(), "an event may run");
        inbox.hold();
        assert!(!inbox.end_turn());
        assert!(inbox.push(Event::Close), "the app is told of the end");
        assert!(inbox.take().is_some() && matches!(inbox.take(), Some(Event::Close)));
    }

    #[test]
    fn the_state_of_the_app_can_be_taken_until_it_runs() {
        let mut inbox = Inbox::default();
        inbox.hold();
        assert!(!inbox.push(Event::TakeOver(b"state".to_vec())) && !inbox.push(message(1)));
        assert_eq!(inbox.take_state(), Some(b"state".to_vec()));
        assert_eq!(inbox.take_state(), None);
        let mut resumed = Inbox::default();
        resumed.push(Event::TakeOver(b"state".to_vec()));
        assert_eq!(resumed.take_state(), None, "it may run already");
    }
}
