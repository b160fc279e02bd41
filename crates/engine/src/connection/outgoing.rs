//! A response that is being sent: the client's speed, and the next step.

use super::Then;
use crate::clock::{Millis, Nanos};
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

    /// Continues a response of another process. `paid`: the time up to which the client has kept its minimum rate.
    pub(super) fn continued(then: Then, paid: Nanos) -> Outgoing {
        Outgoing {
            meter: Meter::from_paid(paid),
            then,
            is_late: false,
        }
    }

    /// Time up to which the client has kept its minimum rate.
    pub(super) fn paid(&self) -> Nanos {
        self.meter.paid()
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

    /// Ends the connection with the response.
    pub(super) fn end_connection(&mut self) {
        if matches!(self.then, Then::NextRequest | Then::Migrate) {
            self.then = Then::Close;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::config;
    use std::time::Duration;

    #[test]
    fn the_time_of_a_client_that_takes_too_little_goes_on_in_another_process() {
        let config = config();
        let mut here = Outgoing::new(Then::NextRequest, Millis::START);
        here.moved(100, Millis::START + Duration::from_secs(5), &config);
        let there = Outgoing::continued(Then::NextRequest, here.paid());
        assert_eq!(there.deadline(&config), here.deadline(&config));
        assert_eq!(
            there.deadline(&config),
            Millis::START + Duration::from_millis(200) + config.write_timeout
        );
    }
}
