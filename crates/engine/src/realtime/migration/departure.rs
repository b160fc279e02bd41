//! The departure of a client to another worker, as a state.
//!
//! ```text
//!   Stays ──ask──▶ Asked ──handed over──▶ Ready ──prepare──▶ Cutting ──cut──▶ Cut ──sent──▶ Gone
//!     │              │ the app refuses     ▲
//!     │ cannot move  ▼                     └── Stays: the app has not resumed the client yet, and its state is there
//!     └──────────▶ Refused ── closes at its time
//! ```
//! If no worker takes the client, it is given up, and closes at its time, too. A client that closes meanwhile ends as any other; its departure has no effect then. From `Ready` on the app counts
//! the client as closed.

use super::saved::SavedSubscriptions;
use crate::clock::Millis;
use crate::pubsub::Cut;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::SeqCst};
use std::sync::Arc;

/// See the head of this file.
#[derive(Debug, Default)]
pub(in crate::realtime) struct Departure {
    /// A [`Progress`], for threads that only look.
    progress: AtomicU8,
    /// Generation of the code that has made the state of the app, plus one; 0: this process.
    code: AtomicU64,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Progress {
    /// 0: the client stays.
    Refused = 1,
    /// Nothing is read from the peer.
    Leaves,
    /// The app has handed the client over.
    HandedOver,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Stays,
    Refused {
        closes_at: Millis,
    },
    Asked {
        since: Millis,
    },
    Ready(Application),
    Cutting(Application),
    Cut(Box<Departing>),
    GivenUp {
        closes_at: Millis,
    },
    Gone,
}

/// The state of the app; `None` if it has none.
type Application = Option<Vec<u8>>;

/// The parts of a client that have left already.
#[derive(Clone, Debug)]
pub(super) struct Departing {
    pub(super) application: Application,
    pub(super) cut: Arc<Cut>,
    pub(super) subscriptions: SavedSubscriptions,
}

/// The next step of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The app has not answered since this time.
    Wait(Millis),
    /// The subscriptions have to end at a cut.
    Prepare,
    /// The dispatcher is about to do that.
    AwaitCut,
    /// The client can be sent.
    Send,
    /// Nothing.
    Over,
}

impl Departure {
    /// True if nothing is read from the peer, because the client leaves.
    pub(in crate::realtime) fn has_begun(&self) -> bool {
        self.progress.load(SeqCst) >= Progress::Leaves as u8
    }

    /// True if the app has handed the client over.
    pub(in crate::realtime) fn is_handed_over(&self) -> bool {
        self.progress.load(SeqCst) == Progress::HandedOver as u8
    }

    /// Begins to leave. Returns false if that was begun before.
    pub(super) fn ask(&self, now: Millis) -> bool {
        self.change(Progress::Leaves, |state| match state {
            State::Stays => Some(State::Asked { since: now }),
            _ => None,
        })
    }

    /// The client stays here, and closes at this time, or earlier if that was said before.
    pub(super) fn refuse(&self, closes_at: Millis) -> bool {
        self.change(Progress::Refused, |state| match state {
            State::Stays | State::Asked { .. } => Some(State::Refused { closes_at }),
            State::Refused { closes_at: before } if closes_at < *before => Some(State::Refused { closes_at }),
            _ => None,
        })
    }

    /// Generation of the code that has made the state of the app, if it has come with the client.
    pub(super) fn code(&self) -> Option<u64> {
        self.code.load(SeqCst).checked_sub(1)
    }

    /// The state of the app has come from code of this generation.
    pub(super) fn note_code(&self, generation: u64) {
        self.code.store(generation.saturating_add(1), SeqCst);
    }

    /// The app has handed the client over. Returns false unless it was asked.
    pub(super) fn hand_over(&self, application: Application) -> bool {
        self.code.store(0, SeqCst);
        self.change(Progress::HandedOver, |state| match state {
            State::Asked { .. } => Some(State::Ready(application)),
            _ => None,
        })
    }

    /// The client leaves with the state that it has brought: the app has not resumed it.
    pub(super) fn hand_on(&self, application: Vec<u8>) {
        self.change(Progress::HandedOver, |state| match state {
            State::Stays => Some(State::Ready(Some(application))),
            _ => None,
        });
    }

    /// Waits for a cut. Returns false unless that is the next step.
    pub(super) fn prepare(&self) -> bool {
        let mut state = self.state.lock();
        let State::Ready(application) = &mut *state else {
            return false;
        };
        *state = State::Cutting(application.take());
        true
    }

    /// The subscriptions have ended at this cut. Returns false unless the departure waits for one; then `end` was not
    /// called.
    pub(super) fn cut(&self, cut: Arc<Cut>, end: impl FnOnce() -> SavedSubscriptions) -> bool {
        let mut state = self.state.lock();
        let State::Cutting(application) = &mut *state else {
            return false;
        };
        *state = State::Cut(Box::new(Departing {
            application: application.take(),
            cut,
            subscriptions: end(),
        }));
        true
    }

    /// The parts that have left already, once the client can be sent.
    pub(super) fn departing(&self) -> Option<Departing> {
        match &*self.state.lock() {
            State::Cut(departing) => Some((**departing).clone()),
            _ => None,
        }
    }

    /// No worker takes the client: it closes at this time.
    pub(super) fn give_up(&self, closes_at: Millis) {
        *self.state.lock() = State::GivenUp { closes_at };
    }

    /// Another worker has the client.
    pub(super) fn leave(&self) {
        *self.state.lock() = State::Gone;
    }

    /// The time at which a client that stays here closes.
    pub(in crate::realtime) fn closes_at(&self) -> Option<Millis> {
        if self.progress.load(SeqCst) == 0 {
            return None;
        }
        match *self.state.lock() {
            State::Refused { closes_at } | State::GivenUp { closes_at } => Some(closes_at),
            _ => None,
        }
    }

    pub(super) fn step(&self) -> Step {
        match *self.state.lock() {
            State::Stays | State::Refused { .. } | State::GivenUp { .. } | State::Gone => Step::Over,
            State::Asked { since } => Step::Wait(since),
            State::Ready(_) => Step::Prepare,
            State::Cutting(_) => Step::AwaitCut,
            State::Cut(_) => Step::Send,
        }
    }

    fn change(&self, progress: Progress, next: impl FnOnce(&State) -> Option<State>) -> bool {
        let mut state = self.state.lock();
        let Some(next) = next(&state) else { return false };
        *state = next;
        self.progress.store(progress as u8, SeqCst);
        true
    }
}
