//! State that a thread of the app keeps from job to job.

use crate::clock::Nanos;
use crate::cluster::running::Place;
use crate::exchange::Workspace;
use crate::http::request::Request;
use crate::worker::Worker;

/// Requests until a thread without a place looks for one again.
const PAUSE: u32 = 256;

/// See the head of this file.
#[derive(Default)]
pub(super) struct OnThread {
    pub(super) workspace: Workspace,
    /// Shows its request to other processes; `None` before its first request, and while too many threads are shown.
    place: Option<Place>,
    /// Requests that were not shown.
    hidden: u32,
}

impl OnThread {
    /// Shows the request that begins to run.
    pub(super) fn begin(&mut self, worker: &Worker, request: &Request, now: Nanos) {
        if self.place.is_none() {
            self.place = (self.hidden % PAUSE == 0).then(|| worker.take_place()).flatten();
            self.hidden = self.hidden.wrapping_add(1);
        }
        if let Some(place) = &self.place {
            place.begin(now, request.method(), request.path());
        }
    }

    /// Shows no request any more.
    pub(super) fn end(&self) {
        if let Some(place) = &self.place {
            place.end();
        }
    }
}
