//! The memory and the queues that the processes of a server share: the scoreboard, the waiting room and the mailboxes.
//!
//! The supervisor and its workers map the same file. Outside of the Ruby extension, only this crate has `unsafe` code:
//! it maps the file, which no safe interface can do.

mod memory_file;

use fairlead_engine::pubsub::{Bus, History};
use fairlead_engine::{Scoreboard, SharedQueues, CLIENT_FORMAT, SLOTS};
use memory_file::{MemoryFile, WordsFile};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The scoreboard, the waiting room and the mailboxes of one server. A process creates them, or adopts them by their
/// descriptors; forked processes inherit them.
pub struct SharedMemory {
    scoreboard: &'static Scoreboard,
    queues: Arc<SharedQueues>,
    bus: Arc<Bus>,
    /// The files in memory that hold the scoreboard and the history.
    file: OwnedFd,
    history_file: OwnedFd,
}

/// The history of a process that shares no memory.
///
/// # Errors
/// If `bytes` is too little, or memory is short.
pub fn own_history(bytes: usize) -> io::Result<History> {
    History::create(WordsFile::new("fairlead history", bytes)?.map()?, None)
}

impl SharedMemory {
    /// Number of descriptors of [`SharedMemory::descriptors`]: the scoreboard, the history, and the waiting room.
    pub const DESCRIPTORS: usize = 2 + SharedQueues::DESCRIPTORS;

    /// Creates the memory, with mailboxes for the first `workers` slots, and without a history. All slots are empty.
    ///
    /// # Errors
    /// If descriptors or memory are short.
    pub fn new(workers: usize) -> io::Result<SharedMemory> {
        SharedMemory::with_history(workers, 0)
    }

    /// The same, with a history of so many bytes; 0 for none.
    ///
    /// # Errors
    /// If descriptors or memory are short, or the history would be too small.
    pub fn with_history(workers: usize, history_bytes: usize) -> io::Result<SharedMemory> {
        let memory = MemoryFile::<Scoreboard>::new("fairlead scoreboard")?;
        let (scoreboard, file) = (memory.map()?, memory.into_file());
        let queues = SharedQueues::new(scoreboard)?;
        let words = WordsFile::new("fairlead history", history_bytes)?;
        let history = match words.is_empty() {
            true => None,
            false => Some(History::create(words.map()?, Some(words.copy()?))?),
        };
        let bus = Bus::new(scoreboard, workers)?.with_history(history.map(Arc::new));
        Ok(SharedMemory::of([file, words.into_file()], scoreboard, queues, bus))
    }

    /// Creates the memory for workers of this release beside the workers of another one, which use `history`. If it has the
    /// format of this release, both use it, and it carries all publications until [`History::set_joint`] says that one of them
    /// is alone. Otherwise this release has its own history of so many bytes.
    ///
    /// # Errors
    /// As above.
    pub fn beside(history: OwnedFd, history_bytes: usize) -> io::Result<SharedMemory> {
        let words = WordsFile::adopt(history)?;
        let shared = match words.is_empty() {
            true => None,
            false => History::adopt(words.map()?, words.copy()?).ok(),
        };
        let Some(shared) = shared else {
            return SharedMemory::with_history(0, history_bytes);
        };
        shared.set_joint(true);
        let memory = MemoryFile::<Scoreboard>::new("fairlead scoreboard")?;
        let (scoreboard, file) = (memory.map()?, memory.into_file());
        let queues = SharedQueues::new(scoreboard)?;
        let bus = Bus::new(scoreboard, 0)?.with_history(Some(Arc::new(shared)));
        Ok(SharedMemory::of([file, words.into_file()], scoreboard, queues, bus))
    }

    /// Adopts the memory of another process with the same [`SharedMemory::layout`], by its descriptors. Mailboxes follow one by one.
    ///
    /// # Errors
    /// If the file has another size, or memory is short.
    pub fn adopt(descriptors: [OwnedFd; SharedMemory::DESCRIPTORS]) -> io::Result<SharedMemory> {
        let [file, words, queues @ ..] = descriptors;
        let memory = MemoryFile::<Scoreboard>::adopt(file)?;
        let (scoreboard, file) = (memory.map()?, memory.into_file());
        let words = WordsFile::adopt(words)?;
        let history = match words.is_empty() {
            true => None,
            false => Some(History::adopt(words.map()?, words.copy()?)?),
        };
        let bus = Bus::new(scoreboard, 0)?.with_history(history.map(Arc::new));
        let queues = SharedQueues::adopt(scoreboard, queues);
        Ok(SharedMemory::of([file, words.into_file()], scoreboard, queues, bus))
    }

    fn of(
        [file, history_file]: [OwnedFd; 2],
        scoreboard: &'static Scoreboard,
        queues: SharedQueues,
        bus: Bus,
    ) -> SharedMemory {
        SharedMemory {
            scoreboard,
            queues: Arc::new(queues),
            bus: Arc::new(bus),
            file,
            history_file,
        }
    }

    /// The formats of connections and of clients that migrate. Workers of another release can continue with them if they
    /// have the same.
    pub const MOVES: [u32; 2] = [SharedQueues::FORMAT, CLIENT_FORMAT];

    /// A name of the layout: two processes may share memory if it is equal.
    pub fn layout() -> String {
        let (version, scoreboard) = (env!("CARGO_PKG_VERSION"), size_of::<Scoreboard>());
        let (queues, history, mail) = (SharedQueues::FORMAT, History::FORMAT, Bus::FORMAT);
        format!("{version} {scoreboard} {queues} {history} {mail}")
    }

    /// The descriptors with which another process adopts the memory. The history is the second one in every release, for
    /// [`SharedMemory::beside`].
    pub fn descriptors(&self) -> [BorrowedFd<'_>; SharedMemory::DESCRIPTORS] {
        let queues = self.queues.descriptors();
        std::array::from_fn(|index| match index {
            0 => self.file.as_fd(),
            1 => self.history_file.as_fd(),
            _ => queues[index - 2],
        })
    }

    /// The state and the statistics of all workers.
    pub fn scoreboard(&self) -> &'static Scoreboard {
        self.scoreboard
    }

    /// The queues of requests and connections that migrate between workers.
    pub fn queues(&self) -> &Arc<SharedQueues> {
        &self.queues
    }

    /// The mailboxes of the workers.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// Clears a slot for the next worker. The previous worker may have died while it put a request into the waiting
    /// queues.
    ///
    /// # Panics
    /// If `slot` is not below [`SLOTS`].
    pub fn reset(&self, slot: usize) {
        self.scoreboard.reset(slot);
        self.queues.waiting_room().signal();
    }

    /// Number of slots.
    pub const fn slots() -> usize {
        SLOTS
    }
}
