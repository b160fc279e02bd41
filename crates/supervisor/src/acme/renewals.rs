//! The schedule of certificates that an authority issues: the times at which each one is ordered, renewed or retried.
//!
//! No I/O, no clock, no threads: [`Renewals::step`] is a function of the state, the time and an event. The current
//! spawner, or the sole process, does the work (files, keys, the program that communicates with the authority) and
//! responds with facts.
//!
//! ```text
//! idle ──look, order or ask──▶ asked ──answer──▶ idle
//!                                │ no answer in time, or the process has ended
//!                                └──▶ idle: an order has failed, anything else is asked again
//! ```
//!
//! Each order has one task at a time. It checks its files once a second, and orders a certificate only after such a
//! check. Two generations cannot order the same certificate, because there is one schedule.

#[cfg(test)]
mod tests;

use super::message::{Answer, OrderSettings, Orders, Outcome, Restored, Task, Text, Wish};
use super::notice::{self, Line};
use super::order::Order;
use super::Now;
use crate::control::date;
use crate::machine::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most concurrent orders for one authority.
const AT_ONCE: usize = 4;

/// Time between two checks of the files of an order.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Time for which orders wait for the checks of other orders, so that the orders with the fewest failures come first.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// The reason that reports show while another process has the lock.
const BUSY: &str = "another process has locked the order";

/// One thing that has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A spawner has become the current spawner. These are the orders of its configuration.
    Orders(Orders),
    /// Time has passed. `serves`: some process serves, and so can respond to challenges.
    Tick {
        /// See above.
        serves: bool,
    },
    /// The result of the task with this number.
    Answered(u64, Box<Answer>),
    /// The process that had the task with this number has ended.
    Lost {
        /// The number of the task.
        number: u64,
        /// True if the process was asked to end, or has not received the task at all.
        planned: bool,
    },
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask the current spawner for work. Result: `Answered` or `Lost`.
    Ask {
        /// The number of the task; never used twice.
        number: u64,
        /// The key of the order.
        key: String,
        /// The work.
        task: Task,
        /// Its details.
        wish: Wish,
        /// The text that belongs to the task, if there is one.
        text: Text,
    },
    /// Have the current spawner reload the certificates.
    Reload,
    /// Write a line.
    Log(Line),
}

/// An order, for `/status`.
#[derive(Debug, Serialize)]
pub struct OrderReport {
    hosts: Vec<String>,
    directory: String,
    expires_at: Option<String>,
    next_attempt_at: String,
    failures: u32,
    error: Option<String>,
}

/// All certificates of the configuration. Another version of the supervisor may read it; entries that it cannot read
/// start anew.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Renewals {
    folder: String,
    entries: Vec<Entry>,
    /// The reason why nothing can be stored in the folder.
    unusable: Option<String>,
    #[serde(skip)]
    serves: bool,
    last_number: u64,
    #[serde(skip)]
    actions: Vec<Action>,
}

/// An order and its task.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Entry {
    order: Order,
    asked: Option<Asked>,
    /// The last check; nothing if a check is due at once.
    looked_at: Option<Moment>,
    /// True if no task was started since that check.
    is_fresh: bool,
    /// True once the first log line about the order was written.
    is_told: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Asked {
    number: u64,
    task: Task,
    since: Moment,
}

impl Renewals {
    /// Takes an event and the time, and returns the actions to take.
    pub fn step(&mut self, now: Now, event: Event) -> Vec<Action> {
        for entry in &mut self.entries {
            entry.order.bound(now.wall);
        }
        match event {
            Event::Orders(orders) => self.adopt(orders),
            Event::Tick { serves } => {
                self.serves = serves;
                self.expire(now);
            }
            Event::Answered(number, answer) => self.answered(now, number, *answer),
            Event::Lost { number, planned } => self.lost(now, number, planned),
        }
        if self.serves {
            self.look(now);
            self.start(now);
        }
        std::mem::take(&mut self.actions)
    }

    /// Continues in another program: the deadlines of tasks start again.
    pub fn resume(&mut self, now: Moment) {
        for entry in &mut self.entries {
            entry.looked_at = None;
            if let Some(asked) = &mut entry.asked {
                asked.since = now;
            }
        }
    }

    /// The keys of all orders.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.order.settings.key.as_str())
    }

    /// The orders, for `/status`.
    pub fn report(&self) -> Vec<OrderReport> {
        let orders = self.entries.iter().map(|entry| &entry.order);
        let reports = orders.map(|order| OrderReport {
            hosts: order.settings.hosts.clone(),
            directory: order.settings.directory.clone(),
            expires_at: order
                .certificate
                .as_ref()
                .map(|certificate| date::wall(certificate.expires_at)),
            next_attempt_at: date::wall(order.at()),
            failures: order.failure.as_ref().map_or(0, |failure| failure.count),
            error: self.error(order),
        });
        reports.collect()
    }

    fn error(&self, order: &Order) -> Option<String> {
        let failure = order.failure.as_ref().map(|failure| failure.reason.clone());
        failure
            .or_else(|| self.unusable.clone())
            .or_else(|| order.is_busy.then(|| BUSY.into()))
    }

    /// Continues with existing orders. The log lines of each generation start anew.
    fn adopt(&mut self, orders: Orders) {
        let mut former = std::mem::take(&mut self.entries);
        if orders.folder != self.folder {
            former.clear();
        }
        self.folder = orders.folder;
        self.unusable = None;
        for settings in orders.orders {
            let known = former.iter().position(|entry| entry.order.settings == settings);
            let entry = known.map_or_else(|| Entry::new(settings), |index| former.swap_remove(index));
            self.entries.push(Entry {
                is_told: false,
                looked_at: None,
                ..entry
            });
        }
    }

    // --- tasks

    /// Checks the files of the orders that have no other task.
    fn look(&mut self, now: Now) {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            let recent = entry.looked_at.is_some_and(|at| now.running < at + LOOK_PAUSE);
            if entry.asked.is_none() && !recent {
                self.ask(index, Task::Look, now);
            }
        }
    }

    /// Starts the tasks that are due: first for the orders with the fewest failures.
    fn start(&mut self, now: Now) {
        if self.unusable.is_some() || self.entries.iter().any(|entry| entry.is_awaited(now.running)) {
            return;
        }
        let idle = |entry: &Entry| entry.asked.is_none() && entry.is_fresh;
        let mut due: Vec<(u32, usize)> = Vec::new();
        for (index, entry) in self.entries.iter().enumerate().filter(|(_, entry)| idle(entry)) {
            if entry.order.is_due(now.wall) {
                due.push((entry.order.failure.as_ref().map_or(0, |failure| failure.count), index));
            }
        }
        due.sort_unstable();
        let due = due.into_iter().map(|(_, index)| (Task::Order, index));
        let others = self.entries.iter().enumerate().filter(|(_, entry)| idle(entry));
        let others = others.filter(|(_, entry)| !entry.order.is_due(now.wall) && entry.order.is_to_ask(now.wall));
        let others = others.map(|(index, _)| (Task::Ask, index));
        let tasks: Vec<(Task, usize)> = due.chain(others).collect();
        for (task, index) in tasks {
            if self.has_room(&self.entries[index].order.settings.directory) {
                self.ask(index, task, now);
            }
        }
    }

    /// The first order for an authority creates the account that the other orders need.
    fn has_room(&self, directory: &str) -> bool {
        let beside = || {
            self.entries
                .iter()
                .filter(|entry| entry.order.settings.directory == directory)
        };
        let busy = beside().filter(|entry| entry.asked.as_ref().is_some_and(|asked| asked.task != Task::Look));
        let most = if beside().any(|entry| entry.order.has_account) {
            AT_ONCE
        } else {
            1
        };
        busy.count() < most
    }

    fn ask(&mut self, index: usize, task: Task, now: Now) {
        self.last_number += 1;
        let (number, entry) = (self.last_number, &mut self.entries[index]);
        entry.is_fresh = false;
        entry.asked = Some(Asked {
            number,
            task,
            since: now.running,
        });
        self.actions.push(Action::Ask {
            number,
            key: entry.order.settings.key.clone(),
            task,
            wish: entry.order.wish(task, now.wall),
            text: entry.order.text(task),
        });
    }

    /// Gives up tasks without a result in time.
    fn expire(&mut self, now: Now) {
        for index in 0..self.entries.len() {
            let Some(asked) = &self.entries[index].asked else {
                continue;
            };
            let limit = asked.task.limit();
            if now.running < asked.since + limit {
                continue;
            }
            match asked.task {
                Task::Look => {}
                Task::Order => self.failed(
                    index,
                    format!(
                        "the process that orders it has not responded within {} s",
                        limit.as_secs()
                    ),
                    None,
                    now,
                ),
                Task::Ask => _ = self.entries[index].order.suggest(None, now.wall),
            }
            self.entries[index].asked = None;
        }
    }

    fn lost(&mut self, now: Now, number: u64, planned: bool) {
        let Some(index) = self.index_of(number) else { return };
        let task = self.entries[index].asked.take().map(|asked| asked.task);
        self.entries[index].looked_at = Some(now.running);
        if task == Some(Task::Order) && !planned {
            self.failed(index, "the process that ordered it has ended".into(), None, now);
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        let is_it = |entry: &Entry| entry.asked.as_ref().is_some_and(|asked| asked.number == number);
        self.entries.iter().position(is_it)
    }

    // --- results

    fn answered(&mut self, now: Now, number: u64, answer: Answer) {
        let Some(index) = self.index_of(number) else { return };
        let entry = &mut self.entries[index];
        let task = entry.asked.take().map(|asked| asked.task);
        if let Some(facts) = answer.facts.clone() {
            entry.order.take(facts, now.wall);
        }
        match task {
            Some(Task::Look) => self.looked(index, answer, now),
            Some(Task::Order) => self.ordered(index, answer, now),
            Some(Task::Ask) => {
                let earlier = entry.order.suggest(answer.window, now.wall);
                let line = earlier.map(|at| notice::suggested(&entry.order, at));
                self.log(line);
            }
            None => {}
        }
    }

    fn looked(&mut self, index: usize, answer: Answer, now: Now) {
        let entry = &mut self.entries[index];
        entry.looked_at = Some(now.running);
        entry.is_fresh = entry.order.is_known();
        let mut lines = Vec::new();
        if !entry.is_told {
            entry.is_told = true;
            lines.extend(notice::first(&entry.order, now.wall));
        }
        if entry.order.kept(answer.unwritten.is_some()) {
            let reason = answer.unwritten.as_deref().unwrap_or_default();
            lines.push(notice::failure_unwritten(&entry.order, reason));
        }
        if let Some(restored) = &answer.restore {
            let news = entry.order.restored(restored, now.wall);
            lines.extend(news.map(|reason| notice::not_restored(&entry.order, &reason, now.wall)));
            if *restored == Restored::Written {
                lines.push(notice::restored(&entry.order));
                self.actions.push(Action::Reload);
            }
        }
        if answer.unusable.is_some() && answer.unusable != self.unusable {
            lines.extend(answer.unusable.as_deref().map(notice::dir_unusable));
        }
        self.unusable = answer.unusable;
        self.log(lines);
    }

    fn ordered(&mut self, index: usize, answer: Answer, now: Now) {
        let entry = &mut self.entries[index];
        entry.looked_at = None;
        if answer.held {
            entry.order.hold();
        }
        match answer.outcome {
            Some(Outcome::Issued) => {
                let problem = entry.order.succeeded(now.wall);
                let line = notice::present(&entry.order);
                self.log(line);
                self.actions.push(Action::Reload);
                if let Some(problem) = problem {
                    self.failed(index, problem, None, now);
                }
            }
            Some(Outcome::Busy) => {
                let line = (!entry.order.is_busy).then(|| notice::busy(&entry.order, &self.folder));
                entry.order.put_off(now.wall);
                self.log(line);
            }
            Some(Outcome::Failed { message, retry_after }) => self.failed(index, message, retry_after, now),
            None => self.failed(
                index,
                "the process that orders it has not reported a result".into(),
                None,
                now,
            ),
        }
    }

    fn failed(&mut self, index: usize, reason: String, retry_after: Option<f64>, now: Now) {
        let entry = &mut self.entries[index];
        entry.order.failed(reason, retry_after, now);
        entry.looked_at = None; // the failure is written at once
        let line = notice::failed(&entry.order, now.wall);
        self.log([line]);
    }

    fn log(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.actions.extend(lines.into_iter().map(Action::Log));
    }
}

impl Entry {
    fn new(settings: OrderSettings) -> Entry {
        Entry {
            order: Order::new(settings),
            asked: None,
            looked_at: None,
            is_fresh: false,
            is_told: false,
        }
    }

    /// True if a check is under way that is not late.
    fn is_awaited(&self, now: Moment) -> bool {
        let is_look = |asked: &&Asked| asked.task == Task::Look && now < asked.since + LOOK_PATIENCE;
        self.asked.as_ref().filter(is_look).is_some()
    }
}

impl Task {
    /// The time limit for a result. The ordering program has its own limits, which are shorter (`Program::LIMIT`,
    /// `Question::LIMIT`).
    fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Task::Look => 60,
            Task::Order => 12 * 60,
            Task::Ask => 2 * 60,
        })
    }
}
