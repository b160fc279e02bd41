//! What waits to be sent to a client, and what is known of the socket that it waits for. One lock has all of it.

use super::carrier::{Carrier, Lender};
use super::ending::Ending;
use super::frames::Frames;
use crate::clock::Millis;
use crate::http::own_chunks::OwnChunks;
use crate::limits::meter::Meter;
use crate::transport::Link;
use crate::worker::Count;

pub(super) struct Outbox {
    /// `None` once the client is released.
    pub(super) transport: Option<Link>,
    /// As a client, until it is released.
    pub(super) count: Option<Count>,
    /// `None` until the client has begun, and once it is released.
    pub(super) carrier: Option<Carrier>,
    pub(super) frames: Frames,
    /// When the socket last took something, or was first offered what it has not taken.
    pub(super) moved: Millis,
    /// Measures how fast the client takes what waits.
    pub(super) meter: Meter,
    /// What the poller watches the socket for.
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether something was written since the app last got [`Event::Drained`].
    pub(super) owes_drained: bool,
    /// Finds the data in a response that the app frames itself.
    pub(super) own_chunks: Option<Box<OwnChunks>>,
    /// Bytes that are missing of a response whose length was announced.
    pub(super) missing: Option<u64>,
    pub(super) ending: Option<Ending>,
    /// Whether a response ends as one that is not complete.
    pub(super) is_cut: bool,
}

impl Outbox {
    /// Nothing waits. The client begins with [`Outbox::carrier`].
    pub(super) fn new(transport: Link, count: Count, now: Millis) -> Outbox {
        Outbox {
            transport: Some(transport),
            count: Some(count),
            carrier: None,
            frames: Frames::default(),
            moved: now,
            meter: Meter::begin(now),
            reads: false,
            writes: false,
            owes_drained: false,
            own_chunks: None,
            missing: None,
            ending: None,
            is_cut: false,
        }
    }

    /// The part of `data` that belongs to a response with an announced length; all of it for others.
    pub(super) fn within_length<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let Some(missing) = &mut self.missing else { return data };
        let most = usize::try_from(*missing).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(most)];
        *missing -= data.len() as u64;
        data
    }

    /// Called before something is queued. If nothing waits, the time-outs of writing start now.
    pub(super) fn begin(&mut self) {
        if self.frames.is_empty() {
            self.moved = Millis::now();
            self.meter = Meter::begin(self.moved);
        }
    }

    /// Sends as much as the kernel takes at once.
    pub(super) fn send_now(&mut self) {
        let Some(transport) = &self.transport else { return };
        let (mut taken, mut before) = (0, usize::MAX);
        while taken != before {
            before = taken;
            if self.frames.flush(&**transport, &mut taken).is_err() {
                break;
            }
        }
    }

    /// Whether the end of what is queued comes before the end that was announced.
    pub(super) fn is_short(&self) -> bool {
        self.missing.is_some_and(|missing| missing > 0)
    }

    /// After a complete response, who gets the connection back.
    pub(super) fn take_lender(&mut self) -> Option<Box<dyn Lender>> {
        let is_complete = self.ending.as_ref().is_some_and(|ending| ending.is_complete);
        match self.carrier.take_if(|carrier| is_complete && carrier.is_lent())? {
            Carrier::Lent(lender) => Some(lender),
            Carrier::Own { .. } | Carrier::Foreign { .. } => None,
        }
    }
}
