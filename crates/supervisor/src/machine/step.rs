//! One step of the machine.

use super::{Action, Moment, Notice};
use serde::{Deserialize, Serialize};

/// The step of one event: its time, and the actions so far.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Step {
    pub(super) now: Moment,
    #[serde(skip)]
    actions: Vec<Action>,
}

impl Step {
    pub(super) fn at(now: Moment) -> Step {
        Step {
            now,
            actions: Vec::new(),
        }
    }

    /// Moves to a time. Time does not go back.
    pub(super) fn reach(&mut self, now: Moment) {
        self.now = now.max(self.now);
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(super) fn log(&mut self, notice: Notice) {
        self.push(Action::Log(notice));
    }

    /// Refuses a command.
    pub(super) fn refuse(&mut self, reason: &str) {
        self.push(Action::Refuse(reason.to_owned()));
    }

    /// Refuses a command that needs workers.
    pub(super) fn refuse_without_workers(&mut self, request: &'static str) {
        self.log(Notice::NeedsWorkers { request });
        self.refuse("there are no workers");
    }

    /// Returns the actions and forgets them.
    pub(super) fn take(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}
