//! A beat: a publication that the dispatcher of a process repeats by itself, as long as the channel has subscribers. It needs
//! neither the lock of the language nor a thread of the app.

use super::publication::Publication;
use crate::clock::Nanos;
use crate::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A publication that is repeated.
#[derive(Debug)]
pub(crate) struct Beat {
    /// The channel, which no app uses.
    pub(crate) channel: &'static [u8],
    /// The time between two publications.
    pub(crate) period: Duration,
    /// Makes the message.
    pub(crate) message: fn() -> Vec<u8>,
}

/// The beat of a process, and the time of the next publication.
#[derive(Default)]
pub(super) struct NextBeat(Mutex<Option<(&'static Beat, Nanos)>>);

impl NextBeat {
    /// Begins with a beat. Returns true if there was none.
    pub(super) fn begin(&self, beat: &'static Beat) -> bool {
        let mut next = self.0.lock();
        let is_first = next.is_none();
        if is_first {
            *next = Some((beat, Nanos::now() + beat.period));
        }
        is_first
    }

    /// The time until the next publication.
    pub(super) fn remaining(&self, now: Nanos) -> Option<Duration> {
        let (_, due) = (*self.0.lock())?;
        Some(due - now)
    }

    /// The publication, if it is due. After a pause there is one, not all that were missed.
    pub(super) fn take(&self, now: Nanos) -> Option<Arc<Publication>> {
        let mut next = self.0.lock();
        let (beat, due) = next.as_mut()?;
        if now < *due {
            return None;
        }
        *due = now + beat.period;
        Some(Arc::new(Publication::new(beat.channel, (beat.message)())))
    }
}
