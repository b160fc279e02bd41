//! A machine, and a model of the processes around it.

use fairlead_supervisor::machine::{
    Action, Command, End, Event, FirstSpawner, Generation, Machine, Moment, ProcessId, RecycleReason, Refork, Server,
    Timer,
};
use fairlead_supervisor::settings::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time of every state: machines that differ only in time are equal.
pub(crate) const BASE: Moment = Duration::from_secs(1000);

/// One start of a server, and its possible events.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Its title in the output.
    pub(crate) title: &'static str,
    /// Workers of the first configuration.
    pub(crate) workers: usize,
    /// Workers of the configuration that new code reads.
    pub(crate) next: usize,
    /// True if new code has another version.
    pub(crate) other_version: bool,
    /// The possible commands.
    pub(crate) commands: Vec<Command>,
    /// The limit that workers may use up, instead of a command.
    pub(crate) recycles: Option<RecycleReason>,
    /// True if workers get warm, so that a refork begins, instead of a command.
    pub(crate) warms: bool,
    /// Number of commands.
    pub(crate) asked: u8,
    /// Number of possible faults.
    pub(crate) faults: u8,
    /// True if replaced workers have a long time for their requests, and use it.
    pub(crate) long_drains: bool,
    /// The missing deadline.
    pub(crate) without: Option<Timer>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) phase: Phase,
    /// The process that forks it, or that is the same process.
    pub(crate) parent: Option<ProcessId>,
    /// True for the serving half of a sole process.
    pub(crate) half: bool,
    /// True if it was asked to end.
    pub(crate) asked: bool,
    pub(crate) hung: bool,
    /// True if it has a long request, and time for it.
    pub(crate) long: bool,
    /// True if an automatic refork has given it the time.
    pub(crate) patient: bool,
    /// The rest of that time.
    pub(crate) patience: Duration,
    /// The limit that it has used up. A stuck worker does not finish its drain.
    pub(crate) spent: Option<RecycleReason>,
}

/// The progress of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Unborn,
    Loading,
    Ready,
    Forking,
    Booting,
    Failing,
    Serving,
    Promoting,
    Dead(End),
}

/// The state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    pub(crate) adopting: Option<Generation>,
    /// The program to be executed.
    execution: Option<Execution>,
    /// The machine of the previous program.
    former: Option<Box<Machine>>,
    /// True if the other version supervises for good.
    renewed: bool,
    pub(crate) faults: u8,
    pub(crate) asked: u8,
    /// The time by which the server must have ended.
    pub(crate) end_by: Option<Moment>,
    pub(crate) finished: bool,
    /// True if only automatic reforks replace workers.
    pub(crate) only_warms: bool,
}

/// A possible step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// A process takes its next step.
    Answer(ProcessId),
    /// The loop has adopted a configuration.
    Adopt(Result<(), String>),
    /// A hung process continues.
    Wake(ProcessId),
    /// A process has a fault.
    Fault(ProcessId, Fault),
    /// The loop never reports a result.
    LoseAdoption,
    /// The program of another version takes over, or does not.
    Reexecute(Result<(), String>),
    /// The previous program takes over again.
    Return,
    /// The other program is not executed, without a report.
    LoseExecution,
    /// A worker has used up a limit.
    Spend(ProcessId, RecycleReason),
    /// A worker has served `refork_after` requests.
    Warm(ProcessId),
    /// A command arrives.
    Ask(Command),
    /// The long request of a worker ends.
    Finish(ProcessId),
    /// Only time passes, up to the next deadline.
    Time,
}

impl Move {
    /// Returns true if the step needs no fault, no command, and no process that recovers by itself.
    pub(crate) fn calm(&self) -> bool {
        matches!(
            self,
            Move::Answer(_) | Move::Adopt(Ok(())) | Move::Reexecute(Ok(())) | Move::Return | Move::Time
        )
    }
}

/// A possible fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Die,
    Hang,
    Fail,
    Repeat,
}

/// Limits that are short, and differ from each other.
fn limits(workers: usize, scenario: &Scenario) -> Limits {
    Limits {
        workers,
        long_drain: Duration::from_secs(if scenario.long_drains { 23 } else { 0 }),
        shutdown_timeout: Duration::from_secs(7),
        drain_delay: Duration::from_secs(1),
        worker_timeout: Duration::from_secs(10),
        worker_boot_timeout: Duration::from_secs(13),
        load_timeout: Duration::from_secs(31),
        settle_time: Duration::from_secs(2),
        patience: Duration::from_secs(41),
        promotion_timeout: Duration::from_secs(17),
    }
}

/// Time limit after TERM: workers, then spawners, each asked, killed and given up.
const END: Duration = Duration::from_secs(1 + 7 + 5 + 5 + 7 + 5 + 5);

impl World {
    pub(crate) fn new(scenario: &Scenario) -> World {
        let mut machine = Machine::new(limits(scenario.workers, scenario), FirstSpawner { started: BASE });
        if let Some(timer) = scenario.without {
            machine = machine.without(timer);
        }
        let first = Process {
            phase: Phase::Loading,
            parent: None,
            half: false,
            asked: false,
            hung: false,
            long: false,
            patient: false,
            patience: Duration::ZERO,
            spent: None,
        };
        World {
            machine,
            processes: BTreeMap::from([(FirstSpawner::ID, first)]),
            adopting: None,
            execution: None,
            former: None,
            renewed: false,
            faults: scenario.faults,
            asked: scenario.asked,
            end_by: None,
            finished: false,
            only_warms: scenario.warms && scenario.commands.is_empty() && scenario.recycles.is_none(),
        }
    }

    /// The possible steps. The first one is the step without faults.
    pub(crate) fn moves(&self, scenario: &Scenario) -> Vec<Move> {
        if self.finished {
            return Vec::new();
        }
        let mut moves: Vec<Move> = self
            .processes
            .keys()
            .filter(|id| self.answers(**id))
            .map(|id| Move::Answer(*id))
            .collect();
        if self.adopting.is_some() {
            moves.push(Move::Adopt(Ok(())));
        }
        moves.extend(self.execution.map(|execution| match execution {
            Execution::Other(_) => Move::Reexecute(Ok(())),
            Execution::Former => Move::Return,
        }));
        if moves.is_empty() && self.machine.deadline().is_some() {
            moves.push(Move::Time);
        }
        moves.extend(
            self.processes
                .iter()
                .filter(|(_, one)| one.hung && !one.dead())
                .map(|(id, _)| Move::Wake(*id)),
        );
        let long = self
            .processes
            .iter()
            .filter(|(_, one)| one.long && !one.hung && !one.dead());
        moves.extend(long.map(|(id, _)| Move::Finish(*id)));
        if let (Some(reason), true) = (scenario.recycles, self.asked > 0) {
            let fresh = |one: &Process| one.phase == Phase::Serving && !one.hung && one.spent.is_none();
            let workers = self.processes.iter().filter(|(_, one)| fresh(one));
            moves.extend(workers.map(|(id, _)| Move::Spend(*id, reason)));
        }
        if scenario.warms && self.asked > 0 && self.machine.at_rest() {
            moves.extend(self.machine.workers().map(|worker| Move::Warm(worker.id)));
        }
        if self.asked > 0 {
            moves.extend(scenario.commands.iter().cloned().map(Move::Ask));
        }
        if self.faults > 0 {
            self.add_faults(&mut moves);
        }
        moves
    }

    /// Returns true if a process is about to report an event without a request.
    fn answers(&self, id: ProcessId) -> bool {
        let process = &self.processes[&id];
        if process.hung {
            return false;
        }
        let parent = process.parent.and_then(|parent| self.processes.get(&parent));
        match process.phase {
            Phase::Serving | Phase::Promoting if process.spent == Some(RecycleReason::Stuck) => false,
            Phase::Ready | Phase::Serving => process.asked && !process.long,
            Phase::Promoting => !process.long,
            // The spawner forks it, unless the spawner hangs; a dead spawner closes the link.
            Phase::Forking => parent.is_none_or(|parent| !parent.hung),
            // The end of a sole process is reported for the worker first.
            Phase::Dead(_) => !self.processes.values().any(|one| one.parent == Some(id) && one.half),
            _ => true,
        }
    }

    fn add_faults(&self, moves: &mut Vec<Move>) {
        for (id, process) in &self.processes {
            let faults: &[Fault] = match process.phase {
                _ if process.hung => &[],
                Phase::Unborn => &[Fault::Fail],
                Phase::Loading | Phase::Booting => &[Fault::Die, Fault::Hang, Fault::Fail],
                Phase::Forking => &[Fault::Hang, Fault::Fail],
                Phase::Ready | Phase::Serving => &[Fault::Die, Fault::Hang, Fault::Repeat],
                Phase::Promoting => &[Fault::Die, Fault::Hang, Fault::Fail],
                Phase::Failing => &[Fault::Hang],
                Phase::Dead(End::Killed(9)) => &[Fault::Hang],
                Phase::Dead(_) => &[],
            };
            // A sole process is one process with two names.
            let twin =
                process.parent.is_none() && self.processes.values().any(|one| one.parent == Some(*id) && one.half);
            if !twin {
                moves.extend(faults.iter().map(|fault| Move::Fault(*id, *fault)));
            }
        }
        if self.adopting.is_some() {
            moves.push(Move::Adopt(Err("the address is in use".to_owned())));
            moves.push(Move::LoseAdoption);
        }
        if self.execution.is_some() {
            moves.push(Move::LoseExecution);
        }
        if matches!(self.execution, Some(Execution::Other(_))) {
            moves.push(Move::Reexecute(Err("it cannot read the state".to_owned())));
        }
    }

    /// Takes a step. Returns the actions of the machine.
    pub(crate) fn make(&mut self, next: &Move, scenario: &Scenario) -> Vec<Action> {
        let event = match next {
            Move::Answer(id) => self.answer(*id, scenario),
            Move::Finish(id) => self.finish(*id),
            Move::Wake(id) => self.change(*id, |process| process.hung = false),
            Move::Fault(id, fault) => {
                self.faults -= 1;
                self.fault(*id, *fault, scenario)
            }
            Move::Adopt(result) => {
                if result.is_err() {
                    self.faults -= 1;
                }
                self.adopting
                    .take()
                    .map(|generation| Event::Adopted(generation, result.clone()))
            }
            Move::LoseAdoption => {
                self.faults -= 1;
                self.adopting = None;
                None
            }
            Move::Reexecute(result) => {
                if result.is_err() {
                    self.faults -= 1;
                }
                self.reexecute(result.clone(), scenario)
            }
            Move::Return => return self.come_back(scenario),
            Move::LoseExecution => {
                self.faults -= 1;
                self.execution = None;
                None
            }
            Move::Spend(id, reason) => {
                self.asked -= 1;
                self.change(*id, |process| process.spent = Some(*reason));
                Some(Event::Recycle(*id, *reason, String::new()))
            }
            Move::Warm(id) => {
                self.asked -= 1;
                Some(Event::Warm(*id))
            }
            Move::Ask(command) => {
                self.asked -= 1;
                Some(Event::Asked(command.clone()))
            }
            Move::Time => return self.pass_time(scenario),
        };
        let actions = event.map_or_else(Vec::new, |event| self.machine.step(BASE, event));
        self.act(&actions, scenario);
        self.normalize();
        actions
    }

    /// Healthy processes send a heartbeat; then the deadline passes.
    fn pass_time(&mut self, scenario: &Scenario) -> Vec<Action> {
        let Some(deadline) = self.machine.deadline() else {
            return Vec::new();
        };
        let now = deadline.max(BASE);
        let mut actions = Vec::new();
        for (id, process) in self.processes.clone() {
            let event = match process.phase {
                // The loop cannot see heartbeats of processes of another version.
                Phase::Serving if self.is_borrowed(id) => Event::WorkerAlive(id),
                _ if process.hung => continue,
                Phase::Ready => Event::SpawnerAlive(id),
                Phase::Serving | Phase::Promoting => Event::WorkerAlive(id),
                _ => continue,
            };
            actions.extend(self.machine.step(now, event));
        }
        for (id, process) in &self.processes {
            if let (Phase::Serving, Some(reason)) = (process.phase, process.spent) {
                actions.extend(self.machine.step(now, Event::Recycle(*id, reason, String::new())));
            }
        }
        actions.extend(self.machine.step(now, Event::Tick));
        self.end_by = self.end_by.map(|end_by| end_by.saturating_sub(now - BASE));
        for process in self.processes.values_mut() {
            process.patience = process.patience.saturating_sub(now - BASE);
        }
        self.act(&actions, scenario);
        self.normalize();
        actions
    }

    fn normalize(&mut self) {
        self.machine.rebase(BASE);
        let ends = matches!(self.machine.server(), Server::Draining | Server::Stopping);
        self.end_by = ends.then(|| self.end_by.unwrap_or(BASE + END));
    }

    fn change(&mut self, id: ProcessId, change: impl FnOnce(&mut Process)) -> Option<Event> {
        if let Some(process) = self.processes.get_mut(&id) {
            change(process);
        }
        None
    }

    /// The long request of a worker ends. A worker that drains has finished all of them then.
    fn finish(&mut self, id: ProcessId) -> Option<Event> {
        let process = self.processes.get_mut(&id)?;
        (process.long, process.patience) = (false, Duration::ZERO);
        process.asked.then_some(Event::Finished(id))
    }

    /// A process takes its next step.
    fn answer(&mut self, id: ProcessId, scenario: &Scenario) -> Option<Event> {
        let process = self.processes.get_mut(&id)?;
        match process.phase {
            Phase::Unborn => {
                process.phase = Phase::Loading;
                Some(Event::SpawnerStarted(id))
            }
            Phase::Loading if process.asked => self.die(id, End::Killed(15)),
            Phase::Loading => {
                process.phase = Phase::Ready;
                Some(self.ready(id, scenario))
            }
            Phase::Forking => self.fork(id),
            Phase::Booting if process.asked => self.die(id, End::Killed(15)),
            Phase::Booting => {
                process.phase = Phase::Serving;
                Some(Event::Booted(id))
            }
            Phase::Promoting => {
                process.phase = Phase::Ready;
                process.parent = None;
                Some(Event::Promoted(id))
            }
            Phase::Failing => self.die(id, End::Exited(1)),
            Phase::Ready | Phase::Serving => self.die(id, End::Exited(0)),
            Phase::Dead(end) => {
                self.processes.remove(&id);
                Some(Event::Ended(id, end))
            }
        }
    }

    fn fork(&mut self, id: ProcessId) -> Option<Event> {
        let process = &self.processes[&id];
        let parent = process.parent.and_then(|parent| self.processes.get(&parent));
        if parent.is_none_or(|parent| parent.phase != Phase::Ready) {
            return self.die(id, End::Unknown);
        }
        self.change(id, |process| process.phase = Phase::Booting);
        Some(Event::Forked(id))
    }

    /// The process ends. Its end is reported later.
    fn die(&mut self, id: ProcessId, end: End) -> Option<Event> {
        let sole = self.processes[&id].half;
        let twins: Vec<ProcessId> = match self.processes[&id].parent {
            Some(parent) if sole => vec![id, parent],
            _ => {
                let worker = self
                    .processes
                    .iter()
                    .find(|(_, one)| one.parent == Some(id) && one.half);
                worker.map(|(worker, _)| *worker).into_iter().chain([id]).collect()
            }
        };
        for twin in twins {
            self.change(twin, |process| {
                process.hung = false;
                process.phase = Phase::Dead(end);
            });
        }
        None
    }

    fn fault(&mut self, id: ProcessId, fault: Fault, scenario: &Scenario) -> Option<Event> {
        let process = self.processes.get_mut(&id)?;
        match fault {
            Fault::Die => self.die(id, End::Killed(11)),
            Fault::Hang => {
                process.hung = true;
                // A sole process that cannot be killed remains under both names.
                let twin = process.parent.filter(|_| process.half && process.dead());
                twin.and_then(|twin| self.change(twin, |process| process.hung = true))
            }
            Fault::Repeat if process.phase == Phase::Ready => Some(self.ready(id, scenario)),
            Fault::Repeat => Some(Event::Booted(id)),
            Fault::Fail => match process.phase {
                Phase::Unborn => {
                    self.processes.remove(&id);
                    Some(Event::SpawnerNotStarted(
                        id,
                        "Resource temporarily unavailable".to_owned(),
                    ))
                }
                Phase::Forking => {
                    self.processes.remove(&id);
                    Some(Event::NotForked(id, "Too many open files".to_owned()))
                }
                Phase::Loading => {
                    process.phase = Phase::Failing;
                    Some(Event::SpawnerFailed(id, "broken".to_owned()))
                }
                _ => {
                    process.phase = Phase::Failing;
                    Some(Event::BootFailed(id, "broken".to_owned()))
                }
            },
        }
    }

    fn ready(&self, id: ProcessId, scenario: &Scenario) -> Event {
        match scenario.other_version
            && self.former.is_none()
            && !self.renewed
            && self.generation_of(id).is_some_and(|number| number > 1)
        {
            true => Event::OtherVersionReady(id, "2".to_owned()),
            false => Event::SpawnerReady(id, self.limits_of(id, scenario)),
        }
    }

    // --- another version

    fn reexecute(&mut self, result: Result<(), String>, scenario: &Scenario) -> Option<Event> {
        let Some(Execution::Other(spawner)) = self.execution.take() else {
            return None;
        };
        let reason = match (result, self.machine.save()) {
            (Ok(()), Some(saved)) => {
                let other = Machine::take_over(&saved, self.machine.limits().clone(), BASE);
                let other = match scenario.without {
                    Some(timer) => other.without(timer),
                    None => other,
                };
                self.former = Some(Box::new(std::mem::replace(&mut self.machine, other)));
                return Some(Event::SpawnerReady(spawner, self.limits_of(spawner, scenario)));
            }
            (Ok(()), None) => "the restart is over".to_owned(),
            (Err(reason), _) => reason,
        };
        Some(Event::NotReexecuted(spawner, reason))
    }

    fn come_back(&mut self, scenario: &Scenario) -> Vec<Action> {
        self.execution = None;
        let (Some(former), Some((returned, reason))) = (self.former.take(), self.machine.giving_back()) else {
            return Vec::new();
        };
        self.machine = *former;
        self.machine.resume(BASE, &returned);
        let known = self.names();
        self.processes
            .retain(|id, process| known.contains(id) || !process.dead()); // an orphan, which is reaped
        let mut events: Vec<Event> = self
            .machine
            .newcomer()
            .map(|spawner| Event::NotReexecuted(spawner, reason))
            .into_iter()
            .collect();
        let gone = known.into_iter().filter(|id| !self.processes.contains_key(id));
        events.extend(gone.map(|id| Event::Ended(id, End::Unknown)));
        let mut actions = Vec::new();
        for event in events {
            let more = self.machine.step(BASE, event);
            self.act(&more, scenario);
            actions.extend(more);
        }
        self.normalize();
        actions
    }

    /// The names that the machine knows.
    fn names(&self) -> Vec<ProcessId> {
        let workers = self.machine.workers().map(|worker| worker.id);
        workers
            .chain(self.machine.spawners().map(|spawner| spawner.id))
            .collect()
    }

    fn is_borrowed(&self, worker: ProcessId) -> bool {
        let worker = self.machine.workers().find(|one| one.id == worker);
        worker.is_some_and(|worker| self.machine.borrows(worker.generation))
    }

    fn generation_of(&self, spawner: ProcessId) -> Option<Generation> {
        let spawner = self.machine.spawners().find(|one| one.id == spawner);
        spawner.map(|spawner| spawner.generation)
    }

    /// The configuration that a spawner has read.
    fn limits_of(&self, id: ProcessId, scenario: &Scenario) -> Limits {
        match self.generation_of(id) {
            Some(1) | None => limits(scenario.workers, scenario),
            Some(_) => limits(scenario.next, scenario),
        }
    }

    // --- the loop

    fn act(&mut self, actions: &[Action], scenario: &Scenario) {
        for action in actions {
            match action {
                Action::StartSpawner { spawner, .. } => {
                    let process = Process {
                        phase: Phase::Unborn,
                        parent: None,
                        half: false,
                        asked: false,
                        hung: false,
                        long: false,
                        patient: false,
                        patience: Duration::ZERO,
                        spent: None,
                    };
                    self.processes.insert(*spawner, process);
                }
                Action::Fork { spawner, worker, .. } => {
                    let sole = self.limits_of(*spawner, scenario).workers == 0;
                    let mut phase = if sole { Phase::Booting } else { Phase::Forking };
                    let mut hung = false;
                    // A sole process that hangs or has ended does so under its other name, too.
                    if let Some(parent) = self.processes.get_mut(spawner).filter(|_| sole) {
                        hung = std::mem::take(&mut parent.hung);
                        phase = if parent.dead() { parent.phase } else { phase };
                    }
                    let process = Process {
                        phase,
                        parent: Some(*spawner),
                        half: sole,
                        asked: false,
                        hung,
                        long: false,
                        patient: false,
                        patience: Duration::ZERO,
                        spent: None,
                    };
                    self.processes.insert(*worker, process);
                }
                Action::Drain(id, long) | Action::DrainPatiently(id, long) if !long.is_zero() => {
                    let patient = matches!(action, Action::DrainPatiently(..));
                    let patience = if patient { *long } else { Duration::ZERO };
                    self.change(*id, |process| {
                        (process.asked, process.long) = (true, true);
                        (process.patient, process.patience) = (patient, patience);
                    });
                }
                Action::Drain(id, _)
                | Action::DrainPatiently(id, _)
                | Action::EndWorker(id, _)
                | Action::StopWorker(id)
                | Action::EndSpawner(id) => {
                    self.change(*id, |process| {
                        process.asked |= process.phase != Phase::Unborn;
                        (process.long, process.patience) = (false, Duration::ZERO);
                    });
                }
                Action::Kill(id) => self.kill(*id),
                Action::Promote(id, _, refork) => {
                    self.change(*id, |process| {
                        process.phase = Phase::Promoting;
                        process.long = *refork == Refork::Automatic;
                    });
                }
                Action::Adopt(generation) => self.adopting = Some(*generation),
                Action::Revert(_) => self.adopting = None,
                Action::Reexecute(spawner) => self.execution = Some(Execution::Other(*spawner)),
                Action::Return => self.execution = Some(Execution::Former),
                Action::TellCurrent(_) if !self.machine.is_guest() => self.renewed |= self.former.take().is_some(),
                Action::Finish { .. } => self.finished = true,
                _ => {}
            }
        }
    }

    fn kill(&mut self, id: ProcessId) {
        match self.processes.get(&id).map(|process| process.phase) {
            None | Some(Phase::Unborn | Phase::Dead(_)) => {}
            Some(Phase::Forking) => {
                self.die(id, End::Unknown);
            }
            Some(_) => {
                self.die(id, End::Killed(9));
            }
        }
    }
}

/// The program to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Execution {
    /// The program of this spawner's version.
    Other(ProcessId),
    /// The previous program.
    Former,
}

impl Process {
    pub(crate) fn dead(&self) -> bool {
        matches!(self.phase, Phase::Dead(_))
    }
}
