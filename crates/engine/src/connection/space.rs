//! Makes room for a request before its bytes are read, so that everything read can be kept.
//!
//! The action depends on the scarce resource. Memory: bodies go to a file earlier, large heads are refused.
//! Descriptors: the body waits unread (`engine/uploads.rs`), because descriptors are released all the time. Disk: the
//! body is refused, because waiting bodies would keep their space.

use super::Next;
use crate::config::Config;
use crate::http::body::Body;
use crate::http::refusal::Refusal;
use crate::limits::budget::{Budget, Kind, Share};
use crate::limits::descriptors::Permit;
use crate::limits::request_totals::{RequestTotals, Taken};
use crate::stream::Stream;
use fairlead_wire::http1::Framing;
use std::sync::Arc;

/// Bytes of a head that are read at a time.
const HEAD_BYTES: usize = 16 * 1024;

/// Share of the totals that the current request has taken. The app may have the file that the permit is for; the file
/// is closed before the request is over.
#[derive(Debug, Default)]
pub(super) struct Space {
    permit: Option<Permit>,
    /// The same for its HTTP/2 connection.
    file: Option<Share>,
    taken: Taken,
}

impl Space {
    /// For one of several requests of a connection.
    pub(super) fn of_one_of_many(budget: Option<Arc<Budget>>) -> Space {
        Space {
            taken: Taken::of_one_of_many(budget),
            ..Space::default()
        }
    }

    /// For the only request of an HTTP/2 connection.
    pub(super) fn with_budget(budget: Option<Arc<Budget>>) -> Space {
        Space {
            taken: Taken::with_budget(budget),
            ..Space::default()
        }
    }

    /// Counts bytes of a request in memory.
    pub(super) fn count_memory(&mut self, totals: &Arc<RequestTotals>, bytes: usize) {
        self.taken.count_memory(totals, bytes);
    }

    /// True if the body goes to a file from now on.
    pub(super) fn has_file(&self) -> bool {
        self.permit.is_some()
    }

    /// Takes a file for a body that comes from another worker in a file.
    pub(super) fn take_file(&mut self, config: &Config) {
        self.permit = Some(config.descriptors.for_file_of_transfer());
    }

    /// Returns the bytes of a head that may be read now, at most `most`, or the next step if there is no room.
    pub(super) fn room_for_head(&mut self, stream: &Stream, most: usize, config: &Config) -> Result<usize, Next> {
        let most = most.min(HEAD_BYTES);
        let is_there = self.taken.memory(&config.request_totals, stream.input_memory() + most);
        is_there.then_some(most).ok_or(Next::Refuse(Refusal::NoMemoryForHead))
    }

    /// Returns the bytes of a body that may be read now, at most `most`, or the next step if there is no room.
    /// `is_next`: this connection is the first of all connections that wait for a descriptor.
    pub(super) fn room_for_body(
        &mut self,
        stream: &Stream,
        most: usize,
        config: &Config,
        is_next: bool,
    ) -> Result<usize, Next> {
        let (totals, body) = (&config.request_totals, &stream.request.body);
        let most = most.min(missing(stream));
        if !matches!(body, Body::File(..)) {
            let most = most.min(config.body_memory_bytes.saturating_sub(body.memory()));
            if most > 0 && self.taken.memory_for_body(totals, stream.input_memory() + most) {
                return Ok(most);
            }
        }
        self.make_room_on_disk(stream, most, config, is_next).map(|()| most)
    }

    fn make_room_on_disk(&mut self, stream: &Stream, more: usize, config: &Config, is_next: bool) -> Result<(), Next> {
        let totals = &config.request_totals;
        if self.permit.is_none() && self.file.is_none() {
            if let Some(budget) = stream.transport().budget() {
                let file = budget.take(Kind::Bodies, 1).ok_or(Next::PutOff)?;
                self.file = Some(file);
            }
        }
        if self.permit.is_none() {
            let may_have = is_next || !totals.has_waiting();
            self.permit = may_have.then(|| config.descriptors.for_body()).flatten();
        }
        if self.permit.is_none() {
            self.file = None;
            return Err(Next::PutOff);
        }
        let most = if config.body_max_bytes > 0 {
            config.body_max_bytes
        } else {
            u64::MAX
        };
        let length = (stream.request.body.len() + more as u64).min(most);
        let is_there = self.taken.disk(totals, length);
        is_there.then_some(()).ok_or(Next::Refuse(Refusal::NoDiskForBody))
    }

    /// Returns the number of bytes of a body that may be in memory when `more` bytes are added that were read already.
    /// If there is no other room for them, they stay in memory.
    pub(super) fn memory_for(&mut self, stream: &Stream, more: usize, config: &Config) -> usize {
        let outgrows = stream.request.body.memory() + more > config.body_memory_bytes;
        if self.permit.is_none() && outgrows && !matches!(stream.request.body, Body::File(..)) {
            let _ = self.make_room_on_disk(stream, more, config, false);
        }
        if self.permit.is_some() {
            0
        } else {
            usize::MAX
        }
    }

    /// Releases the memory that was reserved for further input.
    pub(super) fn give_back_reserved(&mut self, stream: &Stream, config: &Config) {
        self.taken.memory(&config.request_totals, stream.input_memory());
    }

    /// Releases reserved memory, because the request is complete.
    pub(super) fn settle(&mut self, stream: &Stream) {
        let on_disk = stream.request.body.len() - stream.request.body.memory() as u64;
        self.taken.keep(stream.input_memory(), on_disk);
    }
}

/// Bytes of the body that are still missing, according to the head.
fn missing(stream: &Stream) -> usize {
    match stream.request.head.framing {
        Framing::Length(length) => usize::try_from(length - stream.request.body.len()).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}
