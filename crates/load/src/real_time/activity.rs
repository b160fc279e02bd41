//! What is done with the sessions of a crowd.

use super::ending::Ending;
use super::outbox::Outbox;
use crate::clock::Nanos;

/// What is done with the sessions of a crowd.
pub(crate) trait Activity {
    /// The session is open and subscribed.
    fn subscribed(&mut self, _number: usize, _now: Nanos) {}

    /// A message came. The error ends the session.
    fn message(
        &mut self,
        number: usize,
        binary: bool,
        payload: &[u8],
        outbox: &mut Outbox,
        now: Nanos,
    ) -> Result<(), Ending>;

    /// A request was answered.
    fn answered(&mut self, _number: usize, _status: u16, _now: Nanos) -> Result<(), Ending> {
        Ok(())
    }

    /// Whether the session has waited too long for something.
    fn is_overdue(&self, _number: usize, _now: Nanos) -> bool {
        false
    }

    /// The session is over; what of it?
    fn ended(&mut self, _number: usize, _ending: Ending, _now: Nanos) -> Sequel {
        Sequel::Lost
    }
}

/// What the end of a session leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// It is counted.
    Lost,
    /// It had done its work.
    Done,
    /// It is opened again as if nothing had been.
    Reopened,
}
