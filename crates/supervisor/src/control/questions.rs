//! Pending questions to Ruby. Requests for the same thing share one question, so there are few pipes. If a process
//! hangs, its answer stays empty.

use super::commands::ToRuby;
use super::host::{Host, Question, WorkerAnswer};
use super::poller::{Interest, Key, Poller};
use super::response::Response;
use crate::native_threads;
use rustix::io::{ioctl_fionbio, read, Errno};
use serde::Serialize;
use serde_json::value::RawValue;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Most requests that wait for Ruby at once.
const LIMIT: usize = 32;

/// The longest answer.
const LONGEST: usize = 16 * 1024 * 1024;

/// The open questions.
#[derive(Debug)]
pub(super) struct Questions {
    open: Vec<Open>,
    /// Time limit for the answers.
    patience: Duration,
}

#[derive(Debug)]
struct Open {
    what: ToRuby,
    answers: Vec<Answer>,
    /// The connections that wait for it.
    askers: Vec<Key>,
    until: Instant,
}

/// The answer of one process.
#[derive(Debug)]
struct Answer {
    worker: Option<usize>,
    pid: Option<i32>,
    /// `None` once the answer is complete, or if none can come.
    pipe: Option<(Key, OwnedFd)>,
    text: Vec<u8>,
    complete: bool,
}

/// The answer of a worker to `backtraces`.
#[derive(Serialize)]
struct Shown<'a> {
    worker: Option<usize>,
    pid: Option<i32>,
    threads: Option<&'a RawValue>,
    /// The kernel's view of the threads of a single worker, which is there even if Ruby does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<String>,
}

impl Questions {
    /// `patience`: the time limit for the answers.
    pub(super) fn new(patience: Duration) -> Questions {
        let open = Vec::new();
        Questions { open, patience }
    }

    /// Adds a question for a connection. Returns a response if too many requests wait already.
    pub(super) fn ask(
        &mut self,
        what: ToRuby,
        asker: Key,
        now: Instant,
        poller: &mut Poller,
        host: &mut dyn Host,
    ) -> Option<Response> {
        if self.open.iter().map(|open| open.askers.len()).sum::<usize>() >= LIMIT {
            return Some(Response::text(503, "Too many commands at once"));
        }
        match self.open.iter_mut().find(|open| open.what == what) {
            Some(open) => open.askers.push(asker),
            None => {
                let (askers, until) = (vec![asker], now + self.patience);
                let answers = begin(what, poller, host);
                self.open.push(Open {
                    what,
                    answers,
                    askers,
                    until,
                });
            }
        }
        None
    }

    /// Reads from a pipe that is ready.
    pub(super) fn advance(&mut self, key: Key, poller: &Poller) {
        let mut answers = self.open.iter_mut().flat_map(|open| &mut open.answers);
        if let Some(answer) = answers.find(|answer| answer.pipe.as_ref().is_some_and(|(one, _)| *one == key)) {
            answer.read(poller);
        }
    }

    /// The next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|open| open.until).min()
    }

    /// The responses to questions with complete answers, or past their deadline.
    pub(super) fn take_done(&mut self, now: Instant, poller: &Poller) -> Vec<(Vec<Key>, Response)> {
        let open = std::mem::take(&mut self.open);
        let (done, open) = open.into_iter().partition(|open: &Open| open.is_done(now));
        self.open = open;
        done.into_iter()
            .map(|mut open| (std::mem::take(&mut open.askers), open.end(poller)))
            .collect()
    }

    /// Drops all questions.
    pub(super) fn clear(&mut self, poller: &Poller) {
        for mut open in self.open.drain(..) {
            open.answers.iter_mut().for_each(|answer| answer.close(poller));
        }
    }
}

fn begin(what: ToRuby, poller: &mut Poller, host: &mut dyn Host) -> Vec<Answer> {
    let asked = match what {
        ToRuby::Workers(only) => host.ask_workers(only),
        ToRuby::First(question) => {
            let pipe = host.ask_ruby(question);
            vec![WorkerAnswer {
                worker: None,
                pid: None,
                pipe,
            }]
        }
    };
    asked.into_iter().map(|worker| Answer::new(worker, poller)).collect()
}

impl Open {
    fn is_done(&self, now: Instant) -> bool {
        self.until <= now || self.answers.iter().all(|answer| answer.pipe.is_none())
    }

    fn end(mut self, poller: &Poller) -> Response {
        self.answers.iter_mut().for_each(|answer| answer.close(poller));
        let first = || self.answers.first().and_then(Answer::json);
        let none = || Response::text(503, "Ruby does not answer");
        match self.what {
            ToRuby::Workers(only) => {
                let shown = self.answers.iter().map(|answer| answer.shown(only.is_some()));
                Response::json(&shown.collect::<Vec<_>>())
            }
            ToRuby::First(Question::Gc) => first().map_or_else(none, |_| Response::ok()),
            ToRuby::First(_) => first().map_or_else(none, |json| Response::raw(200, json.get())),
        }
    }
}

impl Answer {
    fn new(asked: WorkerAnswer, poller: &mut Poller) -> Answer {
        let key = poller.key();
        let watch = |pipe: &OwnedFd| ioctl_fionbio(pipe, true).is_ok() && poller.add(pipe, key, Interest::Read).is_ok();
        Answer {
            worker: asked.worker,
            pid: asked.pid,
            pipe: asked.pipe.filter(watch).map(|pipe| (key, pipe)),
            text: Vec::new(),
            complete: false,
        }
    }

    /// Reads once.
    fn read(&mut self, poller: &Poller) {
        let mut part = [0; 16 * 1024];
        let Some((_, pipe)) = &self.pipe else {
            return;
        };
        match read(pipe, &mut part) {
            Ok(0) => {
                self.complete = true;
                self.close(poller);
            }
            Ok(length) if self.text.len() + length <= LONGEST => self.text.extend_from_slice(&part[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.close(poller),
        }
    }

    fn close(&mut self, poller: &Poller) {
        if let Some((_, pipe)) = self.pipe.take() {
            poller.remove(&pipe);
        }
    }

    /// The answer, if it is complete.
    fn json(&self) -> Option<&RawValue> {
        let text = self.complete.then_some(&self.text)?;
        serde_json::from_slice(text).ok()
    }

    /// `alone`: true for the only process that was asked.
    fn shown(&self, alone: bool) -> Shown<'_> {
        let threads = self.json();
        let hangs = self.pid.filter(|_| alone && threads.is_none());
        Shown {
            worker: self.worker,
            pid: self.pid,
            threads,
            native: hangs.map(native_threads::describe),
        }
    }
}
