//! The publishers and their schedule. Message `i` of a run is the next one of publisher `i mod publishers`; with
//! `--rate`, it is due at `i / rate`.

use crate::clock::Nanos;
use crate::marker::{Mark, Marks};
use crate::options::{Broadcast, RealTime};
use crate::real_time::outbox::Outbox;
use crate::request;

/// Bytes sent at once when messages are sent as fast as possible.
const BATCH_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Publishers {
    each: Vec<Publisher>,
    rate: Option<f64>,
    begun: Nanos,
    first_sent: Option<Nanos>,
    size: usize,
    binary: bool,
    /// The template: the text before and after every message.
    around: (Vec<u8>, Vec<u8>),
    /// The head of a POST; `None` if messages go through WebSockets.
    head: Option<Vec<u8>>,
    draft: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Publisher {
    /// Messages to send, sent and rejected.
    share: u32,
    sent: u32,
    rejected: u32,
    /// A request is in progress.
    waiting: bool,
    /// The current connection has carried a response.
    answered: bool,
    lost: bool,
}

impl Publishers {
    pub(crate) fn new(options: &RealTime, task: &Broadcast) -> Publishers {
        // Both numbers are far below `u32::MAX`: see the options.
        let (count, messages) = (task.publishers as u32, task.messages);
        let share = |number| messages / count + u32::from(number < messages % count);
        let each = (0..count).map(|number| Publisher {
            share: share(number),
            ..Publisher::default()
        });
        let (before, after) = task.template.clone().unwrap_or_default();
        let length = before.len() + task.size + after.len();
        let head = task.publish.as_ref().map(|url| {
            let fields = vec![("Content-Length", length.to_string())];
            request::head("POST", &url.path, url, fields, &options.headers)
        });
        Publishers {
            each: each.collect(),
            rate: task.rate,
            begun: 0,
            first_sent: None,
            size: task.size,
            binary: task.binary,
            around: (before.into_bytes(), after.into_bytes()),
            head,
            draft: Vec::with_capacity(length),
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.begun = now;
    }

    pub(crate) fn count(&self) -> usize {
        self.each.len()
    }

    /// Puts the next messages of a publisher into its outbox: one, or as many as are sent at once. Returns `true` if
    /// there were any.
    pub(crate) fn fill(&mut self, number: usize, marks: &Marks, outbox: &mut Outbox, now: Nanos) -> bool {
        let mut filled = false;
        while self.is_due(number, now) && outbox.pending().len() < BATCH_BYTES {
            let sequence = self.each[number].sent;
            let sent = self.due(number).unwrap_or(now);
            self.draft(
                marks,
                Mark {
                    publisher: number as u32,
                    sequence,
                    sent,
                },
            );
            match &self.head {
                None => outbox.message(self.binary, &self.draft),
                Some(head) => {
                    outbox.raw(head);
                    outbox.raw(&self.draft);
                }
            }
            let publisher = &mut self.each[number];
            publisher.sent += 1;
            publisher.waiting = self.head.is_some();
            self.first_sent.get_or_insert(now);
            filled = true;
        }
        filled
    }

    fn draft(&mut self, marks: &Marks, mark: Mark) {
        self.draft.clear();
        self.draft.extend_from_slice(&self.around.0);
        let end = self.draft.len() + self.size;
        marks.put(&mut self.draft, mark);
        self.draft.resize(end, if self.binary { 0xff } else { b'x' });
        self.draft.extend_from_slice(&self.around.1);
    }

    /// Returns `true` if a publisher has a message to send now.
    pub(crate) fn is_due(&self, number: usize, now: Nanos) -> bool {
        self.each[number].may_send() && self.due(number).is_none_or(|due| due <= now)
    }

    /// Time at which the next message of a publisher is due; `None` without a rate.
    fn due(&self, number: usize) -> Option<Nanos> {
        let index = u64::from(self.each[number].sent) * self.each.len() as u64 + number as u64;
        self.rate.map(|rate| self.begun + (index as f64 / rate * 1e9) as Nanos)
    }

    /// Time at which the next message of any publisher that can send is due; `None` if there is none, or without a
    /// rate.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let able = (0..self.each.len()).filter(|&number| self.each[number].may_send());
        able.filter_map(|number| self.due(number)).min()
    }

    /// Returns `true` if no publisher has anything to send or waits for a response.
    pub(crate) fn are_done(&self) -> bool {
        self.each
            .iter()
            .all(|publisher| !publisher.waiting && !publisher.may_send())
    }

    /// A request got its response: `Some(true)` if the message was accepted, `None` if there was no request.
    pub(crate) fn answered(&mut self, number: usize, status: u16) -> Option<bool> {
        let publisher = &mut self.each[number];
        if !publisher.waiting {
            return None;
        }
        publisher.waiting = false;
        publisher.answered = true;
        let taken = (200..300).contains(&status);
        publisher.rejected += u32::from(!taken);
        Some(taken)
    }

    /// Returns `true` if a publisher continues on a new connection after its connection was closed. It does not if the
    /// closed connection never carried a response.
    pub(crate) fn reopen(&mut self, number: usize) -> bool {
        let publisher = &mut self.each[number];
        std::mem::take(&mut publisher.answered) && publisher.may_send()
    }

    /// Returns `true` if a request is in progress.
    pub(crate) fn is_waiting(&self, number: usize) -> bool {
        self.each[number].waiting
    }

    /// Returns `true` if a publisher has sent all its messages.
    pub(crate) fn has_finished(&self, number: usize) -> bool {
        let publisher = &self.each[number];
        publisher.sent == publisher.share
    }

    /// A publisher is lost. Returns how many messages it has not sent; 0 if this was counted before.
    pub(crate) fn lose(&mut self, number: usize) -> u64 {
        let publisher = &mut self.each[number];
        if publisher.lost {
            return 0;
        }
        publisher.lost = true;
        publisher.waiting = false;
        u64::from(publisher.share - publisher.sent)
    }

    pub(crate) fn has_sent(&self, number: u32, sequence: u32) -> bool {
        let publisher = self.each.get(number as usize);
        publisher.is_some_and(|publisher| sequence < publisher.sent)
    }

    /// Messages that were sent or will be, without the rejected ones.
    pub(crate) fn planned(&self) -> u64 {
        let planned = |publisher: &Publisher| {
            if publisher.lost {
                publisher.sent
            } else {
                publisher.share
            }
        };
        self.sum(|publisher| planned(publisher) - publisher.rejected)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sum(|publisher| publisher.sent)
    }

    pub(crate) fn rejected(&self) -> u64 {
        self.sum(|publisher| publisher.rejected)
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.sum(|publisher| publisher.share - publisher.sent)
    }

    pub(crate) fn first_sent(&self) -> Nanos {
        self.first_sent.unwrap_or(self.begun)
    }

    fn sum(&self, value: impl Fn(&Publisher) -> u32) -> u64 {
        self.each.iter().map(|publisher| u64::from(value(publisher))).sum()
    }
}

impl Publisher {
    fn may_send(&self) -> bool {
        !self.lost && !self.waiting && self.sent < self.share
    }
}
