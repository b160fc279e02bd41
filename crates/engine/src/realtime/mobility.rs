//! Counts a client while it could not migrate: its connection cannot, or its application would not hand it over.

use crate::sync::Mutex;
use crate::worker::{Count, Worker};
use std::sync::Arc;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Mobility(Mutex<State>);

#[derive(Default)]
struct State {
    /// True if the connection can migrate; `None` before the client begins, and after its end.
    connection: Option<bool>,
    /// True if the application has no answer to the question for its state.
    keeps: bool,
    count: Option<Count>,
}

impl Mobility {
    /// The client begins.
    pub(super) fn begin(&self, can_migrate: bool, worker: &Arc<Worker>) {
        let mut state = self.0.lock();
        state.connection = Some(can_migrate);
        state.count(worker);
    }

    /// The application has chosen its events.
    pub(super) fn choose(&self, hands_over: bool, worker: &Arc<Worker>) {
        let mut state = self.0.lock();
        state.keeps = !hands_over;
        state.count(worker);
    }

    /// The client has ended.
    pub(super) fn end(&self) {
        *self.0.lock() = State::default();
    }
}

impl State {
    fn count(&mut self, worker: &Arc<Worker>) {
        let Some(can_migrate) = self.connection else { return };
        let stays = self.keeps || !can_migrate;
        if stays != self.count.is_some() {
            self.count = stays.then(|| Count::immovable(worker));
        }
    }
}
