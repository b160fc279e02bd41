//! Pauses of the server: requests wait in the workers until it resumes. The scoreboard tells all of them.

use super::acting::Acting;
use crate::machine::ServerStatus;
use crate::settings::PausingSettings;
use fairlead_engine::Pause;
use std::time::Duration;

impl Acting {
    fn pause_of_workers(&self) -> &'static Pause {
        &self.fleet.memory().scoreboard().pause
    }

    /// The rest of the pause, for another program.
    pub(super) fn rest_of_pause(&self) -> Option<PausingSettings> {
        let (pause, limit) = (self.pause_of_workers(), self.pause_of_workers().left()?);
        let timeout = pause.wait();
        Some(PausingSettings { timeout, limit })
    }

    /// Begins a pause, or changes the running one. `wait`: longest wait of a request, if it is not the configured one.
    /// An error is the reason of a refusal.
    pub(super) fn pause_requests(&mut self, wait: Option<Duration>) -> Result<(), String> {
        if self.machine.state() == ServerStatus::Draining {
            return Err("the server is ending".to_owned());
        }
        let settings = &self.adoption.current().settings.pausing;
        let (wait, limit) = (wait.unwrap_or(settings.timeout), settings.limit);
        self.pause_of_workers().begin(wait, limit);
        self.is_paused = true;
        let (wait, limit) = (wait.as_secs_f64(), limit.as_secs_f64());
        let text =
            format!("paused: new requests wait for up to {wait} s; the pause ends after {limit} s at the latest");
        self.log.info("paused", text);
        Ok(())
    }

    /// Ends the pause, if there is one.
    pub(super) fn resume_requests(&mut self) {
        self.pause_of_workers().end();
        if std::mem::take(&mut self.is_paused) {
            self.log.info("resumed", "resumed: requests go on");
        }
    }

    /// Notices that a pause has reached its limit.
    pub(super) fn tend_pause(&mut self) {
        if self.is_paused && self.pause_of_workers().left().is_none() {
            self.is_paused = false;
            let text = "resumed: the pause has reached pause_limit; resume it earlier with fairlead ctl resume";
            self.log.warn("resumed", text);
        }
    }
}
