//! Checks state without notifications: idleness, and a file that restarts the server.

use crate::background::Background;
use crate::configuration::Configuration;
use crate::idleness::Idleness;
use crate::machine::Moment;
use crate::restart_file::{self, RestartFile};
use fairlead_engine::{Scoreboard, Stats};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Time between two checks of shared resources.
const SECOND: Duration = Duration::from_secs(1);

/// Time between two checks for orphans.
const ORPHANS: Duration = Duration::from_secs(1);

/// The times of the checks, and their results.
pub(super) struct Watch {
    idleness: Option<Idleness>,
    restart_file: Option<(PathBuf, RestartFile)>,
    touches: Option<Background<SystemTime>>,
    looked_at: Moment,
    due_at: Moment,
    orphans_at: Moment,
}

impl Watch {
    pub(super) fn new(configuration: &Configuration, now: Moment) -> Watch {
        let mut watch = Watch {
            idleness: None,
            restart_file: None,
            touches: None,
            looked_at: now,
            due_at: now,
            orphans_at: now,
        };
        watch.adopt(configuration, now);
        watch
    }

    /// Uses another configuration from now on.
    pub(super) fn adopt(&mut self, configuration: &Configuration, now: Moment) {
        let settings = &configuration.settings;
        self.idleness = match Duration::try_from_secs_f64(settings.idle_timeout) {
            Ok(time) if !time.is_zero() => Some(Idleness::new(time, now)),
            _ => None,
        };
        let path = settings.restart_file.as_ref().map(|file| file.path().to_path_buf());
        if path.as_ref() != self.restart_file.as_ref().map(|(path, _)| path) {
            self.touches = path
                .as_ref()
                .and_then(|_| Background::new("fairlead restart file").ok());
            self.restart_file = path.map(|path| (path, RestartFile::new(SystemTime::now())));
        }
    }

    /// Returns true if no check is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.touches.as_ref().is_none_or(Background::is_idle)
    }

    /// The time of the last touch of the restart file.
    pub(super) fn touched_at(&self) -> Option<SystemTime> {
        self.restart_file.as_ref().map(|(_, file)| file.touched_at())
    }

    /// Continues after another program.
    pub(super) fn resume(&mut self, touched_at: Option<SystemTime>) {
        if let (Some((_, file)), Some(touched_at)) = (&mut self.restart_file, touched_at) {
            *file = RestartFile::new(touched_at);
        }
    }

    /// Time until the next check.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.idleness.as_ref().map(Idleness::pause)
    }

    /// Returns true if a check for orphans is due.
    pub(super) fn orphans_are_due(&mut self, now: Moment) -> bool {
        let due = now >= self.orphans_at;
        if due {
            self.orphans_at = now + ORPHANS;
        }
        due
    }

    /// Returns true once a second, to maintain shared resources.
    pub(super) fn is_due(&mut self, now: Moment) -> bool {
        let due = now >= self.due_at;
        if due {
            self.due_at = now + SECOND;
        }
        due
    }

    /// Checks the statistics of the workers. Returns true once the server has been idle for `idle_timeout`.
    pub(super) fn is_idle_for_long(&mut self, now: Moment, scoreboard: &Scoreboard) -> bool {
        let Some(idleness) = &mut self.idleness else {
            return false;
        };
        let slots = (0..fairlead_engine::SLOTS).map(|index| scoreboard.slot(index));
        let stats: Vec<Stats> = slots
            .filter(|slot| slot.age().is_some())
            .map(|slot| slot.stats(slot))
            .collect();
        idleness.is_over(now, &stats)
    }

    /// Returns true once for each touch of the restart file.
    pub(super) fn is_touched(&mut self, now: Moment) -> bool {
        let (Some((path, file)), Some(touches)) = (&mut self.restart_file, &mut self.touches) else {
            return false;
        };
        let touched = touches
            .results()
            .into_iter()
            .any(|touched_at| file.is_touched(touched_at));
        if now.saturating_sub(self.looked_at) >= restart_file::INTERVAL {
            self.looked_at = now;
            let path = path.clone();
            touches.abandon();
            let _ = touches.run(move || restart_file::touched_at(&path));
        }
        touched
    }
}
