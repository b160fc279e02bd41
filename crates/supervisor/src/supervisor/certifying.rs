//! Certificates from an authority: has the current spawner do the scheduled tasks, and stores the certificates' texts.

use super::acting::Acting;
use crate::acme::message::{Answer, Orders, Task, Text, Wish};
use crate::acme::{Action, Event, Now, Renewals};
use crate::hot_restart_state::{Luggage, Package};
use crate::link::Message;
use crate::machine::{Moment, ProcessId, ServerStatus};
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{to_raw_value, RawValue};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// The schedule, and its related state.
#[derive(Default)]
pub(super) struct Certifying {
    renewals: Renewals,
    /// The spawner that has named these orders. Other processes do not know them.
    clerk: Option<ProcessId>,
    /// Tasks without a result: their numbers, the processes that have them, and the keys of their orders.
    tasks: BTreeMap<u64, (ProcessId, String)>,
    /// Texts of certificates with their keys, in files in memory.
    texts: BTreeMap<(String, Text), OwnedFd>,
}

impl Certifying {
    /// The orders, for `/status`.
    pub(super) fn report(&self) -> Option<Box<RawValue>> {
        let report = self.renewals.report();
        (!report.is_empty()).then(|| to_raw_value(&report).ok()).flatten()
    }

    /// Describes the state for another program. Adds the texts to `luggage`.
    ///
    /// # Errors
    /// If descriptors are short.
    pub(super) fn save(&self, luggage: &mut Luggage) -> io::Result<Box<RawValue>> {
        let texts = self.texts.iter().map(|((key, text), file)| {
            let file = luggage.add(file.as_fd())?;
            Ok((key.clone(), *text, file))
        });
        let texts = texts.collect::<io::Result<_>>()?;
        Ok(to_raw_value(&Saved {
            renewals: self.renewals.clone(),
            clerk: self.clerk,
            tasks: self.tasks.clone(),
            texts,
        })?)
    }

    /// Restores the state that another program has described. Starts anew if it cannot be read: the files of the orders
    /// contain most of it.
    pub(super) fn restore(saved: &RawValue, package: &Package, now: Moment) -> Certifying {
        let Ok(saved) = serde_json::from_str::<Saved>(saved.get()) else {
            return Certifying::default();
        };
        let texts = saved.texts.into_iter();
        let mut renewals = saved.renewals;
        renewals.resume(now);
        Certifying {
            renewals,
            clerk: saved.clerk,
            tasks: saved.tasks,
            texts: texts
                .filter_map(|(key, text, file)| Some(((key, text), package.descriptor(file).ok()?)))
                .collect(),
        }
    }
}

/// The schedule for another program.
#[derive(Deserialize, Serialize)]
struct Saved {
    renewals: Renewals,
    clerk: Option<ProcessId>,
    tasks: BTreeMap<u64, (ProcessId, String)>,
    /// The keys, the kinds and the descriptors of the texts.
    texts: Vec<(String, Text, usize)>,
}

impl Certifying {
    /// A new current spawner names its orders. The message may be late, so that this spawner is no longer the current
    /// one.
    pub(super) fn hear_orders(&mut self, spawner: ProcessId, message: Message, acting: &mut Acting) {
        if acting.machine.current_spawner() != Some(spawner) {
            return;
        }
        let file = message.descriptors.into_iter().next();
        let orders: Orders = file.and_then(|file| read(file).ok()).unwrap_or_default();
        self.clerk = Some(spawner);
        self.schedule(Event::Orders(orders), acting);
        let keys: Vec<&str> = self.renewals.keys().collect();
        self.texts.retain(|(key, _), _| keys.contains(&key.as_str()));
    }

    /// A process has finished a task.
    pub(super) fn hear_task_done(&mut self, message: Message, acting: &mut Acting) {
        let Some((number, (_, key))) = message.number(0).and_then(|number| self.tasks.remove_entry(&number)) else {
            return;
        };
        let json = message.fields[1..].concat();
        let mut answer: Answer = serde_json::from_slice(&json).unwrap_or_default();
        let text = message.descriptors.into_iter().next(); // missing if descriptors are short
        answer.held &= text.is_some();
        let name = (key, if answer.held { Text::Held } else { Text::Used });
        let is_new = answer.facts.as_ref().is_some_and(|facts| facts.certificate.is_some());
        match text {
            Some(text) => _ = self.texts.insert(name, text),
            None if is_new => _ = self.texts.remove(&name),
            None => {}
        }
        self.schedule(Event::Answered(number, Box::new(answer)), acting);
    }

    /// A process has ended. `planned`: it was asked to end.
    pub(super) fn lose_tasks(&mut self, name: ProcessId, planned: bool, acting: &mut Acting) {
        let tasks = self.tasks.iter();
        let lost: Vec<u64> = tasks
            .filter(|(_, (process, _))| *process == name)
            .map(|(number, _)| *number)
            .collect();
        for number in lost {
            self.tasks.remove(&number);
            self.schedule(Event::Lost { number, planned }, acting);
        }
    }

    /// Starts the tasks that are due. A spawner of another version gets none.
    pub(super) fn tend(&mut self, acting: &mut Acting) {
        let serves = matches!(acting.machine.state(), ServerStatus::Ready | ServerStatus::Restarting);
        let clerk = self
            .clerk
            .filter(|clerk| acting.machine.current_spawner() == Some(*clerk));
        let child = clerk.and_then(|clerk| acting.fleet.children.find(clerk));
        let is_there = child.is_some_and(|child| !child.is_foreign);
        let serves = serves && is_there;
        self.schedule(Event::Tick { serves }, acting);
    }

    fn schedule(&mut self, event: Event, acting: &mut Acting) {
        let now = time_of_event(acting.now);
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.renewals.step(now, event) {
                match action {
                    Action::Ask {
                        number,
                        key,
                        task,
                        wish,
                        text,
                    } => {
                        if !self.ask_clerk(number, &key, task, &wish, text, acting) {
                            events.push_back(Event::Lost { number, planned: true });
                        }
                    }
                    Action::Reload => _ = acting.reload_certificates(),
                    Action::Log(line) => acting.log.write(line.level, line.event, &line.text),
                }
            }
        }
    }

    /// Sends a task. Returns false if the spawner accepts no message.
    fn ask_clerk(&mut self, number: u64, key: &str, task: Task, wish: &Wish, text: Text, acting: &Acting) -> bool {
        let Some(clerk) = self.clerk else {
            return false;
        };
        let (Ok(json), Some(child)) = (serde_json::to_vec(wish), acting.fleet.children.find(clerk)) else {
            return false;
        };
        let text = self.texts.get(&(key.to_string(), text));
        let descriptors: Vec<_> = text.iter().map(|text| text.as_fd()).collect();
        let number_text = number.to_string();
        let fields = [number_text.as_bytes(), task.name().as_bytes(), key.as_bytes(), &json];
        let sent = child.send("acme", &fields, &descriptors);
        if sent {
            self.tasks.insert(number, (clerk, key.to_string()));
        }
        sent
    }
}

fn time_of_event(running: Moment) -> Now {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 4];
    let _ = SystemRandom::new().fill(&mut random);
    Now {
        wall: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
        running,
        random: f64::from(u32::from_ne_bytes(random)) / f64::from(u32::MAX),
    }
}

/// Reads JSON from a file in memory.
fn read<T: DeserializeOwned>(file: OwnedFd) -> io::Result<T> {
    let (mut file, mut text) = (File::from(file), Vec::new());
    file.rewind()?; // the writer has left the offset at the end
    file.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
