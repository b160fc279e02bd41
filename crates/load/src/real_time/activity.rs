//! An activity uses the sessions of a crowd.

use super::ending::Ending;
use super::outbox::Outbox;
use crate::clock::Nanos;

/// Use of the sessions of a crowd.
pub(crate) trait Activity {
    /// The session is open and subscribed.
    fn subscribed(&mut self, _number: usize, _now: Nanos) {}

    /// A message has arrived. The error ends the session.
    fn message(
        &mut self,
        number: usize,
        binary: bool,
        payload: &[u8],
        outbox: &mut Outbox,
        now: Nanos,
    ) -> Result<(), Ending>;

    /// A request got its response.
    fn answered(&mut self, _number: usize, _status: u16, _now: Nanos) -> Result<(), Ending> {
        Ok(())
    }

    /// Returns `true` if the session has waited too long for something.
    fn is_overdue(&self, _number: usize, _now: Nanos) -> bool {
        false
    }

    /// The session has ended; returns the consequence.
    fn ended(&mut self, _number: usize, _ending: Ending, _now: Nanos) -> Sequel {
        Sequel::Lost
    }
}

/// Consequence of the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// It is counted.
    Lost,
    /// The session had finished its work.
    Done,
    /// The session is opened again as if it were new.
    Reopened,
}
