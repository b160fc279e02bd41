//! Starts processes and exchanges messages with them.

use crate::background::Background;
use crate::certificates::Certificates;
use crate::children::{Child, Children, Place};
use crate::configuration::Configuration;
use crate::link::{Link, Message, PART};
use crate::listeners::Listener;
use crate::machine::{End, Event, Generation, ProcessId, Refork, RestartKind, SpawnKind};
use crate::spawning::{self, Started};
use crate::versions::versions;
use crate::wording::shortage;
use fairlead_shared_memory::SharedMemory;
use rustix::process::{kill_process, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

/// No time, in a message.
const NO_TIME: &[u8] = b"0";

/// The processes of the server, and the memory that they share.
pub struct Fleet {
    /// The processes.
    pub children: Children,
    memory: SharedMemory,
    /// True if workers of another version can send connections and clients to the workers of this one.
    pub predecessors_move: bool,
    spawns: Background<(ProcessId, io::Result<Started>)>,
}

impl Fleet {
    /// A fleet without processes.
    ///
    /// # Errors
    /// If descriptors are short.
    pub fn new(memory: SharedMemory) -> io::Result<Fleet> {
        Ok(Fleet {
            children: Children::default(),
            memory,
            predecessors_move: false,
            spawns: Background::new("fairlead spawns")?,
        })
    }

    /// The memory that the workers share.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// The descriptors to poll.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.children
            .iter()
            .flat_map(Child::descriptors)
            .chain([self.spawns.as_fd()])
    }

    // --- spawners

    /// Starts a spawner; [`Fleet::started`] reports its process.
    ///
    /// # Errors
    /// If descriptors, threads or memory are short.
    pub fn start_spawner(
        &mut self,
        name: ProcessId,
        generation: Generation,
        kind: SpawnKind,
        from: &Configuration,
        certificates: &Certificates,
    ) -> io::Result<()> {
        let (ours, theirs) = Link::pair()?;
        if !inherit(&ours, generation, kind, from, &self.memory) {
            return Err(io::Error::other("the link accepts no message"));
        }
        if kind == SpawnKind::Replacement {
            certificates.each(|[key, ..], bytes| _ = ours.send("kept", &[key], &[bytes]));
        }
        ours.send("kept_end", &[], &[]);
        let command = from.settings.command.clone();
        self.spawns
            .run(move || (name, spawning::start(&command, theirs.into_socket())))?;
        self.children.add(Child::spawner(name, generation, ours));
        Ok(())
    }

    /// The results of the spawner starts since the last call.
    pub fn started(&mut self) -> Vec<Event> {
        let results = self.spawns.results();
        results
            .into_iter()
            .map(|(name, result)| self.started_one(name, result))
            .collect()
    }

    fn started_one(&mut self, name: ProcessId, result: io::Result<Started>) -> Event {
        match result {
            Ok(Started { pid, pidfd }) => {
                match self.children.get(name) {
                    Some(child) => child.is_process(pid, pidfd),
                    None => drop(kill_process(pid, Signal::KILL)), // the machine has given it up meanwhile
                }
                Event::SpawnerStarted(name)
            }
            Err(error) => {
                self.children.forget(name);
                Event::SpawnerNotStarted(name, shortage(&error))
            }
        }
    }

    // --- workers

    /// Has a spawner fork a worker, or a sole process serve.
    ///
    /// # Errors
    /// A sentence, if descriptors are short or the spawner accepts no message.
    pub fn fork(&mut self, spawner: ProcessId, worker: ProcessId, place: Place, is_sole: bool) -> Result<(), String> {
        self.memory.bus().add(place.slot).map_err(|error| shortage(&error))?;
        self.memory.reset(place.slot);
        let mailbox = self.memory.bus().descriptors(place.slot);
        let mailbox: Vec<BorrowedFd<'_>> = mailbox.into_iter().flatten().collect();
        let fields = [place.index.to_string(), place.slot.to_string()];
        let fields = fields.each_ref().map(String::as_bytes);
        let parent = self.children.get(spawner).ok_or("the spawner has ended")?;
        if is_sole {
            parent.worker = Some(worker);
            parent.place = Some(place);
            return parent
                .send("serve", &fields, &mailbox)
                .then_some(())
                .ok_or_else(|| "its process accepts no message".into());
        }
        let generation = parent.generation;
        let (ours, theirs) = Link::pair().map_err(|error| shortage(&error.into()))?;
        let descriptors: Vec<BorrowedFd<'_>> = [theirs.as_fd()].into_iter().chain(mailbox).collect();
        if !parent.send("fork", &fields, &descriptors) {
            return Err("its spawner accepts no message".into());
        }
        self.children.add(Child::worker(worker, place, generation, ours));
        Ok(())
    }

    /// Asks a process to end. `how`: drain, end or stop. A process without a running loop gets a signal instead.
    pub fn end(&mut self, name: ProcessId, how: &str, fields: &[&[u8]]) {
        let Some(child) = self.children.get(name) else { return };
        child.is_ending = true;
        let is_predecessor = child.is_foreign && child.spawner.is_none() && how == "drain";
        let told = match is_predecessor {
            true if self.predecessors_move => {
                self.memory.scoreboard().set_predecessors(true);
                let long = fields.first().unwrap_or(&NO_TIME);
                child.send(
                    how,
                    &[long, b"connections", b"clients"],
                    &self.memory.queues().outlets(),
                )
            }
            // A lost worker still counts in the previous scoreboard, which this program cannot read: other workers would
            // pass connections to it.
            true => child.send("end", &[NO_TIME], &[]),
            false => child.send(how, fields, &[]),
        };
        if !(told && child.ready) {
            child.signal(if how == "stop" { Signal::QUIT } else { Signal::TERM });
        }
    }

    /// Asks a worker to become the spawner of this generation.
    pub fn promote(&mut self, name: ProcessId, generation: Generation, refork: Refork, from: &Configuration) {
        let Some(child) = self.children.get(name) else { return };
        for part in from.listeners.chunks(PART) {
            let descriptors: Vec<BorrowedFd<'_>> = part.iter().map(AsFd::as_fd).collect();
            child.send("listeners", &[], &descriptors);
        }
        let number = generation.to_string();
        let time = from.settings.limits.patience.as_secs().to_string();
        child.send(
            "promote",
            &[number.as_bytes(), refork.name().as_bytes(), time.as_bytes()],
            &[],
        );
        child.promotion = Some(generation);
    }

    /// The worker is now a spawner, and its index is free.
    pub fn promoted(&mut self, name: ProcessId) {
        let Some(child) = self.children.get(name) else { return };
        child.spawner = Some(name);
        child.worker = None;
        child.generation = child.promotion.take().unwrap_or(child.generation);
        if let Some(place) = child.place.take() {
            self.memory.reset(place.slot);
        }
    }

    /// Sends a message to one process.
    pub fn tell(&mut self, name: ProcessId, kind: &str, fields: &[&[u8]]) -> bool {
        self.children
            .find(name)
            .is_some_and(|child| child.send(kind, fields, &[]))
    }

    /// Sends a message to all processes.
    pub fn tell_all(&self, kind: &str, fields: &[&[u8]], descriptors: &[BorrowedFd<'_>]) {
        for child in self.children.iter() {
            child.send(kind, fields, descriptors);
        }
    }

    /// Tells the native threads of a worker that it is going to be killed.
    pub fn give_up(&mut self, name: ProcessId) {
        let child = self.children.find(name).filter(|child| !child.is_foreign);
        if let Some(place) = child.and_then(|child| child.place) {
            self.memory.scoreboard().slot(place.slot).give_up();
        }
    }

    // --- events

    /// The messages that have arrived, each with the name of its sender.
    pub fn messages(&mut self) -> Vec<(ProcessId, Message)> {
        let mut heard = Vec::new();
        for child in self.children.iter_mut() {
            if let Some(name) = child.names().next() {
                heard.extend(child.messages().into_iter().map(|message| (name, message)));
            }
        }
        heard
    }

    /// The workers with a heartbeat since the last call, and workers of another version, which use another scoreboard.
    /// A resident counts as alive while this process runs: both end together.
    pub fn beats(&mut self) -> Vec<Event> {
        let board = self.memory.scoreboard();
        let mut events = Vec::new();
        for child in self.children.iter_mut() {
            if let (true, Some(spawner)) = (child.is_resident(), child.spawner) {
                events.push(Event::SpawnerAlive(spawner));
            }
            let (Some(worker), Some(place)) = (child.worker, child.place) else {
                continue;
            };
            if child.is_foreign {
                events.push(Event::WorkerAlive(worker));
                continue;
            }
            let beat = board.slot(place.slot).beat.load(Relaxed);
            let is_new = beat != 0 && beat != child.beat;
            child.beat = beat;
            if is_new || child.is_resident() {
                events.push(Event::WorkerAlive(worker));
            }
        }
        events
    }

    /// Returns an ended process and its names. Its last messages must have been read. `None` if it was forgotten
    /// meanwhile.
    pub fn ended(&mut self, name: ProcessId, end: End) -> Option<(Ended, Vec<ProcessId>)> {
        let child = self.children.find(name)?;
        let (names, place) = (child.names().collect(), child.place);
        let ended = Ended {
            pid: child.pid(),
            index: place.map(|place| place.index),
            end,
        };
        if let (Some(place), false) = (place, child.is_foreign) {
            self.memory.reset(place.slot);
        }
        Some((ended, names))
    }

    /// True if no process is being started.
    pub fn is_idle(&self) -> bool {
        self.spawns.is_idle()
    }

    /// Maintains the resources that workers share: call this once a second. `restarts`: a restart runs.
    pub fn tend(&self, restarts: bool) {
        if !restarts && !self.children.iter().any(|child| child.is_foreign) {
            self.memory.scoreboard().set_predecessors(false);
            if let Some(history) = self.memory.bus().history() {
                history.set_joint(false);
            }
        }
        self.memory.bus().introduce();
        self.memory.scoreboard().ticket_keys.tend();
    }
}

/// An ended process, for the hooks of its spawner.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its id, if it was known.
    pub pid: Option<i32>,
    /// Its index, if it was a worker.
    pub index: Option<usize>,
    /// Its exit status or signal.
    pub end: End,
}

/// The first message to a spawner that was started as a program.
fn inherit(link: &Link, generation: Generation, kind: SpawnKind, from: &Configuration, memory: &SharedMemory) -> bool {
    let kind = match kind {
        SpawnKind::Restart(RestartKind::Hot) => "hot",
        SpawnKind::Restart(_) => "phased",
        SpawnKind::Replacement => "replacement",
    };
    let control = from.settings.control.as_ref();
    let texts = [
        generation.to_string(),
        versions().protocol.to_string(),
        versions().layout.clone(),
        kind.to_string(),
        std::process::id().to_string(),
        control.map_or_else(String::new, |control| control.url.clone()),
        control.and_then(|control| control.token.clone()).unwrap_or_default(),
    ];
    let fields: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    link.send("inherit", &fields, &memory.descriptors())
        && from.listeners.chunks(PART).all(|part| send_listeners(link, part))
}

/// Sends listeners, each with its binding.
fn send_listeners(link: &Link, listeners: &[Listener]) -> bool {
    let bindings: Vec<&[u8]> = listeners
        .iter()
        .map(|listener| listener.settings.binding.bytes())
        .collect();
    let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    link.send("listeners", &bindings, &descriptors)
}

/// A pipe: its read end, and the write end for a process.
///
/// # Errors
/// If descriptors are short.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = fairlead_system::descriptors::pipe(true)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_system::messages::{receive, Received};

    /// Any settings.
    fn configuration() -> Configuration {
        let settings = serde_json::from_str(include_str!("../tests/hot_restart/settings.json")).expect("settings");
        Configuration {
            settings,
            listeners: Vec::new(),
            control: None,
            health: None,
            publishing: None,
        }
    }

    /// The bytes of the next message.
    fn bytes(link: &Link) -> Vec<u8> {
        let mut bytes = vec![0; 1000];
        let Received::Message(count, _) = receive(link, &mut bytes) else {
            panic!("there is no message");
        };
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn the_first_message_to_a_spawner_is_as_every_version_reads_it() {
        let (ours, theirs) = Link::pair().expect("a pair");
        let memory = SharedMemory::new(0).expect("memory");
        let kind = SpawnKind::Restart(RestartKind::Hot);
        assert!(inherit(&ours, 7, kind, &configuration(), &memory));
        let (protocol, layout, pid) = (versions().protocol, &versions().layout, std::process::id());
        let expected = format!("inherit\x007\0{protocol}\0{layout}\0hot\0{pid}\0\0");
        assert_eq!(String::from_utf8_lossy(&bytes(&theirs)), expected);
    }

    #[test]
    fn a_worker_is_asked_to_end_as_every_version_understands_it() {
        let mut fleet = Fleet::new(SharedMemory::new(0).expect("memory")).expect("a fleet");
        let (ours, theirs) = Link::pair().expect("a pair");
        fleet
            .children
            .add(Child::worker(2, Place { index: 0, slot: 0 }, 1, ours));
        fleet.end(2, "drain", &[]);
        assert_eq!(bytes(&theirs), b"drain");
        fleet.end(2, "end", &[b"1.5"]);
        assert_eq!(bytes(&theirs), b"end\x001.5");
        fleet.end(2, "stop", &[]);
        assert_eq!(bytes(&theirs), b"stop");
    }

    #[test]
    fn an_end_is_the_end_of_that_process_though_another_one_is_forgotten() {
        let mut fleet = Fleet::new(SharedMemory::new(0).expect("memory")).expect("a fleet");
        let [(first, one), (second, two)] = [1, 2].map(|_| Link::pair().expect("a pair"));
        fleet.children.add(Child::spawner(1, 1, first));
        let place = Place { index: 4, slot: 4 };
        fleet.children.add(Child::worker(2, place, 1, second));
        fleet.children.get(2).expect("the worker").kill();
        drop((one, two));
        let ends = fleet.children.note_ends();
        fleet.children.forget(1); // it could not be started
        let ended = ends.iter().filter_map(|(name, end)| fleet.ended(*name, *end));
        let ended: Vec<_> = ended.map(|(ended, names)| (ended.index, names)).collect();
        assert_eq!(ended, [(Some(4), vec![2])]);
    }

    #[test]
    fn a_worker_that_has_become_a_spawner_has_no_place() {
        let mut fleet = Fleet::new(SharedMemory::new(0).expect("memory")).expect("a fleet");
        let (ours, theirs) = Link::pair().expect("a pair");
        let place = Place { index: 0, slot: 3 };
        fleet.children.add(Child::worker(2, place, 1, ours));
        fleet.children.get(2).expect("the worker").promotion = Some(5);
        fleet.promoted(2);
        fleet.memory.scoreboard().slot(3).beat.store(7, Relaxed); // another worker has the place now
        drop(theirs);
        let child = fleet.children.find(2).expect("the spawner");
        assert_eq!((child.spawner, child.worker, child.generation), (Some(2), None, 5));
        let (ended, _) = fleet.ended(2, End::Exited(0)).expect("its end");
        assert_eq!(ended.index, None);
        assert_eq!(fleet.memory.scoreboard().slot(3).beat.load(Relaxed), 7);
    }

    #[test]
    fn a_worker_of_another_version_drains_alone_and_counts_as_alive() {
        let mut fleet = Fleet::new(SharedMemory::new(0).expect("memory")).expect("a fleet");
        let (ours, theirs) = Link::pair().expect("a pair");
        fleet
            .children
            .add(Child::worker(2, Place { index: 0, slot: 0 }, 1, ours));
        assert_eq!(fleet.beats(), []);
        fleet.children.get(2).expect("the worker").is_foreign = true;
        assert_eq!(fleet.beats(), [Event::WorkerAlive(2)]);
        fleet.end(2, "drain", &[]);
        assert_eq!(bytes(&theirs), b"end\x000");
    }

    #[test]
    fn a_worker_of_another_version_that_can_drains_into_the_queues_of_this_one() {
        let mut fleet = Fleet::new(SharedMemory::new(0).expect("memory")).expect("a fleet");
        let (ours, theirs) = Link::pair().expect("a pair");
        let mut worker = Child::worker(2, Place { index: 0, slot: 0 }, 1, ours);
        worker.is_foreign = true;
        fleet.children.add(worker);
        fleet.predecessors_move = true;
        fleet.end(2, "drain", &[b"30"]);
        let mut text = [0; 100];
        let Received::Message(count, descriptors) = receive(&theirs, &mut text) else {
            panic!("there is no message");
        };
        assert_eq!(text[..count], *b"drain\x0030\0connections\0clients");
        assert_eq!(descriptors.len(), 2);
    }

    #[test]
    fn the_history_is_joint_until_the_last_worker_of_another_version_has_ended() {
        let former = SharedMemory::with_history(0, 1 << 20).expect("memory");
        let history = former.descriptors()[1].try_clone_to_owned().expect("a descriptor");
        let mut fleet = Fleet::new(SharedMemory::beside(history, 0).expect("memory")).expect("a fleet");
        let is_joint = || former.bus().history().expect("a history").is_joint();
        assert!(is_joint());
        fleet.tend(true);
        assert!(is_joint(), "a restart runs");
        let (ours, _theirs) = Link::pair().expect("a pair");
        let mut worker = Child::worker(2, Place { index: 0, slot: 0 }, 1, ours);
        worker.is_foreign = true;
        fleet.children.add(worker);
        fleet.tend(false);
        assert!(is_joint(), "a worker is left");
        fleet.children.forget(2);
        fleet.tend(false);
        assert!(!is_joint());
    }
}
