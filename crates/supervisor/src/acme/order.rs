//! One certificate: its state, and the time of the next action for it.
//!
//! Files can fail: their last known state stays valid. The clock can be set back: this makes no pause longer.

use super::failure::Failure;
use super::message::{Certificate, Facts, OrderSettings, Restored, Task, Text, Wish};
use super::suggestion::Suggestion;
use super::{Now, Wall, MINUTE};
use crate::control::date;
use serde::{Deserialize, Serialize};

/// Pause while another process orders the certificate.
const BUSY_PAUSE: Wall = MINUTE / 6;

/// Time for which an existing file may be missing or damaged before it is written again.
const MISSING_PAUSE: Wall = MINUTE / 6;

/// Pause before the next attempt to write it.
const RETRY_PAUSE: Wall = MINUTE;

/// The state of an order.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Order {
    pub(super) settings: OrderSettings,
    /// The certificate in use, even if its file is lost.
    pub(super) certificate: Option<Certificate>,
    pub(super) failure: Option<Failure>,
    record: Record,
    /// The file of the failure has to be deleted.
    forget: bool,
    token: Option<String>,
    /// True if there is an account with the authority.
    pub(super) has_account: bool,
    /// True if another process ordered it at the last attempt.
    pub(super) is_busy: bool,
    not_before: Wall,
    pub(super) suggestion: Suggestion,
    missing_since: Option<Wall>,
    /// The reason why the file could not be written again, as it was logged.
    unrestored: Option<String>,
    /// True if memory has a certificate that could not be written.
    held: bool,
}

/// The state of a failure's file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
enum Record {
    /// Not written yet.
    New,
    /// It could not be written.
    Failed,
    /// It is in the file, or there is no failure.
    Kept,
}

impl Order {
    pub(super) fn new(settings: OrderSettings) -> Order {
        Order {
            settings,
            certificate: None,
            failure: None,
            record: Record::Kept,
            forget: false,
            token: None,
            has_account: false,
            is_busy: false,
            not_before: 0,
            suggestion: Suggestion::default(),
            missing_since: None,
            unrestored: None,
            held: false,
        }
    }

    /// True once a process has checked its files.
    pub(super) fn is_known(&self) -> bool {
        self.token.is_some()
    }

    /// The time of the next attempt.
    pub(super) fn at(&self) -> Wall {
        let due = match &self.failure {
            Some(failure) => Some(failure.retry_at),
            None => self.wanted_at(),
        };
        due.unwrap_or(0).max(self.not_before)
    }

    /// The time at which the certificate should be renewed.
    fn wanted_at(&self) -> Option<Wall> {
        let renew_at = self.certificate.as_ref().map(|certificate| certificate.renew_at);
        [renew_at, self.suggestion.at].into_iter().flatten().min()
    }

    /// True if it is time to order, for the first time or again.
    pub(super) fn is_due(&self, now: Wall) -> bool {
        now >= self.at()
    }

    /// True if it is time to ask the authority about the certificate.
    pub(super) fn is_to_ask(&self, now: Wall) -> bool {
        let certificate = self.certificate.as_ref().filter(|_| self.failure.is_none());
        certificate.is_some_and(|certificate| self.suggestion.is_due(certificate, now))
    }

    /// True if the file of the certificate in use has been missing or damaged for long enough.
    fn is_lost(&self, now: Wall) -> bool {
        self.missing_since.is_some_and(|since| now >= since + MISSING_PAUSE)
    }

    /// Limits all pauses, because the clock may have been set back.
    pub(super) fn bound(&mut self, now: Wall) {
        if let Some(failure) = &mut self.failure {
            failure.bound(now);
        }
        if self.not_before > now + BUSY_PAUSE {
            self.not_before = now;
        }
        self.missing_since = self.missing_since.map(|since| since.min(now + RETRY_PAUSE));
        self.suggestion.bound(now);
    }

    /// The details of a task for this order.
    pub(super) fn wish(&self, task: Task, now: Wall) -> Wish {
        let token = self.token.clone();
        match task {
            Task::Look => Wish {
                token,
                fail: self.failure.clone().filter(|_| self.record == Record::New),
                forget: self.forget,
                restore: self.is_lost(now),
                ..Wish::default()
            },
            Task::Order => Wish {
                token,
                held: self.held,
                recalled: self.suggestion.at.is_some_and(|at| now >= at),
                ..Wish::default()
            },
            Task::Ask => Wish {
                token,
                ..Wish::default()
            },
        }
    }

    /// The text that the task needs.
    pub(super) fn text(&self, task: Task) -> Text {
        if task == Task::Order && self.held {
            Text::Held
        } else {
            Text::Used
        }
    }

    // --- events

    /// The files have another state.
    pub(super) fn take(&mut self, facts: Facts, now: Wall) {
        self.token = Some(facts.token);
        self.has_account = facts.account;
        match facts.certificate {
            Some(certificate) => self.take_certificate(certificate, now),
            None if self.certificate.is_some() => self.missing_since = self.missing_since.or(Some(now)),
            None => {}
        }
        let is_kept = self.record == Record::Kept;
        match facts.failure {
            Some(found) if is_kept || self.failure.as_ref().is_none_or(|own| found.retry_at >= own.retry_at) => {
                self.failure = Some(found);
                self.record = Record::Kept;
            }
            None if is_kept && facts.forgiven => self.failure = None,
            _ => {}
        }
        self.bound(now);
    }

    fn take_certificate(&mut self, certificate: Certificate, now: Wall) {
        if self.certificate.as_ref() != Some(&certificate) {
            self.suggestion = Suggestion::for_new(&certificate, now);
        }
        self.certificate = Some(certificate);
        self.missing_since = None;
        self.unrestored = None;
        self.is_busy = false;
    }

    /// A process has written the state that the files store. Returns true if the failure could not be written.
    pub(super) fn kept(&mut self, fails: bool) -> bool {
        self.forget = false;
        let is_new = self.record == Record::New;
        if is_new {
            self.record = if fails { Record::Failed } else { Record::Kept };
        }
        is_new && fails
    }

    /// A process has tried to write the lost file. Returns the reason of a failure, if it is a new reason.
    pub(super) fn restored(&mut self, restored: &Restored, now: Wall) -> Option<String> {
        match restored {
            Restored::Locked => self.missing_since = Some(now),
            Restored::Failed(reason) => {
                self.missing_since = Some(now + RETRY_PAUSE - MISSING_PAUSE);
                let is_news = self.unrestored.as_ref() != Some(reason);
                self.unrestored = Some(reason.clone());
                return self.unrestored.clone().filter(|_| is_news);
            }
            Restored::Written | Restored::Found => {}
        }
        None
    }

    /// There is a new certificate. Returns an error if it is due at once: by the authority's clock or ours, it is about
    /// to expire.
    pub(super) fn succeeded(&mut self, now: Wall) -> Option<String> {
        self.held = false;
        let Some(certificate) = &self.certificate else {
            return Some("the new certificate is not in its file".into());
        };
        if self.wanted_at().is_some_and(|at| now >= at) {
            return Some(format!(
                "the new certificate, valid from {} to {}, is due for renewal at once: the clock of this machine or of the \
                 authority is wrong",
                date::words(certificate.begins_at),
                date::words(certificate.expires_at)
            ));
        }
        self.failure = None;
        self.record = Record::Kept;
        self.forget = true;
        None
    }

    /// The attempt has failed.
    pub(super) fn failed(&mut self, reason: String, retry_after: Option<f64>, now: Now) {
        self.is_busy = false;
        self.failure = Some(Failure::after(self.failure.as_ref(), reason, retry_after, now));
        self.record = Record::New;
    }

    /// A certificate was issued and could not be written.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    /// Another process orders the certificate.
    pub(super) fn put_off(&mut self, now: Wall) {
        self.is_busy = true;
        self.not_before = now + BUSY_PAUSE;
    }

    /// Takes the authority's suggestion, or the lack of a response. Returns the time if it is earlier than the planned
    /// one.
    pub(super) fn suggest(&mut self, window: Option<[f64; 3]>, now: Wall) -> Option<Wall> {
        let certificate = self.certificate.as_ref()?;
        self.suggestion.take(certificate, window, now);
        window?;
        self.suggestion.at.filter(|at| *at < certificate.renew_at)
    }
}
