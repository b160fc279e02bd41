//! A response that is being sent: the client's speed, and the next step.

use super::Then;
use crate::clock::Millis;
use crate::config::Config;
use crate::limits::meter::Meter;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Outgoing {
    meter: Meter,
    then: Then,
    /// The deadline has passed, and the file sender checks if the client takes more.
    is_late: bool,
}

impl Outgoing {
    pub(super) fn new(then: Then, now: Millis) -> Outgoing {
        Outgoing {
            meter: Meter::begin(now),
            then,
            is_late: false,
        }
    }

    /// The step after the response.
    pub(super) fn then(&self) -> Then {
        self.then
    }

    /// Time at which the client has taken too little for too long.
    pub(super) fn deadline(&self, config: &Config) -> Millis {
        self.meter.deadline(config.write_rate())
    }

    /// Counts bytes that the client has taken.
    pub(super) fn moved(&mut self, taken: u64, now: Millis, config: &Config) {
        self.meter.moved(taken, now, config.write_rate());
    }

    /// Restarts the meter: the client is in time.
    pub(super) fn restart(&mut self, now: Millis) {
        self.meter = Meter::begin(now);
    }

    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Notes that the deadline has passed.
    pub(super) fn be_late(&mut self) {
        self.is_late = true;
    }

    /// Notes that the client is offered more.
    pub(super) fn be_in_time(&mut self) {
        self.is_late = false;
    }
}
