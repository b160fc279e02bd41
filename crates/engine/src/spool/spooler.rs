//! The spooler: one native thread of each worker that writes temporary files: what answers leave behind, and the bodies of
//! large requests.
//!
//! A write to a slow disk blocks whoever does it, and so may the end of a large file: neither shall be felt by requests, so no
//! other thread writes to the temporary folder. Each gets a turn, in order.

use super::spooled::{Moved, Spooled};
use super::Spool;
use crate::clock::milliseconds;
use crate::connection::{Connection, Next};
use crate::descriptors::Counted;
use crate::engine::Engine;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes read from a socket at a time.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Parts of an answer that are written in one turn.
const PARTS_A_TURN: usize = 4;

/// How often an idle spooler looks whether its engine is still there, should it have gone without being stopped.
const LOOK: Duration = Duration::from_secs(60);

/// How often it looks whether there is memory to be given back, after much was in use.
const LOOK_AT_MEMORY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Queue {
    turns: VecDeque<Turn>,
    /// Answers for which there is no room on the disk at present.
    stalled: VecDeque<Weak<Spooled>>,
    is_stopped: bool,
    is_asleep: bool,
}

#[derive(Debug)]
enum Turn {
    Answer(Weak<Spooled>),
    Upload(Box<Connection>),
    /// A file that nobody needs any more, and its length.
    Discard(Option<Arc<Counted<File>>>, u64),
    Nobodys,
    Over,
}

impl Spool {
    /// Starts the thread; it holds no engine alive.
    pub(crate) fn start(engine: &Arc<Engine>) -> std::io::Result<()> {
        let spool = Arc::clone(&engine.spool);
        let engine = Arc::downgrade(engine);
        std::thread::Builder::new()
            .name("fairlead spooler".into())
            .spawn(move || spool.run(&engine))?;
        Ok(())
    }

    /// Gives a connection its turn to store what has come of its body. It comes back when the spooler has been stopped.
    pub(crate) fn store(&self, connection: Box<Connection>) -> Result<(), Box<Connection>> {
        match self.push(Turn::Upload(connection)) {
            Err(Turn::Upload(connection)) => Err(connection),
            _ => Ok(()),
        }
    }

    /// Ends the thread; returns the connections that are left.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(crate) fn stop(&self) -> Vec<Box<Connection>> {
        let mut queue = self.queue.lock();
        queue.is_stopped = true;
        self.wake.notify_one();
        let turns = std::mem::take(&mut queue.turns);
        drop(queue);
        let mut left = Vec::new();
        for turn in turns {
            match turn {
                Turn::Upload(connection) => left.push(connection),
                Turn::Discard(file, length) => self.close_file(file, length),
                _ => {}
            }
        }
        left
    }

    /// Whether something would go to the disk if its total allowed it.
    pub(super) fn is_disk_full(&self) -> bool {
        !self.queue.lock().stalled.is_empty()
    }

    pub(super) fn enqueue(&self, spooled: &Arc<Spooled>) {
        let _ = self.push(Turn::Answer(Arc::downgrade(spooled)));
    }

    pub(super) fn discard(&self, file: Option<Arc<Counted<File>>>, length: u64) {
        if let Err(Turn::Discard(file, length)) = self.push(Turn::Discard(file, length)) {
            self.close_file(file, length);
        }
    }

    fn push(&self, turn: Turn) -> Result<(), Turn> {
        let mut queue = self.queue.lock();
        if queue.is_stopped {
            return Err(turn);
        }
        match turn {
            // Others wait for the room.
            Turn::Discard(..) => queue.turns.push_front(turn),
            _ => queue.turns.push_back(turn),
        }
        if queue.is_asleep {
            self.wake.notify_one();
        }
        Ok(())
    }

    fn run(&self, engine: &Weak<Engine>) {
        let mut scratch = vec![0; SCRATCH_BYTES];
        loop {
            let next = self.next();
            let Some(engine) = engine.upgrade() else { return };
            match next {
                Turn::Answer(spooled) => {
                    engine.guard("the spooler", || self.move_parts(&spooled));
                }
                Turn::Upload(connection) => engine.store_slice(connection, &mut scratch),
                Turn::Discard(file, length) => self.close_file(file, length),
                Turn::Nobodys if self.totals.has_receded() => (self.trim)(),
                Turn::Nobodys => {}
                Turn::Over => return,
            }
        }
    }

    fn next(&self) -> Turn {
        let mut queue = self.queue.lock();
        if queue.turns.is_empty() && !queue.is_stopped {
            queue.is_asleep = true;
            let may_recede = self.totals.may_recede();
            self.wake
                .wait_for(&mut queue, if may_recede { LOOK_AT_MEMORY } else { LOOK });
            queue.is_asleep = false;
        }
        match queue.turns.pop_front() {
            Some(turn) => turn,
            None if queue.is_stopped => Turn::Over,
            None => Turn::Nobodys,
        }
    }

    fn move_parts(&self, answer: &Weak<Spooled>) {
        // Gone, or sent: nothing is left to be done.
        let Some(spooled) = answer.upgrade() else { return };
        for _ in 0..PARTS_A_TURN {
            match spooled.move_part() {
                Moved::Part => {}
                Moved::Nothing => return,
                Moved::NoRoom => {
                    let mut queue = self.queue.lock();
                    queue.stalled.retain(|answer| answer.strong_count() > 0);
                    queue.stalled.push_back(Weak::clone(answer));
                    return;
                }
            }
        }
        self.enqueue(&spooled);
    }

    fn close_file(&self, file: Option<Arc<Counted<File>>>, length: u64) {
        drop(file);
        self.free_disk(length);
    }

    pub(super) fn free_disk(&self, bytes: u64) {
        self.totals.free_disk(bytes);
        let mut queue = self.queue.lock();
        // Those that came first are first again.
        while let Some(answer) = queue.stalled.pop_back() {
            queue.turns.push_front(Turn::Answer(answer));
        }
    }
}

impl Engine {
    fn store_slice(&self, mut connection: Box<Connection>, scratch: &mut [u8]) {
        self.guard("the spooler", || {
            let next = connection.store(scratch, &self.config, milliseconds());
            let may_bring_work = next == Next::Ready;
            self.settle(connection, next);
            if may_bring_work && !self.ready.is_empty() {
                self.rouse();
            }
        });
    }

    /// Hands a connection whose body is large to the spooler.
    pub(crate) fn hand_to_spooler(&self, connection: Box<Connection>) {
        if let Err(connection) = self.spool.store(connection) {
            self.close(connection);
        }
    }
}
