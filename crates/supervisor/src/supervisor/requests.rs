//! Requests to the server: by signals, by programs, and by its own processes.

use super::acting::Acting;
use crate::asks::Asks;
use crate::background::Background;
use crate::control::Asked;
use crate::insistence::Insistence;
use crate::log::Log;
use crate::machine::{Command, Moment, RestartKind, StopReason};
use crate::restart_signals::RestartSignals;
use crate::signals::Signals;
use crate::standard_streams::Reopened;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The sources of requests, and the requests that wait.
pub(super) struct Requests {
    pub(super) signals: Signals,
    asks: Asks,
    insistence: Insistence,
    restart_signals: RestartSignals,
    reopenings: Background<Reopened>,
}

impl Requests {
    /// `signals`: the signals of this process.
    pub(super) fn new(signals: Signals) -> io::Result<Requests> {
        Ok(Requests {
            signals,
            reopenings: Background::new("fairlead logs")?,
            asks: Asks::new()?,
            insistence: Insistence::default(),
            restart_signals: RestartSignals::default(),
        })
    }

    /// Makes requests from other threads.
    pub(super) fn asks(&self) -> Asks {
        self.asks.clone()
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.asks.as_fd(), self.reopenings.as_fd(), self.signals.as_fd()]
    }

    /// Time until a restart that waits is due.
    pub(super) fn pause(&self, now: Moment) -> Option<Duration> {
        self.restart_signals.pause(now)
    }

    /// Returns true if no request waits.
    pub(super) fn are_done(&self, now: Moment) -> bool {
        self.reopenings.is_idle() && self.pause(now).is_none()
    }

    /// Reports logs that were reopened.
    pub(super) fn hear_reopened(&mut self, log: &Log) {
        for reopened in self.reopenings.results() {
            reopened.report(log);
        }
    }

    /// Handles signals, and requests from this process.
    pub(super) fn hear(&mut self, acting: &mut Acting) {
        for name in self.signals.read() {
            self.hear_signal(name, acting);
        }
        if let Some(kind) = self.restart_signals.due(acting.now) {
            let _ = acting.ask(Command::Restart(kind));
        }
        for request in self.asks.take() {
            self.hear_ask(&request, acting);
        }
    }

    fn hear_signal(&mut self, name: &'static str, acting: &mut Acting) {
        let reason = StopReason::Signal(name);
        let _ = match name {
            "TERM" | "INT" => self.stop(reason, acting),
            "QUIT" => self.halt(reason, acting),
            "HUP" => self.hang_up(acting),
            "USR1" => self.wait_for_restart(RestartKind::Phased),
            "USR2" => self.wait_for_restart(RestartKind::Hot),
            "TTIN" => acting.ask(Command::AddWorker),
            "TTOU" => acting.ask(Command::RemoveWorker),
            "URG" => acting.ask(Command::Restart(RestartKind::Refork)),
            _ => {
                acting.fleet.tell_all("backtraces", &[], &[]);
                Ok(())
            }
        };
    }

    fn wait_for_restart(&mut self, kind: RestartKind) -> Result<(), String> {
        self.restart_signals.ask(kind);
        Ok(())
    }

    /// HUP ends a server without logs to reopen or certificates to reload, unless `nohup` has disabled it.
    fn hang_up(&mut self, acting: &mut Acting) -> Result<(), String> {
        let reopened = self.reopen_logs(acting);
        let reloaded = acting.reload_certificates();
        if reopened || reloaded || self.signals.hup_was_ignored() {
            return Ok(());
        }
        self.stop(StopReason::Signal("HUP"), acting)
    }

    fn stop(&mut self, reason: StopReason, acting: &mut Acting) -> Result<(), String> {
        note_reason(reason, acting);
        let hurry = self.insistence.hurries(reason, acting.now);
        self.insistence.begin(reason, acting.now);
        acting.ask(Command::Stop { reason, hurry })
    }

    fn halt(&mut self, reason: StopReason, acting: &mut Acting) -> Result<(), String> {
        note_reason(reason, acting);
        acting.ask(Command::Halt(reason))
    }

    /// Handles a request from a process of the server.
    pub(super) fn hear_ask(&mut self, request: &str, acting: &mut Acting) {
        let asked = match request {
            "stop" => Asked::Stop,
            "halt" => Asked::Halt,
            "restart" => Asked::Restart,
            "phased_restart" => Asked::PhasedRestart,
            "refork" => Asked::Refork,
            "reopen_logs" => Asked::ReopenLogs,
            "reload_certificates" => Asked::ReloadCertificates,
            "add_worker" => Asked::AddWorker,
            "remove_worker" => Asked::RemoveWorker,
            "backtraces" => Asked::Backtraces,
            _ => return,
        };
        let _ = self.do_asked(asked, acting);
    }

    /// Handles a request of a user or a program. An error is the reason of a refusal.
    pub(super) fn do_asked(&mut self, asked: Asked, acting: &mut Acting) -> Result<(), String> {
        match asked {
            Asked::Stop => self.stop(StopReason::Command, acting),
            Asked::Halt => self.halt(StopReason::Command, acting),
            Asked::Restart => acting.ask(Command::Restart(RestartKind::Hot)),
            Asked::PhasedRestart => acting.ask(Command::Restart(RestartKind::Phased)),
            Asked::Refork => acting.ask(Command::Restart(RestartKind::Refork)),
            Asked::Pause(wait) => acting.pause_requests(wait),
            Asked::Resume => {
                acting.resume_requests();
                Ok(())
            }
            Asked::AddWorker => acting.ask(Command::AddWorker),
            Asked::RemoveWorker => acting.ask(Command::RemoveWorker),
            Asked::ReopenLogs => {
                self.reopen_logs(acting);
                Ok(())
            }
            Asked::ReloadCertificates => {
                acting.reload_certificates();
                Ok(())
            }
            Asked::Backtraces => {
                acting.fleet.tell_all("backtraces", &[], &[]);
                Ok(())
            }
        }
    }

    /// Reopens the logs. Returns false if no log is a file.
    fn reopen_logs(&mut self, acting: &mut Acting) -> bool {
        let Some(reopening) = acting.streams.reopening(&acting.adoption.current().settings.log) else {
            return false;
        };
        acting.fleet.tell_all("reopen_logs", &[], &[]);
        self.reopenings.abandon();
        let (late, log) = (reopening.late(), acting.log.clone());
        if self.reopenings.run(move || reopening.run()).is_err() {
            late.report(&log);
        }
        true
    }
}

fn note_reason(reason: StopReason, acting: &mut Acting) {
    if let (StopReason::Signal(name), None) = (reason, acting.asked_by) {
        acting.asked_by = Some(name);
    }
}
