//! The code and the memory from which a client comes.
//!
//! Clients go to the same code or newer code, because the app has made their state. Workers of another release have a scoreboard
//! of their own, so the numbers of a cut mean nothing to them; only its place in the history does, if they share that.

use super::SavedClient;
use crate::realtime::client::Client;
use crate::realtime::Realtime;

/// The memory that the workers of one release share: numbers of its scoreboard, and of its history or 0. Another release may
/// share the history alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedMemory {
    pub(super) scoreboard: u64,
    pub(super) history: u64,
}

/// The part of a cut that counts in this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// All of it.
    All,
    /// Its place in the history, which carries all publications.
    History,
    Nothing,
}

impl SharedMemory {
    pub(super) fn shared_with(self, other: SharedMemory) -> Shared {
        match () {
            () if self.scoreboard == other.scoreboard => Shared::All,
            () if self.history == other.history && self.history != 0 => Shared::History,
            () => Shared::Nothing,
        }
    }
}

impl Realtime {
    /// The memory of this worker.
    pub(super) fn memory(&self) -> SharedMemory {
        SharedMemory {
            scoreboard: self.worker.shared().map_or(0, |(scoreboard, _)| scoreboard.id()),
            history: self.hub.history().map_or(0, |history| history.epoch()),
        }
    }

    /// True if this worker has, or could have, all publications that a client has not got.
    pub(crate) fn has_messages_since(&self, saved: &SavedClient) -> bool {
        saved.memory.shared_with(self.memory()) != Shared::All || self.hub.reaches_back_to(&saved.cut)
    }

    /// True if the code of this worker may continue with the client.
    pub(crate) fn has_code_for(&self, saved: &SavedClient) -> bool {
        saved.application.is_none() || saved.generation <= self.worker.config.generation
    }

    /// True if the other workers have older code: new code has failed, and the server goes back.
    pub(super) fn is_given_back(&self, generation: u64) -> bool {
        self.worker.newest_heir().is_some_and(|newest| newest < generation)
    }
}

impl Client {
    /// Generation of the code that has made the state of the app.
    pub(super) fn code(&self, realtime: &Realtime) -> u64 {
        self.departure.code().unwrap_or(realtime.worker.config.generation)
    }

    /// True if the client would lose messages on its way: its new worker is of another release that shares no history.
    pub(super) fn would_lose_messages(&self, realtime: &Realtime) -> bool {
        let is_apart = || !realtime.hub.history().is_some_and(|history| history.is_joint());
        realtime.worker.heirs().is_some() && self.subscriptions.are_there() && is_apart()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_share_the_history_share_places_in_it() {
        let of = |scoreboard, history| SharedMemory { scoreboard, history };
        assert_eq!(of(1, 2).shared_with(of(1, 2)), Shared::All);
        assert_eq!(of(1, 0).shared_with(of(1, 0)), Shared::All);
        assert_eq!(of(1, 2).shared_with(of(3, 2)), Shared::History);
        assert_eq!(of(1, 2).shared_with(of(3, 4)), Shared::Nothing);
        assert_eq!(of(1, 0).shared_with(of(3, 0)), Shared::Nothing);
    }
}
