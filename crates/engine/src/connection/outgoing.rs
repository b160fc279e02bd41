//! A response that is being sent: how fast the client takes it, and what comes then.

use super::Then;
use crate::clock::Millis;
use crate::config::Config;
use crate::limits::meter::Meter;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Outgoing {
    meter: Meter,
    then: Then,
    /// The deadline has come, and the file sender finds out whether the client takes more.
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

    /// When the client has taken too little for too long.
    pub(super) fn deadline(&self, config: &Config) -> Millis {
        self.meter.deadline(config.write_rate())
    }

    /// The client has taken so many bytes.
    pub(super) fn moved(&mut self, taken: u64, now: Millis, config: &Config) {
        self.meter.moved(taken, now, config.write_rate());
    }

    /// The client is in time.
    pub(super) fn restart(&mut self, now: Millis) {
        self.meter = Meter::begin(now);
    }

    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// The deadline has come.
    pub(super) fn be_late(&mut self) {
        self.is_late = true;
    }

    /// The client is offered more.
    pub(super) fn be_in_time(&mut self) {
        self.is_late = false;
    }
}
